import PreferenceModel
import PropertyList
import SystemCalls

/// The lists in memory, by location. It knows which of them lack a change, and which keep values
/// from before changes: those are few among all, and the writer asks for them again and again.
struct ListTable {
  private var lists = LocationTable<LocationState>()

  /// What a list lacks.
  struct Unsaved: Equatable {
    /// Since when it has lacked a change.
    var since: Instant
    /// The number of the first journal record that it may lack.
    var first: UInt64
  }

  /// The lists that lack a change.
  private(set) var unsaved: [Location: Unsaved] = [:]
  /// The lists of which values from before changes are kept.
  private var changed: Set<Location> = []

  /// Whether values from before changes are kept.
  var remembersChanges: Bool { !changed.isEmpty }

  /// The list of a location; nil if it is not in memory. A change in place copies nothing.
  subscript(location: Location) -> LocationState? {
    get { lists[location] }
    _modify {
      var list = lists.take(location)
      let before = (list?.unsaved, list?.recent.isEmpty)
      defer {
        if before != (list?.unsaved, list?.recent.isEmpty) { noteState(of: list, location) }
        lists.put(list, location)
      }
      yield &list
    }
  }

  /// Notes whether the list lacks a change, and whether it has old values to forget.
  private mutating func noteState(of list: LocationState?, _ location: Location) {
    unsaved[location] = list?.unsaved
    if list?.recent.isEmpty == false { changed.insert(location) } else { changed.remove(location) }
  }

  /// Removes a list and returns it; nil if it is not in memory.
  mutating func remove(_ location: Location) -> LocationState? { self[location].take() }

  /// Calls the body with a list, without a copy; nil if it is not in memory.
  func read<Result>(
    _ location: Location, _ body: (borrowing LocationState) throws(EngineError) -> Result
  ) throws(EngineError) -> Result? { try lists.read(location, body) }

  /// Returns what the body finds in the first of the lists in which it finds something.
  func findFirst<Found>(
    in locations: [Location],
    _ body: (Location, borrowing LocationState) throws(EngineError) -> Found?
  ) throws(EngineError) -> LocationTable<LocationState>.Finding<Found> {
    try lists.findFirst(in: locations, body)
  }

  /// Whether the domain's lists in each of the places are in memory. Cost: one hash.
  func has(_ domain: DomainName, in places: [Place]) -> Bool { lists.has(domain, in: places) }

  /// Calls the body with all lists, or those of one place, in no order. Cost: O(domains), without a
  /// copy of any.
  func forEach(in place: Place? = nil, _ body: (Location, borrowing LocationState) -> Void) {
    lists.forEach(in: place, body)
  }

  /// The locations of all lists, in no order. Cost: O(lists), without a copy of any.
  var locations: [Location] { lists.locations }

  /// Whether the list is in memory and has the domain.
  func hasDomain(at location: Location) -> Bool {
    lists.read(location) { $0.snapshot.exists } ?? false
  }

  /// Whether changes of the location wait for a rewrite, and the last one did not fail.
  func isUnsavedAndWell(at location: Location) -> Bool {
    lists.read(location) { $0.unsavedSince != nil && $0.failure == nil } ?? false
  }

  /// What the location has for the key, with unsaved changes and without what profiles force, and
  /// whether the domain exists there; nil if the list is not in memory.
  func state(of key: Key?, at location: Location) -> (entry: StoredValue?, exists: Bool)? {
    lists.read(location) { list in
      let entry = if let key { list.snapshot.entry(key) } else { nil as StoredValue? }
      return (entry, list.snapshot.exists)
    }
  }

  /// About how many bytes the location's list has with all changes in it; 0 if it is not in memory.
  func size(at location: Location) -> Int { lists.read(location) { $0.size } ?? 0 }

  /// Forgets the values that keys of the lists had before changes which are old at that time. Cost:
  /// O(keys that were changed lately).
  /// - Returns: when there is more to forget; nil if nothing is kept.
  mutating func forgetRecent(_ now: Instant) -> Instant? {
    for location in changed { self[location]?.recent.forget(now: now) }
    return changed.compactMap { self[$0]?.recent.deadline }.min()
  }
}

extension LocationState {
  /// What the list lacks; nil means nothing.
  fileprivate var unsaved: ListTable.Unsaved? {
    unsavedSince.map { ListTable.Unsaved(since: $0, first: firstUnsaved) }
  }

  /// The key's value; nil if there is none. Throws the error of a list that cannot be read.
  func find(_ key: Key) throws(EngineError) -> StoredValue? {
    if let failure, failure.reason == .unreadable { throw failure }
    return snapshot.entry(key)
  }
}
