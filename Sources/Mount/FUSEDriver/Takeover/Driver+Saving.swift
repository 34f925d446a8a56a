import PreferenceModel
import PreferenceTree
import PropertyList
import SystemCalls

// What a successor must know is saved, and each request is carried out once, also if two drivers
// get it.

extension Driver {
  /// Begins a request: notes it for a successor, and finds out what a predecessor has done of it.
  func begin(_ context: inout RequestContext) {
    guard let saved = takeover.saved else { return }
    let header = context.header
    saved[.request] = header.number
    if header.operation.isChange { store.changes?.begin(request: header.number) }
    if header.isResent { prepareRepetition(&context, saved) }
  }

  /// Ends a request that has been answered, or whose reply is held.
  func end(_ context: RequestContext) {
    guard let saved = takeover.saved else { return }
    if context.header.isResent { forest.setMade(nil) }
    if context.header.operation.isChange { store.changes?.endRequest() }
    saved[.request] = 0
  }

  /// Finds out what a predecessor has done of a request, and has the trees follow.
  private func prepareRepetition(_ context: inout RequestContext, _ saved: SavedState) {
    guard let earlier = takeover.earlier else { return }
    let header = context.header
    if saved[.suspect] == header.number, saved[.suspectDeaths] >= 2 {
      log(
        LogLine(
          "a request (operation \(header.operation.rawValue)) has ended two drivers and is refused; "
            + "please report this"))
      context.refusal = .inputOutput
      return
    }
    if header.writtenCount == nil || !forest.hasLostText(header.node) {
      context.saved = earlier[header.number]
    }
    guard context.saved == nil, header.operation.isChange, context.refusal == nil else { return }
    do {
      guard let made = try store.changes?.outcome(of: header.number) else { return }
      if header.writtenCount != nil {
        forest.noteWritten(header.node)
        context.saved = SavedRequest(header.number)
      } else {
        forest.setMade(made)
      }
    } catch {
      log("cannot tell whether the last driver carried out a request: \(error)")
    }
  }

  /// Begins to save in the state what a successor must know.
  func begin(saving saved: SavedState) {
    takeover.saved = saved
    forest.beginSaving { [store] isDecisive in store.changes?.setDecisive(isDecisive) }
  }

  /// Saves what has changed since the last call, with the present request and the announcements that
  /// follow from it. It must be called before the request is answered.
  /// - Returns: the number of the last announcement.
  @discardableResult
  func save(_ answer: Answer? = nil, _ effects: [Effect] = []) -> UInt64 {
    guard let saved = takeover.saved else { return 0 }
    let request = answer.flatMap { answer in
      current.flatMap { SavedRequest($0.header.number, answer) }
    }
    saved.addChanges(of: forest, by: request)
    saved.noteRegistered(store.registered)
    let announcements = effects.compactMap { effect -> Announcement? in
      if case .announce(let announcement) = effect { announcement } else { nil }
    }
    let last = announcements.isEmpty ? 0 : saved.add(announcements)
    saved.commit()
    if saved.isLong {
      saved.replace(trees: forest.saveAll(), unanswered + [request].compactMap { $0 })
    }
    if saved.isIncomplete != takeover.isStateIncomplete { reportRoom(saved) }
    return last
  }

  /// The requests that were carried out and wait for other mounts.
  private var unanswered: [SavedRequest] {
    heldReplies.requests.compactMap { SavedRequest($0, $1) }
  }

  /// Begins an upgrade, as the guard asks. Goes on instead where the state has no room: a successor
  /// would refuse it.
  func beginHandover() {
    if let saved = takeover.saved, saved.isIncomplete {
      saved.replace(trees: forest.saveAll(), unanswered)
      guard !saved.isIncomplete else {
        log("not upgraded: no memory for the mount's state; the old version continues")
        takeover.line?.refuseHandover()
        return
      }
    }
    takeover.upgrade = .waiting(Instant.now.advanced(milliseconds: 2000))
  }

  /// Ends this driver for a successor once no text is under way. If that takes more than 2 s, the
  /// upgrade is put off for a minute. Cost: a look, unless there is an upgrade.
  /// - Returns: whether this driver ends.
  func proceedWithUpgrade() -> Bool {
    switch takeover.upgrade {
    case nil: break
    case .waiting(let end):
      let path = forest.textUnderWay
      if path != nil, end > .now { break }
      takeover.upgrade = path.map { _ in .putOff(Instant.now.advanced(milliseconds: 60_000)) }
      takeover.isHandingOver = path == nil
      guard let path else { break }
      log("not upgraded: the text of \(path) is not complete; it is tried again in a minute")
      takeover.line?.refuseHandover()
    case .putOff(let end):
      guard end <= .now else { break }
      takeover.upgrade = nil
      takeover.line?.askForUpgrade()
    }
    return takeover.isHandingOver
  }

  /// Logs that the state has no room, or has it again.
  private func reportRoom(_ saved: SavedState) {
    takeover.isStateIncomplete = saved.isIncomplete
    if saved.isIncomplete {
      log(
        """
        there is no memory for the mount's state: if this driver ends, the mount ends too. A \
        limit of file sizes or of address space may be too low (ulimit -f, -v)
        """)
    } else {
      log("the mount's state is saved again: the mount survives the end of this driver")
    }
  }
}
