import PreferenceModel
import PropertyList
import SystemCalls

// Does what is due at a time: ends truncations, old tails, held texts and departures.

extension Tree {
  /// Sees to it that `tick` is called at the moment, or earlier.
  func wake(at moment: Instant) { nextDeadline = min(nextDeadline ?? moment, moment) }

  /// Does everything that has become due.
  public func tick(now: Moment) {
    for (id, end) in edited { tick(id, end, now) }
    while let ending = departures.endNextDue(at: now.instant) { carryOut(ending, now: now) }
    reportScratch(now: now)
    keepUnclaimed(until: now.instant, now: now)
    announceDelayed(now)
    let editors = edited.map { id, end in table[id]?.keyFile?.editor?.deadline ?? end }
    let others =
      Array(doubtfulScratch.values) + unclaimed.values
      + [departures.deadline, delayedUntil].compactMap { $0 }
    nextDeadline = (editors + others).min()
  }

  /// - Parameter end: when an editor whose text is complete may be thrown away.
  private func tick(_ id: NodeID, _ end: Instant, _ now: Moment) {
    guard let node = table[id], let file = node.keyFile, let editor = file.editor else {
      edited[id] = nil
      return
    }
    if let deadline = editor.deadline, deadline <= now.instant {
      // A refusal has been logged, and the file shows its value again. No request waits for it.
      do { try expire(file, now: now) } catch {}
    } else if editor.deadline == nil, end <= now.instant {
      file.dropEditor()
      edited[id] = nil
    }
    if node.lookups == 0, file.editor?.deadline == nil { forget(id, 0) }
  }

  /// Ends the phase of the text that is being written to the file.
  func expire(_ file: KeyFile, now: Moment) throws(TreeError) {
    guard let editor = file.editor else { return }
    let action = editor.expire(now: now.instant)
    try perform(action, editor, file, now: now, written: file.uncommittedSince)
    effects.append(.invalidateAttributes(file.id))
  }

  private func carryOut(_ ending: Departures.Ending, now: Moment) {
    switch ending {
    case .show(let path): show(path, now: now)
    case .completeMove(let path, let holder): completeMove(path, holder, now: now)
    }
  }

  /// Completes the moves of keys of the domain that were moved away.
  func completeMoves(from domain: DomainName, now: Moment) {
    while let ending = departures.endNextMove(from: domain) { carryOut(ending, now: now) }
  }

  /// Shows the value again that places have for a name that departed, if any.
  func show(_ path: KeyPath, now: Moment) {
    guard let parent = table[path.domain] else { return }
    guard (try? engine.resolve(path.key, in: path.domain)) != nil else { return }
    invalidateEntry(parent.id, path.key)
    entriesChanged(path.domain, at: now.time)
  }

  /// Ends the tree with the mount. Decides text that waits for a decision, and completes the moves
  /// of keys that were moved away. Held text and scratch files are lost, and logged.
  public func finish(now: Moment) {
    while let ending = departures.endNextMove() { carryOut(ending, now: now) }
    keepUnclaimed(until: nil, now: now)
    logLostScratch()
    for id in edited.keys {
      guard let file = table[id]?.keyFile, file.editor?.deadline != nil else { continue }
      // A refusal has been logged. No request waits for it.
      do { try expire(file, now: now) } catch {}
    }
  }
}
