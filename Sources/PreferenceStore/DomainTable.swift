import PreferenceModel
import PropertyList
import SystemCalls

/// The lists in memory, by location. Those of one domain lie side by side, because a look-up asks
/// several places of a domain: all of them together cost one hash.
struct DomainTable {
  fileprivate struct Row {
    let name: DomainName
    /// The places whose lists have been in memory.
    var places: [Place] = []
    /// The list of each of the places; an empty one where it is not in memory. An array of optional
    /// lists would be slower: looking into one copies it.
    var lists: [LocationState] = []
    /// What there is to find in each list. Most are empty, and are not looked at.
    var contents: [Contents] = []
  }

  fileprivate enum Contents {
    /// The list is not in memory.
    case unread
    /// The list has no keys, and there are no changes.
    case none
    /// The list has every change and can be read: what is in `lists` need not be looked at. That
    /// keeps the object; a reference of its own would be counted at each look-up, which takes a
    /// fifth of its time.
    case list(Unmanaged<DomainSnapshot.List>)
    /// There are changes or an error: what is in `lists` says more.
    case some

    init(_ list: borrowing LocationState) {
      guard list.failure == nil, let whole = list.snapshot.wholeList else {
        self = .some
        return
      }
      self = list.snapshot.base.isEmpty ? .none : .list(.passUnretained(whole))
    }

    var isUnread: Bool { if case .unread = self { true } else { false } }
  }

  /// What the table knows of a key in one place.
  enum Finding {
    /// The list is not in memory.
    case unread
    case nothing
    case value(StoredValue)
  }

  /// What stands where a list is not in memory.
  fileprivate static let nothing = LocationState()

  private var rows: [Row] = []
  private var numbers: [DomainName: Int] = [:]
  /// For each row, by `Place.index` and with four bits for each: the number of the place among the
  /// row's `places`; 15: none, or it must be searched for. They are no part of the row, because to
  /// ask a row for something copies it.
  private var cells: [UInt64] = []

  /// What a list lacks.
  struct Unsaved: Equatable {
    /// Since when it has lacked a change.
    var since: Instant
    /// The number of the first journal record that it may lack.
    var first: UInt64
  }

  /// The lists that lack a change. They are few among all lists, and the writer asks for them again
  /// and again.
  private(set) var unsaved: [Location: Unsaved] = [:]
  /// The lists of which values from before changes are kept.
  private var changed: Set<Location> = []

  /// The numbers of the domains that were asked for last. A look-up is mostly about one domain and
  /// the global one, and the next look-up about the same: these are found without a hash.
  private var latest = (0, 0)

  /// The number of the domain, by which its places are found; nil: none of its lists has been in
  /// memory.
  mutating func number(of name: DomainName) -> Int? {
    let number = row(of: name)
    if let number, number != latest.0, number != latest.1 { latest = (number, latest.0) }
    return number
  }

  private func row(of name: DomainName) -> Int? {
    if isName(name, ofDomain: latest.0) { return latest.0 }
    if isName(name, ofDomain: latest.1) { return latest.1 }
    return numbers[name]
  }

  private func isName(_ name: DomainName, ofDomain number: Int) -> Bool {
    number < rows.count && rows[number].name == name
  }

  /// The number of the place among those of the row; nil: its list has never been in memory.
  private func cell(of place: Place, inRow number: Int) -> Int? {
    guard let index = place.index else { return rows[number].places.firstIndex(of: place) }
    let cell = Int(cells[number] >> (4 * UInt64(index)) & 15)
    if cell < 15 { return cell }
    return rows[number].places.count > 15 ? rows[number].places.firstIndex(of: place) : nil
  }

  private mutating func addCell(of place: Place, toRow number: Int) -> Int {
    let cell = rows[number].places.endIndex
    if let index = place.index, cell < 15 {
      let shift = 4 * UInt64(index)
      cells[number] = cells[number] & ~(15 << shift) | UInt64(cell) << shift
    }
    rows[number].places.append(place)
    rows[number].lists.append(Self.nothing)
    rows[number].contents.append(.unread)
    return cell
  }

  /// A key's value in a list. Throws the error of a list that cannot be read. Cost: no copy of the
  /// list's state.
  func find(_ key: Key, at place: Place, ofDomain number: Int?) throws(EngineError) -> Finding {
    guard let number, let cell = cell(of: place, inRow: number) else { return .unread }
    switch rows[number].contents[cell] {
    case .unread: return .unread
    case .none: return .nothing
    case .list(let list):
      guard let stored = list._withUnsafeGuaranteedRef({ $0.entry(key) }) else { return .nothing }
      return .value(stored)
    case .some: break
    }
    if let failure = rows[number].lists[cell].failure, failure.reason == .unreadable {
      throw failure
    }
    guard let stored = rows[number].lists[cell].snapshot.entry(key) else { return .nothing }
    return .value(stored)
  }

  /// Whether the list of the location is in memory.
  func contains(_ place: Place, ofDomain number: Int?) -> Bool {
    guard let number, let cell = cell(of: place, inRow: number) else { return false }
    return !rows[number].contents[cell].isUnread
  }

  /// Whether the list of the location is in memory, and `find` does not throw.
  func isReadable(_ place: Place, ofDomain number: Int?) -> Bool {
    guard let number, let cell = cell(of: place, inRow: number) else { return false }
    switch rows[number].contents[cell] {
    case .unread: return false
    case .none, .list: return true
    case .some: return rows[number].lists[cell].failure?.reason != .unreadable
    }
  }

  /// Whether the list of the location is in memory and has the domain.
  func hasDomain(at location: Location) -> Bool {
    guard let number = row(of: location.domain),
      let cell = cell(of: location.place, inRow: number)
    else { return false }
    return rows[number].lists[cell].snapshot.exists == true
  }

  /// Whether changes of the location wait for a rewrite, and the last one did not fail.
  func isUnsavedAndWell(at location: Location) -> Bool {
    guard let number = row(of: location.domain),
      let cell = cell(of: location.place, inRow: number)
    else { return false }
    return rows[number].lists[cell].unsavedSince != nil
      && rows[number].lists[cell].failure == nil
  }

  /// What the location has for the key, with unsaved changes and without what profiles force, and
  /// whether the domain exists there; nil: the list is not in memory. Cost: no copy of the list's
  /// state.
  func state(of key: Key?, at location: Location) -> (entry: StoredValue?, exists: Bool)? {
    guard let number = row(of: location.domain),
      let cell = cell(of: location.place, inRow: number), !rows[number].contents[cell].isUnread
    else { return nil }
    let entry = key.flatMap { rows[number].lists[cell].snapshot.entry($0) }
    return (entry, rows[number].lists[cell].snapshot.exists)
  }

  /// About how many bytes the location's list has with all changes in it; 0 if it is not in memory.
  func size(at location: Location) -> Int {
    guard let number = row(of: location.domain),
      let cell = cell(of: location.place, inRow: number)
    else { return 0 }
    return rows[number].lists[cell].size
  }

  /// The list of a location; nil: it is not in memory. A change in place copies nothing.
  subscript(location: Location) -> LocationState? {
    get {
      guard let number = row(of: location.domain),
        let cell = cell(of: location.place, inRow: number)
      else { return nil }
      return rows[number].list(cell)
    }
    _modify {
      let (number, cell) = insert(location)
      var list = rows[number].takeList(cell)
      let before = (list?.unsaved, list?.recent.isEmpty)
      defer {
        if before != (list?.unsaved, list?.recent.isEmpty) { noteState(of: list, location) }
        rows[number].put(list, cell)
      }
      yield &list
    }
  }

  /// Notes whether the list lacks a change, and whether it has old values to forget.
  private mutating func noteState(of list: LocationState?, _ location: Location) {
    unsaved[location] = list?.unsaved
    if list?.recent.isEmpty == false { changed.insert(location) } else { changed.remove(location) }
  }

  private mutating func insert(_ location: Location) -> (number: Int, cell: Int) {
    let number = row(of: location.domain) ?? rows.endIndex
    if number == rows.endIndex {
      rows.append(Row(name: location.domain))
      cells.append(.max)
      numbers[location.domain] = number
    }
    if let cell = cell(of: location.place, inRow: number) { return (number, cell) }
    return (number, addCell(of: location.place, toRow: number))
  }

  /// Removes a list and returns it; nil if it is not in memory.
  mutating func remove(_ location: Location) -> LocationState? {
    contains(location.place, ofDomain: number(of: location.domain)) ? self[location].take() : nil
  }

  /// All lists, in no order. Cost: O(lists).
  var all: [(location: Location, list: LocationState)] {
    rows.flatMap { row in
      row.places.indices.compactMap { cell in
        row.list(cell).map { (Location(row.places[cell], row.name), $0) }
      }
    }
  }

  /// The locations of all lists, in no order. Cost: O(lists), without a copy of any.
  var locations: [Location] {
    rows.flatMap { row in
      row.places.indices.compactMap { cell in
        row.contents[cell].isUnread ? nil : Location(row.places[cell], row.name)
      }
    }
  }

  /// Forgets the values that keys of the lists had before changes which are old at that time. Cost:
  /// O(keys that were changed lately).
  /// - Returns: when there is more to forget; nil: nothing is kept.
  mutating func forgetRecent(_ now: Instant) -> Instant? {
    for location in changed { self[location]?.recent.forget(now: now) }
    return changed.compactMap { self[$0]?.recent.deadline }.min()
  }
}

extension LocationState {
  /// What the list lacks; nil: nothing.
  fileprivate var unsaved: DomainTable.Unsaved? {
    unsavedSince.map { DomainTable.Unsaved(since: $0, first: firstUnsaved) }
  }
}

extension DomainTable.Row {
  /// The list; nil: it is not in memory.
  fileprivate func list(_ cell: Int) -> LocationState? {
    contents[cell].isUnread ? nil : lists[cell]
  }

  /// Moves the list out, so that changing it copies nothing.
  fileprivate mutating func takeList(_ cell: Int) -> LocationState? {
    guard !contents[cell].isUnread else { return nil }
    contents[cell] = .unread
    return exchange(&lists[cell], DomainTable.nothing)
  }

  fileprivate mutating func put(_ list: consuming LocationState?, _ cell: Int) {
    guard let list else { return }
    contents[cell] = DomainTable.Contents(list)
    lists[cell] = list
  }

  private func exchange(_ place: inout LocationState, _ new: LocationState) -> LocationState {
    var new = new
    swap(&place, &new)
    return new
  }
}
