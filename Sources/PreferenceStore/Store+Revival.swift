import PreferenceModel
import PropertyList
import SystemCalls

// What becomes of a store whose state directory is removed while it is open.

extension Store {
  /// Makes the state directory anew where it, or the file that the journal is written to, was removed:
  /// lock, journal, and in the journal every change that is not in a list yet. Does nothing otherwise.
  ///
  /// Until then the journal went to a file without a name: what was acknowledged in between is lost if
  /// every process is killed before this returns. Another process that has taken the lock in the new
  /// directory meanwhile is an owner too; the lists that both write are merged, as with every other
  /// program that edits them. That is said once. The writer's thread calls it.
  public func revive() {
    guard !isReadOnly else { return }
    let isJournalGone = !state.withLock { $0.journal?.isInPlace ?? true }
    let isLockGone = !isLockInPlace
    guard isJournalGone || isLockGone else { return }
    log("\(layout.stateDirectory): it was removed; it is made anew with everything that is unsaved")
    if isLockGone { takeLockAgain() }
    do throws(SystemError) {
      try state.withLock { state throws(SystemError) in try state.restartJournal(layout) }
    } catch {
      log("the journal could not be made anew: \(error)")
    }
    revived.withLock { $0 }?()
  }

  /// Calls the body whenever the state directory was made anew.
  public func onRevival(_ body: @escaping @Sendable () -> Void) { revived.withLock { $0 = body } }

  /// Takes the lock in the new directory; where another process has it, this one goes on without.
  private func takeLockAgain() {
    do throws(SystemError) {
      let taken = SharedDescriptor(try Self.takeLock(layout))
      lock.withLock { $0 = taken }
    } catch {
      lock.withLock { $0 = nil }
      log("another process may own the store too: \(error)")
    }
  }

  /// Whether the file whose lock this process has is still in its directory. A lock that another process has
  /// taken meanwhile is not asked for again.
  private var isLockInPlace: Bool {
    lock.withLock { lock in
      guard let lock else { return true }
      guard let own = try? lock.value.status(),
        let there = try? Files.linkStatus(layout.stateDirectory + "/lock")
      else { return false }
      return own.st_ino == there.st_ino && own.st_dev == there.st_dev
    }
  }
}

extension Store.State {
  /// A journal in a new directory, with the changes of every list that is not up to date.
  fileprivate mutating func restartJournal(_ layout: StoreLayout) throws(SystemError) {
    guard let lost = journal else { return }
    try Files.makeDirectories(layout.stateDirectory, mode: 0o700)
    let fresh = try Journal(directory: layout.stateDirectory, after: lost)
    for (location, domain) in domains where domain.unsavedSince != nil {
      let edits = domain.snapshot.unsavedEdits
      for edit in edits {
        _ = try fresh.append(.change(Changeset([.init(location, edit)], time: lastTime)))
      }
    }
    journal = fresh
  }
}
