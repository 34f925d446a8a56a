import Glibc
import PreferenceModel
import PreferenceSchemas
import PropertyList
import SystemCalls

// Lists are read outside of the lock. If two threads read the same list, the first result counts.

extension Lists {
  /// Reads the location's list and puts the replayed edits on top. A list that could not be parsed,
  /// and has not changed since, is not read again: its error is thrown again.
  func load(_ location: Location) throws(EngineError) {
    try requireKnown(location)
    if location.place.hasAdditions { loadAdditions(of: location.place) }
    let start = beginReading()
    defer { endReading(since: start) }
    let before = state.withLock { $0.directories.appearances }
    let (isAbsent, identity) = identity(location)
    if isAbsent { try requireHome(location) }
    if !isAbsent, let known = state.withLock({ $0.unreadable[location] }),
      known.identity == identity
    {
      throw known.error
    }
    do {
      while try !adopt(location, ifAbsentSince: isAbsent ? before : nil) {}
    } catch {
      if error.reason == .unreadable {
        state.withLock { $0.unreadable[location] = (identity, error) }
      }
      // After an error of the system the next reader tries again, because it may pass; so does each
      // record of the history. The log has a few of these lines.
      if case .system(let reason) = error.reason {
        log(.refusal("\(error)", reason))
      } else {
        log("\(error)")
      }
      throw error
    }
  }

  /// Reads the lists of all replayed changes. One that cannot be read is logged; its changes stay in
  /// the journal, for another try. Waits for a disk.
  func loadReplayed() {
    for location in state.withLock({ Array($0.pending.keys) }) {
      do { try load(location) } catch {}
    }
  }

  /// Throws where no list can have the domain's name, or where it is not known whose list it is.
  private func requireKnown(_ location: Location) throws(EngineError) {
    guard location.domain.canNameList else {
      throw EngineError(
        .invalidDomain, domain: location.domain,
        "no list can have this name (1 to 200 bytes, no slash, not .GlobalPreferences)")
    }
    if location.place == .ownManaged, layout.isUserUnknown {
      throw EngineError(
        .unreadable, domain: location.domain,
        "managed lists of users cannot be read, because the system does not know the name of user "
          + "\(geteuid()) now; it is asked again every 5 s")
    }
  }

  /// Reads the location and adopts it, unless a list appears meanwhile.
  /// - Parameter before: `StoreState.Directories.appearances` when the location had no list, which
  ///   is not looked for again while that is the count; nil if it has one.
  /// - Returns: whether it was adopted; if not, it must be read again.
  private func adopt(
    _ location: Location, ifAbsentSince before: Int?
  ) throws(EngineError) -> Bool {
    let appearances = state.withLock { $0.directories.appearances }
    // Most places of a domain have no list: one stat(2) each.
    let found = appearances == before ? Found() : try contents(location)
    let (domain, values) = (found.domain, found.domain.snapshot.base.values)
    if isReadOnly { try reread(location) }
    // What the decoded values of a large list took is in pieces.
    if values.isPacked, domain.format != .binary { Memory.giveBack() }
    return state.withLock { state in
      guard state.directories.appearances == appearances else { return false }
      // A reader may be quicker than the thread that hears of new lists.
      if domain.identity != nil, !found.isOwn, state.domains[location] == nil {
        noteIfNew(location, &state)
      }
      if state.adopt(found, at: location) {
        noteLook(
          location, values, domain.identity, isFirst: !found.isOwn, owners: domain.owners,
          &state)
      }
      return true
    }
  }

  /// A number that is a different one whenever a list has appeared that was not in memory.
  public var appearances: Int { state.withLock { $0.directories.appearances } }

  /// Whether nothing is at the location: no list, and nothing that adds keys to it. False where that
  /// cannot be told. Cost: one stat(2); the first time, the additions of the place are read.
  public func isAbsent(_ location: Location) -> Bool {
    do throws(EngineError) { return try modified(location) == nil } catch { return false }
  }

  /// Keeps in memory that nothing is at the location, if that is so: no list, and nothing that adds
  /// keys to it. Most places of most domains have nothing. Cost: one stat(2), unless `isAbsent`,
  /// and a lock or two; for a schema, a stat(2) for each directory of schemas of GSettings.
  /// - Parameters:
  ///   - appearances: what the property of that name was before.
  ///   - isAbsent: whether it was seen since then that there is no list.
  /// - Returns: whether that was kept; if not, the location must be read.
  public func keepNothing(
    at location: Location, since appearances: Int, isAbsent: Bool = false
  ) -> Bool {
    if isReadOnly || isLoaded(location) { return false }
    do throws(EngineError) {
      try requireKnown(location)
      try requireHome(location)
    } catch { return false }
    if location.place.hasAdditions { loadAdditions(of: location.place) }
    let start = beginReading()
    defer { endReading(since: start) }
    guard isAbsent ? !isOfMachine(location) : identity(location).isAbsent else { return false }
    return state.withLock { state in
      let settings = state.additions.all[location.place]?.settings
      guard state.directories.appearances == appearances, state.pending[location] == nil,
        settings?.unreadable[location.domain] == nil, state.additions.added(location).isEmpty,
        state.adopt(Found(), at: location)
      else { return false }
      noteLook(location, .decoded([:]), nil, isFirst: true, &state)
      return true
    }
  }

  /// The names of the lists that the places have. Waits for disks.
  public func names(in places: Set<Place>) -> ListNames { ListNames(layout, of: places) }

  /// Reads the journal's edits of the location again. In a read-only store another process owns the
  /// journal and releases its records; the journal is read after the list, so that no edit older
  /// than the list is put on top of it.
  private func reread(_ location: Location) throws(EngineError) {
    let replay = try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try Journal.read(layout.stateDirectory, keepsDamaged: false, report: log)
    }
    var present = StoreState()
    present.replay(replay.entries)
    let pending = present.pending[location]
    state.withLock { $0.pending[location] = pending }
  }

  /// Whether a schema of GSettings describes the domain, if no list does.
  private func isOfMachine(_ location: Location) -> Bool {
    location.place == .schema && machineSchemas.has(location.domain)
  }

  /// Whether there is no list, and the state of the list that there is; false and nil where that
  /// cannot be told.
  private func identity(_ location: Location) -> (isAbsent: Bool, FileIdentity?) {
    do throws(SystemError) {
      let identity = try ListFile(layout, location).identity()
      return (identity == nil && !isOfMachine(location), identity)
    } catch {
      return (false, nil)
    }
  }

  /// A location as it was read.
  struct Found {
    var domain = LocationState()
    /// What the list lacks because another owner, which has written it, had not seen it.
    var unseen: [Edit] = []
    /// The keys of which the metadata file has all that the journal has.
    var known: Set<Key> = []
    /// Whether the list is as this store has written it.
    var isOwn = false
  }

  /// Reads list and metadata file of a location.
  private func contents(_ location: Location) throws(EngineError) -> Found {
    var found = Found()
    var domain = LocationState()
    var base = LocationSnapshot.Base()
    let list = try self.list(location)
    if let list {
      base.values = list.values
      base.modified = list.identity.modified
      domain.snapshot.exists = true
      domain.noteFile(of: list)
      if list.identity.size == 0, Self.isNew(list.identity) { domain.emptied = .now }
    } else if location.place == .schema, let known = machineSchema(of: location.domain) {
      // Without an identity, as it is no list: the look at changed lists passes it over.
      base = known
      domain.snapshot.exists = true
    }
    let kept = MetadataFile(path: layout.metadataPath(location)).read()
    found.isOwn = domain.identity.map { $0.matches(kept?.identity) } ?? false
    if let kept {
      base.restore(kept, isSameList: found.isOwn || domain.identity == nil && kept.identity == nil)
    }
    domain.snapshot.adopt(base)
    let known = kept?.owners.flatMap { ListOwners.decoded($0) }
    if let known { domain.owners = known.owners }
    (found.unseen, found.known) = domain.owners.resume(
      list, kept: known?.values ?? [:], replayed: lastReplayed(location))
    found.domain = domain
    return found
  }

  /// The keys that the journal has changes of, each with the number of the last record; none where
  /// the domain was removed in between.
  private func lastReplayed(_ location: Location) -> [Key: UInt64] {
    let edits = state.withLock { $0.pending[location] } ?? []
    guard !isReadOnly, !edits.contains(where: { $0.edit == .removeDomain }) else { return [:] }
    let last = edits.compactMap { edit in edit.edit.key.map { ($0, edit.sequence) } }
    return Dictionary(last, uniquingKeysWith: { $1 })
  }

  /// Whether the file was changed a moment ago: a program may be about to write it.
  private static func isNew(_ identity: FileIdentity) -> Bool {
    identity.changed.map { Timestamp.now.nanoseconds(after: $0) < 5_000_000_000 } ?? false
  }

  /// Reads the location's list; nil if there is none. A list that cannot be parsed is
  /// `.unreadable`.
  func list(_ location: Location) throws(EngineError) -> ListFile.Contents? {
    if location.place == .schema { return schema(of: location) }
    guard layout.hasLists(location.place) else { return nil }
    let list = try present(location)
    if list == nil { try requireHome(location) }
    return list
  }

  /// Reads the location's list, of a place that has lists; nil if there is none.
  private func present(_ location: Location) throws(EngineError) -> ListFile.Contents? {
    do throws(ListFile.ReadError) {
      // A policy that is not whole is none, and so are settings and declarations.
      let isUsers = ![.settings, .declared].contains(location.domain) && !location.place.isManaged
      let file = ListFile(layout, location)
      let list = try file.read(hidesUnreadable: isUsers)
      for (key, reason) in list?.hidden.sorted(by: { $0.key < $1.key }) ?? [] {
        let sentence = "the value cannot be read and is left alone: \(file.path), \(reason)"
        log("\(location.domain) \(key): \(sentence)")
      }
      return list
    } catch {
      switch error {
      case .system(let error): throw EngineError(error, domain: location.domain)
      case .format(let sentence):
        throw EngineError(
          .unreadable, domain: location.domain,
          "the list cannot be read and is left alone: \(sentence)")
      }
    }
  }

  /// Reads a schema. One that cannot be read is none: the domain goes on without it, with a line in
  /// the log. It counts as an empty list, so that it is not read again before it changes.
  private func schema(of location: Location) -> ListFile.Contents? {
    let file = ListFile(layout, location)
    guard let identity = try? file.identity() else { return nil }
    let reason: String
    do {
      guard identity.size <= Int64(Schema.largest) else {
        throw ListFile.ReadError.format("\(file.path): it has more than 16 MiB")
      }
      guard let contents = try file.read() else { return nil }
      _ = try Schema(manifest: contents.values.dictionary)
      return contents
    } catch ListFile.ReadError.system(let error) {
      reason = "\(error)"
    } catch ListFile.ReadError.format(let sentence) {
      reason = sentence
    } catch {
      reason = "\(file.path): \(error)"
    }
    log("\(location.domain): this schema is ignored: \(reason)")
    return ListFile.Contents(values: .decoded([:]), format: .xml, identity: identity)
  }

  /// What a schema of GSettings says of the domain; nil if none describes it.
  private func machineSchema(of domain: DomainName) -> LocationSnapshot.Base? {
    guard let values = machineSchemas.manifest(of: domain) else { return nil }
    var base = LocationSnapshot.Base()
    base.values = ListValues(packingIfLarge: values)
    if let modified = machineSchemas.modified(of: domain) { base.modified = modified }
    return base
  }

  /// Has the schemas that are no lists looked for again, of domains that have none too: those of
  /// GSettings may have changed. They are read when they are next asked for.
  public func forgetMachineSchemas() {
    state.withLock { state in
      let locations = state.domains.locations.filter {
        $0.place == .schema && state.domains[$0]?.identity == nil
      }
      state.forget(schemas: Set(locations))
    }
  }

  /// Notes a list as it was read or written, for the next owner.
  func noteLook(
    _ location: Location, _ values: ListValues, _ identity: FileIdentity?, isFirst: Bool,
    owners: ListOwners = ListOwners(), _ state: inout StoreState
  ) {
    guard let seen, state.history.isOn, location.place != .schema else { return }
    let look = SeenLists.Look(
      location: location, values: values, identity: identity, isFirst: isFirst,
      owners: owners)
    if seen.note(look) { state.history.wake(hasRead: isFirst) }
  }
}

extension LocationSnapshot.Base {
  /// Adopts the metadata file of a list, as far as it fits the list's values.
  /// - Parameter isSameList: whether the file was written for the list in its present state.
  fileprivate mutating func restore(_ kept: MetadataFile.Contents, isSameList: Bool) {
    made = kept.made
    if isSameList {
      modified = kept.modified
      metadata = kept.keys
    } else {
      // Which keys another program changed meanwhile is unknown: the time of all of them moves.
      metadata = kept.keys.filter { values[$0.key] != nil }.mapValues { old in
        let time = max(old.modified, modified)
        let changed = old.lastChanged > time ? old.lastChanged : nil
        return Metadata(text: old.text, modified: time, mode: old.mode, changed: changed)
      }
    }
    for (key, known) in kept.keys {
      guard let text = known.text, let value = values[key] else { continue }
      if !ValueText.denotes(text, value) { metadata[key]?.text = nil }
    }
  }
}

extension StoreState {
  /// Forgets schemas, and has their readers look again.
  mutating func forget(schemas locations: Set<Location>) {
    for location in locations { domains[location] = nil }
    // What is being read is as it was before.
    directories.appearances += 1
    var changeset = Changeset(time: .now)
    changeset.invalidated = locations
    enqueue(PendingNotice(changeset))
  }

  /// Adopts a location that was read, with the replayed edits on top; one that is loaded already
  /// stays.
  /// - Returns: whether it was not loaded before.
  fileprivate mutating func adopt(_ found: Lists.Found, at location: Location) -> Bool {
    unreadable[location] = nil
    guard domains[location] == nil else { return false }
    var domain = found.domain
    let edits = pending.removeValue(forKey: location) ?? []
    replay(
      edits.filter { edit in edit.edit.key.map { !found.known.contains($0) } ?? true },
      on: &domain, location)
    restore(found.unseen, to: &domain, location)
    // Its list is rewritten at once: if owners end one after the other, within a second each, the
    // journal must not grow for ever.
    if domain.unsavedSince != nil { domain.unsavedSince = Instant(nanoseconds: 0) }
    domains[location] = domain
    return true
  }

  /// Makes changes again that another owner has overwritten; none in a read-only store, which shows
  /// the list as it is. Where the journal cannot record them, the metadata file has them.
  private mutating func restore(
    _ edits: [Edit], to domain: inout LocationState, _ location: Location
  ) {
    guard let last = journal?.lastSequence, !edits.isEmpty else { return }
    let time = max(Timestamp.now, lastTime.next)
    lastTime = time
    let items = edits.compactMap { Changeset.Item($0, on: domain.snapshot, location) }
    let changes = edits.map { Changeset.Item(location, $0) }
    let sequence = (try? journal?.append(.change(Changeset(changes, time: time)))) ?? last
    for edit in edits { _ = domain.apply(edit, sequence: sequence, time: time) }
    history.addReplayed(items, ChangeSource(.unknown), time)
  }

  /// Applies the replayed edits of a location, and adds to the history what it lacks of them: a
  /// transaction is one change there, of whoever made it.
  private mutating func replay(
    _ edits: [Pending], on domain: inout LocationState, _ location: Location
  ) {
    var items: [Changeset.Item] = []
    for (index, edit) in edits.enumerated() {
      if edit.time > history.known,
        let item = Changeset.Item(edit.edit, on: domain.snapshot, location)
      {
        items.append(item)
      }
      _ = domain.apply(edit.edit, sequence: edit.sequence, time: edit.time)
      if index + 1 < edits.count, edits[index + 1].time == edit.time { continue }
      history.addReplayed(items, edit.source ?? ChangeSource(.unknown), edit.time)
      items = []
    }
  }
}
