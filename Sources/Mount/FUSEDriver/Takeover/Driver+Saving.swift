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
    if header.isResent { prepareRepetition(&context) }
  }

  /// Ends a request that has been answered, or whose reply is held.
  func end(_ context: RequestContext) {
    guard let saved = takeover.saved else { return }
    if context.header.isResent { forest.setMade(nil) }
    if context.header.operation.isChange { store.changes?.endRequest() }
    saved[.request] = 0
  }

  /// Finds out what a predecessor has done of a request, and has the trees follow.
  private func prepareRepetition(_ context: inout RequestContext) {
    guard let resent = takeover.resent else { return }
    let header = context.header
    if resent.refused == header.number {
      log(
        LogLine(
          "a request (operation \(header.operation.rawValue)) has ended two drivers and is refused; "
            + "please report this"))
      context.refusal = .inputOutput
      return
    }
    context.answer = resent.answers[header.number]
    guard context.answer == nil, header.operation.isChange, context.refusal == nil else { return }
    do {
      guard let made = try store.changes?.outcome(of: header.number) else { return }
      if let count = header.writtenCount {
        forest.noteWritten(header.node)
        context.answer = .written(count)
      } else {
        forest.setMade(made)
      }
    } catch {
      log("what became of a request under the driver before is not known: \(error)")
    }
  }

  /// Begins to save in the state what a successor must know.
  func begin(saving saved: SavedState) {
    takeover.saved = saved
    forest.beginSaving { [store] isDecisive in store.changes?.setDecisive(isDecisive) }
  }

  /// Saves what has changed since the last call, with the answer and the announcements that follow
  /// from it. It must be called before the answer is sent.
  /// - Returns: the number of the last announcement.
  @discardableResult
  func save(_ answer: Answer? = nil, _ effects: [Effect] = []) -> UInt64 {
    guard let saved = takeover.saved else { return 0 }
    saved.addChanges(of: forest)
    if let answer, let current, current.isSaved, current.answer == nil,
      let kept = SavedAnswer(answer)
    {
      saved.add(kept, to: current.header.number, hasHeld: !heldReplies.areSent)
    }
    saved.noteRegistered(store.registered)
    let announcements = effects.compactMap { effect -> Announcement? in
      if case .announce(let announcement) = effect { announcement } else { nil }
    }
    let last = announcements.isEmpty ? 0 : saved.add(announcements)
    saved.commit()
    if saved.isLong { saved.replace(trees: forest.saveAll()) }
    if saved.isIncomplete != takeover.isStateIncomplete { reportRoom(saved) }
    return last
  }

  /// Ends this driver for a successor, as the guard asks. Goes on instead where the state has no
  /// room: a successor would refuse it.
  func beginHandover() {
    if let saved = takeover.saved, saved.isIncomplete {
      saved.replace(trees: forest.saveAll())
      guard !saved.isIncomplete else {
        log("not upgraded: the state of this mount has no room in memory; it goes on")
        takeover.line?.refuseHandover()
        return
      }
    }
    takeover.isHandingOver = true
  }

  /// Logs that the state has no room, or has it again.
  private func reportRoom(_ saved: SavedState) {
    takeover.isStateIncomplete = saved.isIncomplete
    if saved.isIncomplete {
      log(
        """
        the state of this mount has no room in memory: if this driver ends, the mount ends too. A \
        limit of file sizes or of address space may be too low (ulimit -f, -v)
        """)
    } else {
      log("the state of this mount has room again: another driver can go on for this one")
    }
  }
}
