import PreferenceTree

// A write(2) is answered as soon as its change is certain.

extension Driver {
  /// The reply to the WRITE that is being carried out, until it is sent.
  struct PendingWrite: ~Copyable {
    let reply: Reply
    let count: Int
  }

  /// Answers a WRITE. `body` has the tree carry it out. Where no other process uses the store and
  /// nothing else changes that the kernel has cached, the reply is sent when the engine has
  /// recorded the change (`replyEarly`), and the rest is done while the program goes on: the store
  /// publishes the change, the trees follow, and the state for a successor is saved.
  ///
  /// A reply within 5 us finds the program's processor still awake. One after 10 us takes 20 us
  /// more, most of them for waking it.
  ///
  /// The next request sees all of it, because it is read when this one is finished. If the driver
  /// ends between the reply and that, a successor finds the file's node in
  /// `SavedState.Number.recorded`, and throws away what the file's text was before.
  func answerWrite(
    _ reply: consuming Reply, count: Int, _ body: () throws(TreeError) -> Void
  ) {
    if let refusal { return reply.send(.error(refusal), ownership: ownership) }
    pendingWrite = PendingWrite(reply: reply, count: count)
    let answer = carryOut { () throws(TreeError) in
      try body()
      return .written(count)
    }
    if let pending = pendingWrite.take() {
      finish(pending.reply, answer)
    } else {
      // Also after an error: the change was made.
      finish(nil, .written(count))
      saved?[.recorded] = 0
    }
  }

  /// Sends the reply to the WRITE that is being carried out. The engine calls it, through the tree,
  /// under its locks: sending waits for nothing, because the kernel copies the reply and wakes the
  /// program.
  ///
  /// `isShared` is asked under the lock: a process that connects later asks the store for what it
  /// reads after the lock is free, and gets the change.
  func replyEarly(_ node: NodeID) {
    guard !store.services.isShared, let pending = pendingWrite.take() else { return }
    saved?[.recorded] = node.rawValue
    pending.reply.send(.written(pending.count), ownership: ownership)
  }
}
