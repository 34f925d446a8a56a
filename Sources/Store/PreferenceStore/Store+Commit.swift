import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

// Changes of the store.

extension Store {
  /// Makes the changes, all or none: appends them to the journal, then publishes them to readers.
  ///
  /// An edit that changes nothing is neither recorded nor written to its list, unless an earlier
  /// edit of the call changed the same key or domain. Throws, with nothing changed, `.readOnly`;
  /// `.invalidDomain`; `.forced` for a place that is never written; `.changedMeanwhile` where a
  /// splice no longer fits the value; EFBIG where a list would be too large to be read again; and
  /// `.unreadable` or `.system` (EACCES, ENOSPC) where a list cannot be read or written or the
  /// journal cannot be appended to; ETIMEDOUT where that has taken until after the deadline. Cost:
  /// O(the values), whatever the size of the domains; a domain's removal O(its keys).
  /// - Parameters:
  ///   - author: the author that observers are told.
  ///   - origin: the client's request that this carries out. Its record stays in the journal until
  ///     the client has its answer. The caller has asked `outcome(of:)` whether it is a repetition.
  ///   - source: what the history says of who made the change.
  ///   - deadline: when who asked no longer waits; nil means never.
  /// - Returns: what changed, and whether the writer has more to do now: a list that had every
  ///   change lacks one, or the history does.
  public func commit(
    _ items: [Changeset.Item], by author: Author? = nil, origin: Origin? = nil,
    from source: ChangeSource = ChangeSource(.unknown), until deadline: Instant? = nil
  ) throws(EngineError) -> (change: Changeset, wakesWriter: Bool) {
    if items.count == 1 {
      try requireReplaceable(items[0].location)
    } else {
      for location in Set(items.map(\.location)) { try requireReplaceable(location) }
    }
    let created = newDomains(items)
    return try lists.state.withLock { state throws(EngineError) in
      let (steps, sizes) = try state.effective(items)
      guard !steps.isEmpty else { return (Changeset(), false) }
      let time = max(Timestamp.now, state.lastTime.next)
      var changeset = Changeset(steps, time: time)
      let maker = source.via == .unknown || !state.history.isOn ? nil : source
      let record = JournalRecord.change(changeset, from: origin, by: maker)
      let sequence = try EngineError.wrapping(items.first?.location.domain) {
        () throws(SystemError) in try state.journal?.append(record, until: deadline) ?? 0
      }
      let isFirst = state.publish(changeset, sizes, sequence: sequence)
      var notice = PendingNotice(changeset, author: author, origin: origin, source: source)
      let hadHistory = state.history.due == nil
      for location in created {
        let item = Changeset.Item(location, .createDomain)
        notice.add(item)
        // The author may show the domain in several places, as a mount does.
        changeset.items.append(item)
      }
      changeset.version = state.enqueue(notice)
      if let origin { state.requests.note(origin, changeset, sequence) }
      return (changeset, isFirst || hadHistory && state.history.due != nil)
    }
  }

  /// The locations in which a first key makes a domain that no place has yet. Observers are
  /// notified of the new domain too.
  private func newDomains(_ items: [Changeset.Item]) -> Set<Location> {
    var created: Set<Location> = []
    var seen: Set<Location> = []
    let unknown = lists.state.withLock { state in
      items.filter { item in
        if case .set = item.edit { !state.domains.hasDomain(at: item.location) } else { false }
      }
    }
    for item in unknown where seen.insert(item.location).inserted {
      let others = SearchList.persistentPlaces.map { Location($0, item.location.domain) }
      if others.allSatisfy({ (try? lists.exists($0)) == false }) { created.insert(item.location) }
    }
    return created
  }

  /// What a client's request changed, if it has been carried out; nil if it has not.
  public func outcome(of origin: Origin) -> Changeset? {
    lists.state.withLock { $0.requests.changeset(origin) }
  }

  /// Notes that an ordered request is over: carried out, or refused, or without effect.
  public func noteProgress(_ origin: Origin) {
    if origin.isOrdered { lists.state.withLock { $0.requests.noteProgress(origin) } }
  }

  /// Notes that the client has its answer: the journal need not keep its request any longer.
  public func noteAnswered(_ origin: Origin) {
    lists.state.withLock { $0.requests.answered(origin) }
  }

  /// Loads the location and checks that its list could be replaced: once for all the changes that
  /// one rewrite takes in, and for each change after a rewrite has failed. Asks no disk where
  /// `prepare` has done so a moment ago.
  private func requireReplaceable(_ location: Location) throws(EngineError) {
    if lists.isReadOnly {
      throw EngineError(.readOnly, domain: location.domain, "mounted with -o ro")
    }
    guard lists.layout.hasLists(location.place), !location.place.isFixed else {
      throw EngineError(
        .forced, domain: location.domain,
        "the place \(location.place.rawValue) is never written; change its files")
    }
    if lists.state.withLock({ $0.domains.isUnsavedAndWell(at: location) }) { return }
    // A list that became unreadable since it was checked is refused without a look at the disk.
    let known = lists.state.withLock { state in
      state.domains[location]?.failure?.reason == .unreadable ? nil : state.checks[location]
    }
    if let known, known.until > .now {
      if let failure = known.failure { throw failure }
    } else {
      try checkReplaceable(location)
    }
    // The list could be replaced again: the reason of the last failure is gone.
    lists.state.withLock { state in
      if state.domains[location]?.failure != nil { state.domains[location]?.failure = nil }
    }
  }

  private func checkReplaceable(_ location: Location) throws(EngineError) {
    _ = try lists.read(location) { _ in }
    let (failure, size) = lists.state.withLock { state in
      (state.domains[location]?.failure, state.domains[location]?.identity?.size ?? 0)
    }
    if let failure, failure.reason == .unreadable { throw failure }
    try lists.requireHome(location)
    try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(lists.layout, location).checkReplaceable(size: UInt64(clamping: size))
    }
  }

  /// Milliseconds after which a check is made again for a change.
  private static let checkPatience: Int64 = 500
  /// Milliseconds for which a check that has not failed counts for a change: one of many lists is
  /// made when the last of them was checked, and must not check the first ones again itself.
  private static let changePatience: Int64 = 10_000
  /// Milliseconds after which a check that has failed is made again for a change.
  private static let failurePatience: Int64 = 50

  /// Whether a change of the location need not be prepared: it asks no disk, or the domain is not
  /// in that place, in which case a change there is rare and asks the disk itself. Cost: a lock.
  public func isPrepared(_ location: Location) -> Bool {
    lists.state.withLock { state in
      guard let domain = state.domains[location] else { return state.unreadable[location] != nil }
      if location.place != .user, !domain.snapshot.exists { return true }
      return state.domains.isUnsavedAndWell(at: location)
        || state.checks[location].map { $0.freshUntil > .now } == true
    }
  }

  /// Reads the location, and checks that its list could be replaced, for a change that must not
  /// wait for a disk. Waits for one itself.
  public func prepare(_ location: Location) {
    var failure: EngineError?
    do throws(EngineError) { try checkReplaceable(location) } catch { failure = error }
    note(failure, of: [location])
  }

  /// Does what `prepare` does for many locations of which none has a list, or changes that wait for
  /// a rewrite: whether one can be made depends on its place alone. Cost: one check for each place.
  /// - Returns: the places in which the check has failed; nothing is noted of their locations.
  public func prepare(absent locations: [Location]) -> Set<Place> {
    var failed: Set<Place> = []
    for (place, locations) in Dictionary(grouping: locations, by: \.place) {
      do throws(EngineError) {
        if let first = locations.first { try checkReplaceable(first) }
        note(nil, of: locations)
      } catch {
        failed.insert(place)
      }
    }
    return failed
  }

  /// Keeps what a check has found.
  private func note(_ failure: EngineError?, of locations: [Location]) {
    let now = Instant.now
    let until = now.advanced(
      milliseconds: failure == nil ? Self.changePatience : Self.checkPatience)
    let freshUntil = now.advanced(
      milliseconds: failure == nil ? Self.checkPatience : Self.failurePatience)
    let check = StoreState.Check(until: until, freshUntil: freshUntil, failure: failure)
    lists.state.withLock { state in
      if state.checks.count > state.mostChecks {
        state.checks = state.checks.filter { $0.value.until > now }
        state.mostChecks = max(Self.leastChecks, 2 * state.checks.count)
      }
      for location in locations { state.checks[location] = check }
    }
  }

  /// So many checks are kept without a look at how old they are. Where a transaction changes more
  /// lists, they are looked at each time when twice as many have come.
  private static let leastChecks = 1000

  /// The locations with changes that are not in their lists, and since when. Loads the lists of
  /// replayed changes, which count as changed long ago.
  public func unsaved() -> [(location: Location, since: Instant)] {
    lists.loadReplayed()
    return lists.state.withLock { $0.domains.unsaved.map { ($0.key, $0.value.since) } }
  }

  /// Whether there are replayed changes for lists that have not been read yet.
  public var hasPending: Bool { lists.state.withLock { !$0.pending.isEmpty } }

  /// Why a store that is only read cannot save what its journal alone has of the location (nil
  /// means of any); nil if the lists have everything.
  public func savingObstacle(_ location: Location?) -> EngineError? {
    let lacking = lists.state.withLock { state in
      (Array(state.pending.keys) + state.domains.unsaved.keys)
        .first { location == nil || location == $0 }
    }
    guard isReadOnly, let lacking else { return nil }
    return EngineError(
      .system(.readOnlyFileSystem), domain: lacking.domain,
      "a change is in the journal alone, and is not saved before \(layout.stateDirectory) can be "
        + "written")
  }
}

extension StoreState {
  /// The items to record: those that change something, and those that may undo an earlier one of
  /// the transaction; and the sizes of the lists with them. Throws `.changedMeanwhile` for a splice
  /// that does not fit the value, and EFBIG where a list would be too large to be read again.
  fileprivate func effective(
    _ items: [Changeset.Item]
  ) throws(EngineError) -> (steps: [Changeset.Item], sizes: ListSizes) {
    var steps: [Changeset.Item] = []
    var sizes = ListSizes()
    var touched = Touched()
    for item in items {
      guard let (old, exists) = domains.state(of: item.edit.key, at: item.location) else {
        continue
      }
      if let edit = item.edit.effective(on: old, exists: exists) {
        steps.append(.init(item.location, edit, replacing: old, of: snapshot(item.location)))
        try sizes.add(edit, replacing: old, at: item.location, domains)
        if items.count > 1 { touched.insert(item) }
      } else if case .splice(let key, let splice) = item.edit, old?.accepts(splice) != true {
        // Another program's list was adopted after `ChangeRules` had looked at the value.
        throw .changedMeanwhile(key, item.location.domain)
      } else if touched.overlaps(item) {
        steps.append(.init(item.location, item.edit, replacing: old, of: snapshot(item.location)))
        try sizes.add(item.edit, replacing: old, at: item.location, domains)
      }
    }
    return (steps, sizes)
  }

  private func snapshot(_ location: Location) -> LocationSnapshot? { domains[location]?.snapshot }

  /// What the items of a transaction have changed so far.
  private struct Touched {
    private var keys: [Location: Set<Key>] = [:]
    private var domains: Set<Location> = []

    mutating func insert(_ item: Changeset.Item) {
      if let key = item.edit.key {
        keys[item.location, default: []].insert(key)
      } else {
        domains.insert(item.location)
      }
    }

    /// Whether something that the item is about has been changed.
    func overlaps(_ item: Changeset.Item) -> Bool {
      if domains.contains(item.location) { return true }
      guard let key = item.edit.key else { return keys[item.location] != nil }
      return keys[item.location]?.contains(key) == true
    }
  }

  /// Publishes a recorded changeset to readers.
  /// - Returns: whether a list that had every change lacks one now.
  fileprivate mutating func publish(
    _ changeset: Changeset, _ sizes: ListSizes, sequence: UInt64
  ) -> Bool {
    lastTime = changeset.time
    if forgetAt == nil { forgetAt = Instant.now.advanced(milliseconds: RecentChanges.duration) }
    var isFirstUnsaved = false
    for item in changeset.items {
      let isFirst = domains[item.location]?.apply(
        item.edit, sequence: sequence, time: changeset.time)
      if isFirst == true { isFirstUnsaved = true }
    }
    for (location, size) in sizes.all { domains[location]?.size = size }
    return isFirstUnsaved
  }
}

/// About how many bytes the lists have with the edits of a transaction in them.
private struct ListSizes {
  private(set) var all: [Location: Int] = [:]

  /// Adds what a list grows by. The size of a value that is set anew is subtracted, that of a
  /// removed one is not: the next rewrite corrects it. Throws EFBIG where the list would be too
  /// large to be read again.
  mutating func add(
    _ edit: Edit, replacing old: StoredValue?, at location: Location, _ domains: ListTable
  ) throws(EngineError) {
    let growth: Int
    switch edit {
    case .set(_, let value, _): growth = value.approximateSize - (old?.approximateSize ?? 0)
    case .splice(_, let splice): growth = splice.count - splice.base
    case .describe, .remove, .createDomain, .removeDomain: return
    }
    let size = (all[location] ?? domains.size(at: location)) + growth
    guard size <= ListFile.largest else {
      throw EngineError(
        .system(.fileTooLarge), domain: location.domain, key: edit.key,
        "the list of the domain would be larger than 1 GiB; remove large values first")
    }
    all[location] = size
  }
}

extension StoredValue {
  /// About how many bytes the value takes in a binary list. Cost: O(values), not O(bytes).
  var approximateSize: Int {
    wholeValue?.approximateSize ?? (byteCount ?? 0) + 5
  }
}

extension Value {
  /// About how many bytes it takes in a binary list. Cost: O(values).
  var approximateSize: Int {
    switch self {
    case .string(let text): text.utf8.count + 5
    case .data(let data): data.count + 5
    case .array(let items): items.reduce(9) { $0 + $1.approximateSize + 4 }
    case .dictionary(let items):
      items.reduce(9) { $0 + $1.key.utf8Count + $1.value.approximateSize + 13 }
    default: 9
    }
  }
}
