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
    // Whoever has written within the same second has done it by now.
    if let since = known.unsureSince, Instant.now.milliseconds(after: since) > 1000 {
      state.withLock { $0.domains[location]?.unsureSince = nil }
      return true
    }
    return try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(layout, location).currentIdentity() != known.identity
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
    let (ours, theirs) = domain.merge(outside, isMachineWide: location.place.isMachineWide)
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
    let edits =
      ours.map { old.restoring($0) } + theirs.map { outside.base.restoring($0) }
    let time = max(Timestamp.now, lastTime.next)
    do throws(SystemError) {
      try restore(edits, location, time)
    } catch {
      failure = error
      domains[location]?.owners.forgetChanges()
    }
    // The values of a schema are no preferences; what they mean for its domain may be anything.
    guard location.place == .schema else {
      for change in changes(outside, old, location, restored: ours.union(theirs), time) {
        enqueue(change)
      }
      return failure
    }
    if !outside.differing.isEmpty { enqueue(PendingNotice(Changeset(invalidating: location))) }
    return failure
  }

  /// Records the edits, and applies them as unsaved changes.
  private mutating func restore(
    _ edits: [Edit], _ location: Location, _ time: Timestamp
  ) throws(SystemError) {
    guard !edits.isEmpty else { return }
    let items = edits.map { Changeset.Item(location, $0) }
    let sequence = try journal?.append(.change(Changeset(items, time: time))) ?? 0
    lastTime = time
    for edit in edits {
      _ = domains[location]?.apply(edit, sequence: sequence, time: time)
    }
  }

  /// The changes that readers see: the list's values for keys without an unsaved change, by the
  /// machine that has changed them, and those that were restored, by the time that they have now.
  private mutating func changes(
    _ outside: Lists.Outside, _ old: LocationSnapshot, _ location: Location, restored: Set<Key>,
    _ time: Timestamp
  ) -> [PendingNotice] {
    var again = PendingNotice(Changeset(time: time))
    var others: [String: PendingNotice] = ["": PendingNotice(Changeset(time: outside.time))]
    for key in outside.differing.filter({ !old.isChanged($0) }).union(restored) {
      let edit = domains[location]?.snapshot.restoring(key) ?? .remove(key)
      let item = Changeset.Item(location, edit, replacing: old.entry(key))
      if restored.contains(key) {
        again.add(item)
        continue
      }
      domains[location]?.recent.forget(key)
      let source = ChangeSource(listFrom: domains[location]?.owners.host(of: key))
      let change = PendingNotice(Changeset(time: outside.time), source: source)
      others[source.program, default: change].add(item)
    }
    let exists = domains[location]?.snapshot.exists ?? false
    if exists != old.exists {
      others[""]?.add(Changeset.Item(location, exists ? .createDomain : .removeDomain))
    }
    return others.sorted { $0.key > $1.key }.map(\.value) + [again]
  }
}

extension LocationState {
  /// Notes what the list says of its owners.
  /// - Returns: the keys that count as they were, because another owner has not seen that, or a stale
  ///   copy has them as they were before the store's changes of the last ten seconds; and those that
  ///   were set again after an earlier list, and of which this one has something newer. None, where
  ///   the list was removed, or is as a whole an earlier state of the domain: then somebody has put
  ///   that state back.
  fileprivate mutating func merge(
    _ outside: Lists.Outside, isMachineWide: Bool
  ) -> (ours: Set<Key>, theirs: Set<Key>) {
    let news = isMachineWide ? nil : outside.list.flatMap { owners.news($0) }
    guard let news else {
      owners.adopt(outside.list, differing: outside.differing)
      return (outside.list == nil || isMachineWide ? [] : undone(outside), [])
    }
    let isNamed = owners.isNamed(in: news)
    let merged = owners.merge(news, outside.base.values, snapshot)
    // What this owner changed before it knew of others has no rewrite.
    return isNamed ? merged : (merged.ours.union(undone(outside)), merged.theirs)
  }

  /// The keys that the list has as they were before the store's changes of the last ten seconds.
  private func undone(_ outside: Lists.Outside) -> Set<Key> {
    let (list, old) = (outside.base.values, snapshot)
    let saved = outside.differing.filter { !old.isChanged($0) }
    let isEarlier = recent.isEarlierState(
      saved, { list[$0] }, present: { old.isChanged($0) ? list[$0] : old[$0] })
    return isEarlier ? [] : saved.filter { recent.undoes($0, list[$0]) }
  }
}

extension LocationSnapshot.Base {
  /// The edit that brings the key to its state in this list.
  fileprivate func restoring(_ key: Key) -> Edit {
    values[key].map { .set(key, $0, .canonical) } ?? .remove(key)
  }
}

extension ChangeSource {
  /// The source of what another program has changed in a list.
  /// - Parameter host: the machine whose owner it was; nil if it was no owner.
  init(listFrom host: String?) {
    self.init(.list)
    program = host ?? ""
  }
}
