import PreferenceModel
import PropertyList
import SystemCalls

// Lists that other programs change.

extension Lists {
  /// Looks at the location's list and adopts what another program changed in it. The thread of
  /// `checkpoint` calls it.
  ///
  /// Unsaved changes win for their keys, the list wins for all others. A key that the store changed
  /// within the last ten seconds, and that the list has as it was before, gets the store's value
  /// again and is unsaved; but a list of the machine's, and one that is, as a whole, an earlier
  /// state of the domain, is adopted as it is. Of a list that another owner has written, the keys
  /// that this one had changed before, without the other one having seen it, get the store's values
  /// again, and only they (`ListOwners`). A list that cannot be parsed makes every read and
  /// change of its location fail until it can.
  ///
  /// Cost: one stat(2) where nothing changed, else O(keys). Lists that could not be parsed the last
  /// time, and every list of a read-only store are read each time.
  public func refresh(_ location: Location) {
    guard let known = state.withLock({ $0.domains[location] }) else { return appeared(location) }
    if isReadOnly { return reread(known, location) }
    let list: ListFile.Contents?
    do {
      guard try isChanged(location, since: known) else { return }
      list = try self.list(location)
      // A schema of GSettings may count instead, which another thread reads.
      if list == nil, location.place == .schema {
        return state.withLock { $0.forget(schemas: [location]) }
      }
    } catch {
      if known.failure == error { return }
      log("\(error)")
      if fail(location, error) { appeared(location) }
      return
    }
    adopt(list, known, location)
  }

  /// Has reads and changes of the location fail. Where there was no list, and nothing is unsaved, it
  /// counts as never read: its file is new.
  /// - Returns: whether the file is new.
  private func fail(_ location: Location, _ error: EngineError) -> Bool {
    state.withLock { state in
      defer { state.enqueue(invalidation(location)) }
      guard let known = state.domains[location], known.unsavedSince == nil, !known.snapshot.exists
      else {
        state.domains[location]?.failure = error
        return false
      }
      state.domains[location] = nil
      return true
    }
  }

  private func isChanged(
    _ location: Location, since known: LocationState
  ) throws(EngineError) -> Bool {
    if known.failure?.reason == .unreadable { return true }
    return try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(layout, location).identity() != known.identity
    }
  }

  /// Publishes that a domain whose list is not loaded may be new, was written, or is gone.
  private func appeared(_ location: Location) {
    state.withLock { $0.directories.appearances += 1 }
    // Not `exists`: that follows a symbolic link, which may lead to a file system that hangs.
    let path = layout.path(location)
    let exists = (try? Files.linkStatus(path)) != nil && !layout.leadsNowhere(path)
    if location.place == .schema {
      return invalidate(location)
    }
    var item = Changeset.Item(location, exists ? .createDomain : .removeDomain)
    state.withLock { state in
      if exists, state.directories.had(location) == true { item.before = .something }
      if exists, state.domains[location] == nil { noteIfNew(location, &state) }
      if exists {
        state.directories.existing[location.place]?.insert(location.domain)
      } else {
        state.directories.existing[location.place]?.remove(location.domain)
      }
      state.enqueue(PendingNotice(Changeset([item], time: .now)))
    }
  }

  /// Notes for the history of a list, which is not in memory, whether it is new: then its values are
  /// changes. Of one that was there and was never read, the values from before are not known.
  func noteIfNew(_ location: Location, _ state: inout StoreState) {
    guard let seen, state.history.isOn, state.pending[location] == nil,
      SearchList.persistentPlaces.contains(location.place),
      state.directories.had(location) == false, seen.noteNew(location)
    else { return }
    // Whoever compares the lists with those that were seen looks at this one, too.
    state.directories.appearances += 1
    state.history.wake()
  }

  /// Notes which lists there are. Call it once, when their directories are watched. Waits for disks.
  public func noteExisting() {
    var existing: [Place: Set<DomainName>] = [:]
    for place in SearchList.persistentPlaces {
      existing[place] = try? layout.domains(in: place)
    }
    state.withLock { $0.directories.existing = existing }
  }

  /// Has every reader of the location look again.
  public func invalidate(_ location: Location) {
    _ = state.withLock { $0.enqueue(invalidation(location)) }
  }

  /// Says that the list became unreadable, or readable again: cached copies of it are invalid.
  private func invalidation(_ location: Location) -> PendingNotice {
    PendingNotice(Changeset(invalidating: location))
  }

  /// Adopts the list that was read. A key whose value differs from the base loses its text and gets
  /// the list's modification time.
  private func adopt(
    _ list: ListFile.Contents?, _ known: LocationState, _ location: Location
  ) {
    var base = known.snapshot.base
    let theirs = list?.values ?? .decoded([:])
    let time = list?.identity.modified ?? .now
    let differing: Set<Key> = Set(theirs.keys).union(base.values.keys).filter {
      theirs[$0] != base.values[$0]
    }
    for key in differing {
      base.metadata[key] = theirs[key].map { _ -> Metadata in
        let last = base.metadata[key]?.lastChanged ?? base.modified
        // A list that was put in the place of this one may be older.
        let changed = last < time ? nil : max(.now, last)
        return Metadata(
          text: nil, modified: time, mode: base.metadata[key]?.mode, changed: changed)
      }
    }
    base.values = theirs
    let failure = state.withLock { state in
      noteLook(location, theirs, list?.identity, isFirst: false, &state)
      return state.adopt(
        Lists.Outside(base: base, list: list, differing: differing, time: time), location)
    }
    if let failure {
      log(
        LogLine(
          "\(location.domain): a stale copy of the list has undone changes, "
            + "because the journal could not record them again: \(failure)"))
    }
    guard known.failure?.reason == .unreadable else { return }
    log(.notice("\(location.domain): the list can be read again"))
    _ = state.withLock { $0.enqueue(invalidation(location)) }
  }

  /// A list as another program left it.
  struct Outside {
    var base: LocationSnapshot.Base
    var list: ListFile.Contents?
    /// The keys whose values differ from those of the present base.
    var differing: Set<Key>
    var time: Timestamp
  }

  /// Reads list and journal anew: in a read-only store both belong to an owner that goes on
  /// changing them.
  private func reread(_ known: LocationState, _ location: Location) {
    let old = state.withLock { state in
      state.domains[location] = nil
      return location.place.hasAdditions
        ? known.snapshot.with(additions: state.additions.added(location)) : known.snapshot
    }
    guard let new = try? snapshot(of: location) else {
      return invalidate(location)
    }
    var change = PendingNotice(Changeset(time: .now))
    let edits = old.edits(to: new)
    if location.place == .schema {
      if !edits.isEmpty { _ = state.withLock { $0.enqueue(invalidation(location)) } }
      return
    }
    for edit in edits {
      change.add(
        Changeset.Item(location, edit, replacing: edit.key.flatMap { old.entry($0) }))
    }
    _ = state.withLock { $0.enqueue(change, withAdditions: true) }
  }
}

extension StoreState {
  /// Makes another program's list the base. The keys in which it undoes changes that its writer had
  /// not seen get the store's values again.
  /// - Returns: why the journal could not record those; then they keep the list's values.
  fileprivate mutating func adopt(
    _ outside: Lists.Outside, _ location: Location
  ) -> SystemError? {
    guard var domain = domains.remove(location) else { return nil }
    let old = domain.snapshot
    let isMachineWide = location.place.isMachineWide
    let ours = isMachineWide ? [] : Self.undone(outside, domain)
    domain.owners.adopt(outside.list, differing: outside.differing)
    let isEmptied = outside.list?.identity.size == 0 && domain.identity?.size != 0
    domain.emptied = isEmptied ? .now : nil
    // A list that comes back is not a stale copy: somebody puts it back.
    if outside.list == nil { domain.recent = RecentChanges() }
    domain.snapshot.replaceBase(outside.base)
    domain.noteFile(of: outside.list)
    domain.failure = nil
    let hasChanges = domain.snapshot.changesList
    domain.snapshot.exists =
      hasChanges ? old.exists || !domain.snapshot.isEmpty : outside.list != nil
    domains[location] = domain
    var failure: SystemError?
    do throws(SystemError) { try restore(ours, as: old, location) } catch { failure = error }
    // The values of a schema are no preferences; what they mean for its domain may be anything.
    guard location.place == .schema else {
      enqueue(change(outside, old, ours, location))
      return failure
    }
    if !outside.differing.isEmpty { enqueue(PendingNotice(Changeset(invalidating: location))) }
    return failure
  }

  /// The keys that another owner has not seen as they are here, or that a stale copy has as they
  /// were before the store's changes of the last ten seconds. None, where the list was removed, or
  /// is as a whole an earlier state of the domain: then somebody has put that state back.
  private static func undone(_ outside: Lists.Outside, _ domain: LocationState) -> Set<Key> {
    let (list, old) = (outside.base.values, domain.snapshot)
    let saved = outside.differing.filter { !old.isChanged($0) }
    guard let contents = outside.list else { return [] }
    var ours: Set<Key> = []
    if let statement = domain.owners.news(contents) {
      if let unseen = domain.owners.unseen(saved, by: statement) { return unseen }
      ours = saved.filter { domain.owners.hasChanged($0) && old[$0] != nil }
    }
    guard
      !domain.recent.isEarlierState(
        saved, { list[$0] }, present: { old.isChanged($0) ? list[$0] : old[$0] })
    else { return ours }
    return ours.union(saved.filter { domain.recent.undoes($0, list[$0]) })
  }

  /// Records the keys as they were in the old snapshot, and applies them as unsaved changes.
  private mutating func restore(
    _ keys: Set<Key>, as old: LocationSnapshot, _ location: Location
  ) throws(SystemError) {
    guard !keys.isEmpty else { return }
    let time = max(Timestamp.now, lastTime.next)
    let items = keys.map { Changeset.Item(location, old.restoring($0)) }
    let sequence = try journal?.append(.change(Changeset(items, time: time))) ?? 0
    lastTime = time
    for item in items {
      _ = domains[location]?.apply(item.edit, sequence: sequence, time: time)
    }
  }

  /// The change that readers see: the list's values for keys without an unsaved change, and the
  /// values that were restored.
  private mutating func change(
    _ outside: Lists.Outside, _ old: LocationSnapshot, _ ours: Set<Key>, _ location: Location
  ) -> PendingNotice {
    var change = PendingNotice(Changeset(time: outside.time))
    for key in outside.differing where !old.isChanged(key) {
      let edit = domains[location]?.snapshot.restoring(key) ?? .remove(key)
      change.add(Changeset.Item(location, edit, replacing: old.entry(key)))
      if !ours.contains(key) { domains[location]?.recent.forget(key) }
    }
    let exists = domains[location]?.snapshot.exists ?? false
    if exists != old.exists {
      change.add(Changeset.Item(location, exists ? .createDomain : .removeDomain))
    }
    return change
  }
}
