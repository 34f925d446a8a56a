import PreferenceModel
import PropertyList
import SystemCalls

// What becomes due by itself: truncations, old tails, held texts, removed names.

extension Tree {
  /// Makes sure that `tick` is called at the moment.
  func wake(at moment: Instant) { nextDeadline = min(nextDeadline ?? moment, moment) }

  /// Carries out what has become due: truncations, old tails, held texts, removed names.
  public func tick(now: Instant) {
    for (id, end) in edited {
      guard let node = table[id], let editor = node.editor else {
        edited[id] = nil
        continue
      }
      // A refusal has been logged, and the file shows its value again: there is nobody to tell.
      if let deadline = editor.deadline, deadline <= now {
        do { try expire(node, now: now) } catch {}
      } else if editor.deadline == nil, end <= now {
        node.editor = nil
      }
      if node.lookups == 0, node.editor?.deadline == nil { forget(node.id, 0) }
    }
    endRemovals { $1.until <= now }
    let editors = edited.map { id, end in table[id]?.editor?.deadline ?? end }
    reportScratch(now: now)
    nextDeadline = (editors + removals.values.map(\.until) + watchedScratch.values).min()
  }

  /// Ends what the filter says, oldest first: a rotation of backups ends in its own order.
  private func endRemovals(where isOver: (KeyPath, Removal) -> Bool) {
    for (path, _) in removals.filter({ isOver($0.key, $0.value) })
      .sorted(by: { $0.value.until < $1.value.until })
    {
      if let removal = removals[path], isOver(path, removal) { end(removal, of: path) }
    }
  }

  /// Keys of the domain that were moved away stay under their new names from now on.
  func endHolds(of domain: DomainName) {
    endRemovals { $0.domain == domain && $1.holder != nil }
  }

  private func end(_ removal: Removal, of path: KeyPath) {
    if let holder = removal.holder, let node = table[holder] {
      endMove(path, node)
    } else {
      endRemoval(path)
    }
  }

  /// The mount ends: text that waits for a decision gets it, keys that were moved away stay under
  /// their new names; what is held, and scratch files, are lost, and logged.
  public func finish() {
    endRemovals { $1.holder != nil }
    logLostScratch()
    for id in edited.keys {
      guard let node = table[id], let editor = node.editor, editor.deadline != nil else { continue }
      do {
        try expire(node, now: editor.deadline ?? .now)
      } catch {
        // It has been logged, and there is nobody left to tell.
      }
    }
  }

  func expire(_ node: Node, now: Instant) throws(TreeError) {
    guard var editor = node.editor else { return }
    let action = editor.expire(now: now)
    try perform(action, editor, node, now: now)
    effects.append(.dropAttributes(node.id))
  }

  func endRemoval(_ path: KeyPath) {
    removals[path] = nil
    guard let parent = table[path.domain] else { return }
    guard (try? engine.resolve(path.key, in: path.domain)) != nil else { return }
    dropEntry(parent.id, path.key)
    entriesChanged(path.domain, at: .now)
  }
}
