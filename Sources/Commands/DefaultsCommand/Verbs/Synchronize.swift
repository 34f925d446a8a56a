import PreferenceModel
import PropertyList

/// `synchronize`: waits until the lists on the disk have all changes, for scripts that read the
/// lists next.
enum Synchronize {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = arguments.isEmpty ? nil : try Target(&arguments)
    try arguments.end()
    try Refusal.wrapping("Could not synchronize \(target?.name ?? "the preferences"); exiting") {
      () throws(EngineError) in
      let store = try StoreView(target?.directory)
      let locations = if let target { target.locations } else { try ownLocations(store) }
      for location in locations {
        try store.places.save(location)
      }
      try store.places.synchronize()
    }
  }

  /// Returns the locations of all domains in the user's own places.
  private static func ownLocations(_ store: StoreView) throws(EngineError) -> [Location] {
    var locations: [Location] = []
    for place in Place.own {
      locations += try store.places.domains(in: place).map { Location(place, $0) }
    }
    return locations
  }
}

extension Synchronize {
  static let manual = VerbManual(
    group: .change, summary: "waits until the lists on the disk have all changes",
    more: [
      .init("synchronize [DOMAIN]", "returns when the lists on the disk have all changes")
    ],
    text: """
      Lists are rewritten within a second in any case. Programs that read the lists
      themselves, such as a backup, may not want to wait for that.
      """,
    example: """
      $ prefs synchronize com.example.editor
      """)
}
