import PropertyList

/// What everybody who uses a store needs to know of its cloud. `PreferenceCloud` has the rest.
public enum CloudFacts {
  /// The location of the notes that `prefs-cloud` keeps for the host as a whole.
  public static let notes = Location(.cloudRecords, .cloudSettings)
  /// The note of the account whose values are here. It changes when all of its values have come.
  public static let account: Key = "Account"
  /// The setting that names the servers.
  public static let endpoints: Key = "Endpoints"
  /// The locations of the settings. Unlike other preferences they are not inherited, and not read
  /// from the cloud: who can write there must not choose what leaves this machine.
  public static let settings = (Place.forced + [.host, .user] + Place.shared).map {
    Location($0, .cloudSettings)
  }

  /// The locations of the settings that count: none of the user's where the domain is locked.
  public static func countingSettings(
    _ places: any StoredPlaces
  ) throws(EngineError) -> [Location] {
    try places.counting(settings, in: .cloudSettings)
  }

  /// The URLs of etcd's servers that the setting names: an array, or one string.
  public static func servers(_ setting: Value?) -> [String] {
    switch setting {
    case .string(let text): text.isEmpty ? [] : [text]
    case .array(let items): items.compactMap(\.string).filter { !$0.isEmpty }
    default: []
    }
  }

  /// Whether a store has a cloud: whether servers are named.
  public static func isConfigured(_ places: any StoredPlaces) throws(EngineError) -> Bool {
    let setting = try places.findFirst(endpoints, in: countingSettings(places))?.stored.value
    return !servers(setting).isEmpty
  }
}
