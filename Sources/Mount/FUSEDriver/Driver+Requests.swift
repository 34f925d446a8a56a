import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

// The path of one request, in the order in which it happens. `ReceiveLoop` has received it.

extension Driver {
  // MARK: 1. It is admitted, or held until what it needs is there (`RequestGate`)

  /// Carries out a request, or takes it over with its buffer if it must wait.
  func admit(_ buffer: inout fuse_buf, _ now: Instant) {
    if !gate.keeps(&buffer, self, now) { process(&buffer) }
  }

  // MARK: 2. libfuse takes it apart, and calls its operation (`Operations`)

  /// Has libfuse take a request apart and call its operation, which answers it.
  /// - Parameters:
  ///   - refusal: the error that it is answered with; nil if it is carried out.
  ///   - listing: the version of a listing that it has waited for.
  func process(
    _ buffer: inout fuse_buf, refusing refusal: Errno? = nil, listing: UInt64? = nil
  ) {
    guard let header = RequestHeader(buffer) else {
      return fuse_session_process_buf(session.raw, &buffer)
    }
    pending.pages.noteRequest(header)
    var context = RequestContext(
      header: header, announcement: announcer.purpose(of: header.thread), refusal: refusal,
      listing: listing)
    if header.operation.isChange, announcer.wasInterrupted(header.thread) {
      context.refusal = .fileExists
    }
    if header.operation.isChange { store.changes?.setSource(writers.source(of: header)) }
    begin(&context)
    current = context
    fuse_session_process_buf(session.raw, &buffer)
    current = nil
    end(context)
  }

  // MARK: 3. The trees carry it out, and it is answered

  /// Answers a request of the kernel with the result of `body`. Attributes are dropped before the
  /// reply, everything else after it; the reply to a change is held while other mounts must settle.
  func answer(
    _ reply: consuming Reply, _ body: (RequestContext) throws(TreeError) -> Answer
  ) {
    let answer = carryOut(body)
    let (rest, version) = dropAttributes(forest.removeEffects())
    let announced = save(answer, rest)
    if announced > 0 { announceDelayed() }
    if let version, !store.services.isSettled(through: version) {
      let request = current?.header
      let number = heldReplies.hold(
        reply, answer, changed: request?.node ?? .root, request?.number ?? 0)
      store.services.whenSettled(through: version) { [heldReplies] in heldReplies.send(number) }
    } else {
      reply.send(answer, ownership: ownership)
    }
    invalidator.enqueue(postponingPages(rest), announced: announced)
  }

  /// Returns the error that the request is refused with, or the answer that the trees have since a
  /// predecessor, or carries the request out.
  private func carryOut(_ body: (RequestContext) throws(TreeError) -> Answer) -> Answer {
    guard let current else { return .error(.inputOutput) }
    if let refusal = current.refusal { return .error(refusal) }
    do throws(TreeError) {
      if let saved = current.saved { return try saved.answer(forest, current.header) }
      return try body(current)
    } catch {
      return .error(error.errno)
    }
  }

  /// Answers statfs(2), by a thread that may wait for the file system of the lists. The reply is
  /// held meanwhile; one that does not answer has no space.
  func answerSpace(_ reply: consuming Reply) {
    if let refusal = current?.refusal { return reply.send(.error(refusal), ownership: ownership) }
    let number = heldReplies.hold(reply, .space(MountedStore.shown(nil)))
    let isBegun = spaceThread.run { [store, heldReplies] in
      heldReplies.send(number, .space(store.space))
    }
    if !isBegun { heldReplies.send(number) }
  }

  /// Answers fsync(2). `body` decides, on the loop's thread, whether the file can be synchronised;
  /// the synchroniser's thread then waits for the disk.
  func synchronize(_ reply: consuming Reply, _ body: () throws(TreeError) -> Void) {
    var refusal = current?.refusal
    if refusal == nil {
      do { try body() } catch { refusal = error.errno }
      perform(dropAttributes(forest.removeEffects()).rest)
    }
    if let refusal {
      reply.send(.error(refusal), ownership: ownership)
    } else {
      let held = HeldReply(reply)
      synchroniser.put { $0.append(held) }
    }
  }

  // MARK: 4. What the kernel has cached is dropped

  /// Performs the effects on attributes, which take no kernel lock that a request may hold.
  /// - Parameter isLater: whether the attributes of a file are dropped later, with its pages.
  /// - Returns: the other effects, and the version that the other mounts must have settled before
  ///   the reply is sent; nil means none.
  func dropAttributes(
    _ effects: [Effect], isLater: (NodeID) -> Bool = { _ in false }
  ) -> (rest: [Effect], awaited: UInt64?) {
    var awaited: UInt64?
    let rest = effects.filter { effect in
      switch effect {
      case .invalidateAttributes(let node):
        if isLater(node) { return false }
        // The kernel does not know the node. A reply that introduces it may be on its way, so the
        // invalidator tries again a little later.
        return fuse_lowlevel_notify_inval_inode(session.raw, node.rawValue, -1, 0) == -ENOENT
      case .awaitSettlement(let version):
        awaited = max(awaited ?? 0, version)
        return false
      case .invalidateContents, .invalidateEntry, .announce: return true
      }
    }
    return (rest, awaited)
  }

  /// Saves what has changed, and hands the effects to the invalidator.
  func perform(_ effects: [Effect]) {
    let announced = save(nil, effects)
    if announced > 0 { announceDelayed() }
    invalidator.enqueue(effects, announced: announced)
  }
}
