import PreferenceModel
import PropertyList

/// The locations that a client has loaded. Those of one domain lie side by side, because a look-up
/// asks several places of a domain: all of them together cost one hash, and a place without keys
/// one bit.
struct LoadedLocations {
  /// What is loaded of one domain.
  private struct Row {
    /// The places in which the domain is loaded: first those with a `Place.index`, in its order,
    /// then those with a name of their own.
    private(set) var places: [Place] = []
    /// The contents in each of the places.
    private(set) var snapshots: [DomainSnapshot] = []
    /// The indices of the places, a bit for each.
    private var indexed: UInt16 = 0
    /// Those of the indices whose contents have a key.
    private var filled: UInt16 = 0

    /// Where the contents in the place are; nil: the domain is not loaded there.
    func position(of place: Place) -> Int? {
      guard let index = place.index else {
        return places[indexed.nonzeroBitCount...].firstIndex(of: place)
      }
      return indexed & 1 << index == 0 ? nil : position(of: index)
    }

    private func position(of index: Int) -> Int { (indexed & (1 << index - 1)).nonzeroBitCount }

    mutating func insert(_ snapshot: DomainSnapshot, in place: Place) {
      if let position = position(of: place) {
        snapshots[position] = snapshot
      } else {
        let position = place.index.map(position(of:)) ?? places.count
        if let index = place.index { indexed |= 1 << index }
        places.insert(place, at: position)
        snapshots.insert(snapshot, at: position)
      }
      noteKeys(in: place)
    }

    mutating func remove(_ place: Place) {
      guard let position = position(of: place) else { return }
      if let index = place.index { indexed &= ~(1 << index) }
      places.remove(at: position)
      snapshots.remove(at: position)
    }

    mutating func change(_ place: Place, _ body: (inout DomainSnapshot) -> Void) {
      guard let position = position(of: place) else { return }
      body(&snapshots[position])
      noteKeys(in: place)
    }

    private mutating func noteKeys(in place: Place) {
      guard let index = place.index else { return }
      filled &= ~(1 << index)
      if !snapshots[position(of: index)].hasNoKeys { filled |= 1 << index }
    }

    /// Whether the domain has no key in the place, or is not loaded there.
    func hasNoKeys(in place: Place) -> Bool { place.index.map { filled & 1 << $0 == 0 } ?? false }
  }

  /// What is known of a key in several locations.
  enum Finding {
    /// One of the locations is not loaded, and none before it has the key.
    case unloaded
    case nothing
    case value(LocatedValue)
  }

  private var rows: [DomainName: Row] = [:]

  /// The contents of a location; nil: it is not loaded.
  subscript(location: Location) -> DomainSnapshot? {
    get {
      guard let row = rows[location.domain], let position = row.position(of: location.place) else {
        return nil
      }
      return row.snapshots[position]
    }
    set {
      if let newValue {
        rows[location.domain, default: Row()].insert(newValue, in: location.place)
      } else {
        rows[location.domain]?.remove(location.place)
        if rows[location.domain]?.places.isEmpty == true { rows[location.domain] = nil }
      }
    }
  }

  /// Changes a location in place; does nothing where it is not loaded.
  mutating func change(_ location: Location, _ body: (inout DomainSnapshot) -> Void) {
    rows[location.domain]?.change(location.place, body)
  }

  /// Whether the domain is loaded in each of the places.
  func has(_ domain: DomainName, in places: [Place]) -> Bool {
    guard let row = rows[domain] else { return places.isEmpty }
    return places.allSatisfy { row.position(of: $0) != nil }
  }

  /// Returns the key's value in the first of the locations that has it. Cost: a hash for each run of
  /// locations of one domain, and a hash look-up in each that has keys.
  func find(_ key: Key, in locations: [Location]) -> Finding {
    var index = locations.startIndex
    while index < locations.endIndex {
      let domain = locations[index].domain
      guard let row = rows[domain] else { return .unloaded }
      repeat {
        let place = locations[index].place
        guard let position = row.position(of: place) else { return .unloaded }
        if !row.hasNoKeys(in: place), let stored = row.snapshots[position].entry(key) {
          return .value(LocatedValue(stored, locations[index]))
        }
        index += 1
      } while index < locations.endIndex && locations[index].domain == domain
    }
    return .nothing
  }

  /// Every location.
  var all: [Location: DomainSnapshot] {
    var all: [Location: DomainSnapshot] = [:]
    for (domain, row) in rows {
      for (place, snapshot) in zip(row.places, row.snapshots) {
        all[Location(place, domain)] = snapshot
      }
    }
    return all
  }
}
