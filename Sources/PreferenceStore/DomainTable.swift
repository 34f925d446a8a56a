import PreferenceModel
import PropertyList

/// The lists in memory, by location. Those of one domain lie side by side, because a look-up asks
/// several places of a domain: all of them together cost one hash.
struct DomainTable {
  private struct Row {
    let name: DomainName
    /// The places whose lists have been in memory. They are few, and each is looked at.
    var places: [Place] = []
    /// The list of each of the places; nil where it has left memory.
    var lists: [Store.Domain?] = []
    /// What there is to find in each list. Most are empty, and are not looked at.
    var contents: [Contents] = []
  }

  private enum Contents {
    case unread, none, some

    init(_ list: Store.Domain?) {
      guard let list else { self = .unread; return }
      self =
        list.failure == nil && list.snapshot.hasNoChanges && list.snapshot.base.isEmpty
        ? .none : .some
    }
  }

  /// What the table knows of a key in one place.
  enum Finding {
    /// The list is not in memory.
    case unread
    case nothing
    case value(StoredValue)
  }

  private var rows: [Row] = []
  private var numbers: [DomainName: Int] = [:]

  /// The number of the domain, by which its places are found without a hash; nil: none of its lists
  /// has been in memory.
  func number(of name: DomainName) -> Int? { numbers[name] }

  /// A key's value in a list. Throws the error of a list that cannot be read. Cost: no copy of the
  /// list's state.
  func find(_ key: Key, at place: Place, ofDomain number: Int?) throws(EngineError) -> Finding {
    guard let number, let cell = rows[number].places.firstIndex(of: place) else { return .unread }
    switch rows[number].contents[cell] {
    case .unread: return .unread
    case .none: return .nothing
    case .some: break
    }
    if let failure = rows[number].lists[cell]?.failure, failure.reason == .unreadable {
      throw failure
    }
    guard let stored = rows[number].lists[cell]?.snapshot.entry(key) else { return .nothing }
    return .value(stored)
  }

  /// Whether the list of the location is in memory.
  func contains(_ place: Place, ofDomain number: Int?) -> Bool {
    guard let number, let cell = rows[number].places.firstIndex(of: place) else { return false }
    return rows[number].contents[cell] != .unread
  }

  /// Whether the list of the location is in memory, and `find` does not throw.
  func isReadable(_ place: Place, ofDomain number: Int?) -> Bool {
    guard let number, let cell = rows[number].places.firstIndex(of: place) else { return false }
    switch rows[number].contents[cell] {
    case .unread: return false
    case .none: return true
    case .some: return rows[number].lists[cell]?.failure?.reason != .unreadable
    }
  }

  /// Whether the list of the location is in memory and has the domain.
  func hasDomain(at location: Location) -> Bool {
    guard let number = numbers[location.domain],
      let cell = rows[number].places.firstIndex(of: location.place)
    else { return false }
    return rows[number].lists[cell]?.snapshot.exists == true
  }

  /// Whether changes of the location wait for a rewrite, and the last one did not fail.
  func isUnsavedAndWell(at location: Location) -> Bool {
    guard let number = numbers[location.domain],
      let cell = rows[number].places.firstIndex(of: location.place)
    else { return false }
    return rows[number].lists[cell]?.unsavedSince != nil
      && rows[number].lists[cell]?.failure == nil
  }

  /// The list of a location. A change in place copies nothing.
  subscript(location: Location) -> Store.Domain? {
    get {
      guard let number = numbers[location.domain],
        let cell = rows[number].places.firstIndex(of: location.place)
      else { return nil }
      return rows[number].lists[cell]
    }
    _modify {
      let (number, cell) = insert(location)
      defer { rows[number].contents[cell] = Contents(rows[number].lists[cell]) }
      yield &rows[number].lists[cell]
    }
  }

  private mutating func insert(_ location: Location) -> (number: Int, cell: Int) {
    let number = numbers[location.domain] ?? rows.endIndex
    if number == rows.endIndex {
      rows.append(Row(name: location.domain))
      numbers[location.domain] = number
    }
    if let cell = rows[number].places.firstIndex(of: location.place) { return (number, cell) }
    rows[number].places.append(location.place)
    rows[number].lists.append(nil)
    rows[number].contents.append(.unread)
    return (number, rows[number].lists.endIndex - 1)
  }

  /// Removes a list and returns it; nil if it is not in memory.
  mutating func remove(_ location: Location) -> Store.Domain? {
    contains(location.place, ofDomain: number(of: location.domain)) ? self[location].take() : nil
  }

  /// All lists, in no order. Cost: O(lists).
  var all: [(location: Location, list: Store.Domain)] {
    rows.flatMap { row in
      zip(row.places, row.lists).compactMap { place, list in
        list.map { (Location(place, row.name), $0) }
      }
    }
  }

  /// Changes every list, but for its keys.
  mutating func changeAll(_ body: (inout Store.Domain) -> Void) {
    for number in rows.indices {
      for cell in rows[number].lists.indices {
        guard var list = rows[number].lists[cell].take() else { continue }
        body(&list)
        rows[number].lists[cell] = list
      }
    }
  }
}
