import PreferenceModel
import PropertyList

/// What profiles, fragments and vendors' lists set, by place. A place that nobody has asked for is
/// missing.
struct AdditionsTable {
  /// What is added to the lists of a place.
  struct Additions: Sendable {
    /// The state of the files that it was read from (`ProfileReading.state`).
    var state: [String]
    var settings: PlaceAdditions
  }

  /// The additions of each place.
  var all: [Place: Additions] = [:]

  /// What is added to the location's list, as far as the additions of its place have been read.
  func added(_ location: Location) -> [Key: StoredValue] {
    all[location.place]?.settings.values[location.domain] ?? [:]
  }

  /// Throws where a fragment, or a vendor's list, of the location cannot be read, or it is not known
  /// what is added to the place.
  func requireReadable(_ location: Location) throws(EngineError) {
    guard let settings = all[location.place]?.settings else { return }
    if let error = settings.error(of: location.domain) { throw error }
  }

  /// The key's value in one location: from a fragment, its list, or a profile, in this order. It is
  /// here, and not in `StoreState`, because each look-up would copy that.
  func find(
    _ key: Key, _ location: Location, _ list: borrowing LocationState
  ) throws(EngineError) -> StoredValue? {
    let found = try list.find(key)
    guard location.place.hasAdditions, let settings = all[location.place]?.settings else {
      return found
    }
    if let error = settings.error(of: location.domain) { throw error }
    guard let added = settings.values[location.domain]?[key] else { return found }
    return found == nil || added.metadata.isOfFile ? added : found
  }
}
