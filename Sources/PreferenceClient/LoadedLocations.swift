import PreferenceModel
import PropertyList

/// The locations that a client has loaded. Those of one domain lie side by side, because a look-up
/// asks several places of a domain: all of them together cost one hash.
struct LoadedLocations {
  private struct Row {
    /// The places in which the domain is loaded: a few.
    var places: [Place] = []
    /// The contents in each of the places.
    var snapshots: [DomainSnapshot] = []
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
      guard let row = rows[location.domain], let index = row.places.firstIndex(of: location.place)
      else { return nil }
      return row.snapshots[index]
    }
    set {
      remove(location)
      guard let newValue else { return }
      rows[location.domain, default: Row()].places.append(location.place)
      rows[location.domain, default: Row()].snapshots.append(newValue)
    }
  }

  private mutating func remove(_ location: Location) {
    guard let index = rows[location.domain]?.places.firstIndex(of: location.place) else { return }
    rows[location.domain]?.places.remove(at: index)
    rows[location.domain]?.snapshots.remove(at: index)
    if rows[location.domain]?.places.isEmpty == true { rows[location.domain] = nil }
  }

  /// Changes a location in place; does nothing where it is not loaded.
  mutating func change(_ location: Location, _ body: (inout DomainSnapshot) -> Void) {
    guard let index = rows[location.domain]?.places.firstIndex(of: location.place) else { return }
    body(&rows[location.domain, default: Row()].snapshots[index])
  }

  /// Whether the domain is loaded in each of the places.
  func has(_ domain: DomainName, in places: [Place]) -> Bool {
    guard let row = rows[domain] else { return places.isEmpty }
    return places.allSatisfy(row.places.contains)
  }

  /// Returns the key's value in the first of the locations that has it.
  func find(_ key: Key, in locations: [Location]) -> Finding {
    var last: (domain: DomainName, row: Row)?
    for location in locations {
      if last?.domain != location.domain {
        guard let row = rows[location.domain] else { return .unloaded }
        last = (location.domain, row)
      }
      guard let row = last?.row, let index = row.places.firstIndex(of: location.place) else {
        return .unloaded
      }
      if let stored = row.snapshots[index].entry(key) {
        return .value(LocatedValue(stored, location))
      }
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
