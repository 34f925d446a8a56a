import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree
import SystemCalls

// Each request is carried out once, also if two drivers get it.

/// The request that is being carried out.
struct CurrentRequest {
  /// Its number, without the mark of a request that is sent again.
  var number: UInt64
  var node: NodeID
  /// Whether its answer is saved: it changes something, or counts a look-up.
  var isSaved: Bool
  var isChange: Bool
  /// The answer that a predecessor has saved.
  var answer: SavedAnswer?
}

extension Driver {
  /// Has libfuse take a request apart and call its operation, which answers it.
  func process(_ buffer: inout fuse_buf) {
    let header = RequestHeader(buffer)
    if let header { droppedPages.noteRequest(header) }
    guard let saved, let header else {
      fuse_session_process_buf(session.raw, &buffer)
      return
    }
    current = CurrentRequest(
      number: header.number, node: header.node, isSaved: header.isChange || header.isLookup,
      isChange: header.isChange)
    saved[.request] = header.number
    if header.isChange { store.changes?.begin(request: header.number, after: 0) }
    let outer = refusal
    if header.isResent { prepareRepetition(header) }
    if announcer.wasInterrupted(header.thread), header.isChange {
      refusal = .fileExists
    }
    fuse_session_process_buf(session.raw, &buffer)
    refusal = outer
    if header.isResent { forest.endRepetition() }
    if header.isChange { store.changes?.endRequest() }
    saved[.request] = 0
    current = nil
  }

  /// Finds out what a predecessor has done of a request, and has the trees follow.
  private func prepareRepetition(_ header: RequestHeader) {
    guard let resent else { return }
    if resent.refused == header.number {
      log(
        "a request (operation \(header.opcode)) has ended two drivers and is refused; please "
          + "report this")
      refusal = .inputOutput
      return
    }
    current?.answer = resent.answers[header.number]
    guard current?.answer == nil, header.isChange, refusal == nil else { return }
    do {
      let past = resent.pasts[header.number]
      let change = past?.change ?? 1
      guard try store.changes?.outcome(ofChange: change, request: header.number) != nil else {
        return
      }
      if let count = header.writtenCount {
        forest.noteWritten(header.node)
        current?.answer = .written(count)
      } else if let past {
        try forest.beginRepetition(past.values)
        store.changes?.begin(request: header.number, after: max(past.change, 1) - 1)
        isRepeating = true
      }
    } catch {
      log("what became of a request under the driver before is not known: \(error)")
    }
  }

  /// Returns the answer that a predecessor has saved, or carries the request out.
  func carryOut(_ body: () throws(TreeError) -> Answer) -> Answer {
    defer { isRepeating = false }
    do throws(TreeError) {
      if let answer = current?.answer, let node = current?.node {
        return try answer.answer(forest, node)
      }
      return try body()
    } catch {
      return .error(error.errno)
    }
  }

  /// Begins to save in the state what a successor must know.
  func begin(saving saved: SavedState) {
    self.saved = saved
    forest.beginSaving { [unowned self] values in
      guard let request = current, request.isChange else { return }
      let change = (store.changes?.changesMade ?? 0) + 1
      saved.addChanges(of: forest)
      saved.remember(values, change: change, of: request.number)
    }
  }

  /// Saves what has changed since the last call, with the answer and the announcements that follow
  /// from it. It must be called before the answer is sent.
  /// - Returns: the number of the last announcement.
  @discardableResult
  func save(_ answer: Answer? = nil, _ effects: [Effect] = []) -> UInt64 {
    guard let saved else { return 0 }
    saved.addChanges(of: forest)
    if let answer, let request = current, request.isSaved, request.answer == nil,
      let kept = SavedAnswer(answer)
    {
      saved.add(kept, to: request.number, hasHeld: !heldReplies.areSent)
    }
    saved.noteRegistered(store.registered)
    let announcements = effects.compactMap { effect -> Announcement? in
      if case .announce(let announcement) = effect { announcement } else { nil }
    }
    let last = announcements.isEmpty ? 0 : saved.add(announcements)
    saved.commit()
    shorten(saved)
    return last
  }

  /// Whether a long log is being replaced: `save` must be called again, also without a request.
  var isShortening: Bool { saved?.isReplacing == true }

  /// Replaces a long log by a whole state: a part at each call, which takes some 200 us.
  private func shorten(_ saved: SavedState) {
    if saved.isReplacing {
      saved.replace(part: forest.savePart())
    } else if saved.isLong {
      forest.beginParts()
      saved.beginReplacing()
    }
  }
}
