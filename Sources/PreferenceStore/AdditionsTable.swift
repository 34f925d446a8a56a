import PreferenceModel

/// What profiles, fragments and vendors' lists set, by place. A place that nobody has asked for is
/// missing.
struct AdditionsTable {
  /// What is added to the lists of a place.
  struct Additions: Sendable {
    /// The state of the files that it was read from (`ProfileReading.state`).
    var state: [String]
    /// The additions.
    var settings: PlaceAdditions
  }

  /// The additions of each place.
  private(set) var all: [Place: Additions] = [:]
  /// Whether nothing is added to any list.
  private(set) var isEmpty = true

  subscript(place: Place) -> Additions? {
    get { all[place] }
    set {
      all[place] = newValue
      isEmpty = all.values.allSatisfy {
        $0.settings.values.isEmpty && $0.settings.unreadable.isEmpty
      }
    }
  }
}
