import PreferenceModel
import PropertyList
import SystemCalls

// A store whose state directory is removed while it is open.

extension Store {
  /// Makes anew what was removed of the state directory: the lock file, and the journal file in
  /// use, with every change that is not in its list. Does nothing otherwise. The writer's thread
  /// calls it.
  ///
  /// Until it returns, the journal is written to a file without a name: changes that were
  /// acknowledged after the removal are lost if every process is killed before. If it throws (a
  /// full disk, a directory that cannot be made), that goes on, and the caller tries again. If
  /// another process has taken the lock in the new directory meanwhile, both are owners, and the
  /// log says so once; the lists that both write are merged, as with any other program that edits
  /// them.
  public func revive() throws(SystemError) {
    guard !isReadOnly else { return }
    let isJournalGone = !state.withLock { $0.journal?.isInPlace ?? true }
    let isLockGone = !isLockInPlace
    guard isJournalGone || isLockGone else { return }
    if isLockGone { try reacquireLock() }
    if isJournalGone {
      try state.withLock { state throws(SystemError) in try state.restartJournal(layout) }
      // Older files that are still there may hold records of lists that are saved.
      releaseReplayed()
    }
    log("\(layout.stateDirectory): it was removed, and made anew with everything that is unsaved")
    revived.withLock { $0 }?()
  }

  /// Sets the body that `revive` calls when it has made the state directory anew.
  public func onRevival(_ body: @escaping @Sendable () -> Void) { revived.withLock { $0 = body } }

  /// Takes the lock in the new directory. Where another process has it, this one goes on without a
  /// lock.
  private func reacquireLock() throws(SystemError) {
    do throws(SystemError) {
      let taken = SharedDescriptor(try Self.acquireLock(layout))
      lock.withLock { $0 = taken }
    } catch  where error.errno == .wouldBlock {
      lock.withLock { $0 = nil }
      log("another process may own the store too: \(error)")
    }
  }

  /// Whether the file whose lock this process holds still has its name. Also true where this
  /// process has lost the lock to another one: it does not ask for it again.
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
  /// Begins a journal in the new directory, with what the lost file may have held: the requests
  /// that a client may repeat, replayed changes of lists that nobody has read yet, and the unsaved
  /// changes of every loaded list. If it fails, the lost journal stays in use, for another try.
  fileprivate mutating func restartJournal(_ layout: StoreLayout) throws(SystemError) {
    guard let lost = journal else { return }
    try Files.makeDirectories(layout.stateDirectory, mode: 0o700)
    let fresh = try Journal(directory: layout.stateDirectory, after: lost)
    do throws(SystemError) {
      try restart(fresh)
    } catch {
      fresh.discard(since: lost)
      throw error
    }
  }

  private mutating func restart(_ fresh: Journal) throws(SystemError) {
    var renewed = self
    var requested: Set<Location> = []
    for (origin, changeset) in requests.unanswered(.now) {
      let sequence = try fresh.append(.from(origin, .change(changeset)))
      renewed.requests.renumber(origin, sequence)
      requested.formUnion(changeset.locations)
    }
    // The lists, with the changes that are recorded below, have what the requests did and what came
    // later.
    let through = fresh.lastSequence
    for location in requested {
      let identity = domains[location]?.identity
      _ = try fresh.append(.checkpoint(location, through: through, identity))
    }
    for (location, edits) in pending {
      renewed.renumberPending(location, try fresh.append(pending: edits, location))
    }
    for location in domains.unsaved.keys {
      guard let domain = domains[location] else { continue }
      let first = try fresh.append(unsavedOf: domain.snapshot, location)
      renewed.domains[location]?.firstUnsaved = first
      renewed.domains[location]?.lastEdit = fresh.lastSequence
    }
    renewed.journal = fresh
    self = renewed
  }
}
