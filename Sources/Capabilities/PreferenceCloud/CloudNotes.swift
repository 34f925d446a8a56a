import PreferenceModel
import PropertyList

/// What the `prefs-cloud` of a store keeps for the host as a whole, beside the records of keys:
/// keys of one location. Commands read them, and ask for a synchronisation through them.
public enum CloudNotes {
  /// The location of the notes.
  public static let location = CloudFacts.notes
  /// The header of `SavedCloud`.
  public static let state: Key = "State"
  /// A `CloudStatus`.
  public static let status: Key = "Status"
  /// The account whose values are here. It changes when all of its values have come.
  public static let account = CloudFacts.account
  /// An integer that each request makes larger. When every change that was made before it is on the
  /// server, and every change of the server's from before it is here, `prefs-cloud` sets
  /// `syncAnswer` to it.
  public static let syncRequest: Key = "SyncRequest"
  /// The last `syncRequest` that was carried out.
  public static let syncAnswer: Key = "SyncAnswer"
  /// Which file in a directory is this host's, where the cloud is a directory.
  public static let file: Key = "File"
  private static let replaced = "Log."

  /// The key of a replaced value.
  public static func key(ofReplacedValue number: UInt64) -> Key { Key("\(replaced)\(number)") }

  /// The number of a replaced value's key; nil for other keys.
  public static func replacedValue(of key: Key) -> UInt64? {
    key.string.hasPrefix(replaced) ? UInt64(key.string.dropFirst(replaced.count)) : nil
  }
}

/// Whether a host is connected to the cloud.
public struct CloudStatus: Equatable, Sendable {
  /// Whether the server answers.
  public var isConnected = false
  /// The URL of the server that was tried last; nil if none was.
  public var endpoint: String?
  /// Why there is no connection; nil where there is one.
  public var error: String?
  /// When the server was heard last, where it does not answer a question; nil where it does.
  public var silentSince: AbsoluteTime?
  /// How many keys the server has that cannot be read here.
  public var unreadable = 0

  /// Creates a status.
  public init(isConnected: Bool = false, endpoint: String? = nil, error: String? = nil) {
    (self.isConnected, self.endpoint, self.error) = (isConnected, endpoint, error)
  }

  /// The status as a note, and since when it is so.
  public func note(since time: AbsoluteTime) -> Value {
    var note: ValueDictionary = ["Connected": .boolean(isConnected), "Since": .date(time)]
    note["Endpoint"] = endpoint.map { .string($0) }
    note["Error"] = error.map { .string($0) }
    note["SilentSince"] = silentSince.map { .date($0) }
    if unreadable > 0 { note["Unreadable"] = .integer(WideInteger(UInt64(unreadable))) }
    return .dictionary(note)
  }

  /// Reads a note; nil for anything else.
  public static func read(_ note: Value) -> (status: CloudStatus, since: AbsoluteTime)? {
    guard case .dictionary(let note) = note, case .boolean(let isConnected)? = note["Connected"],
      case .date(let since)? = note["Since"]
    else { return nil }
    var status = CloudStatus(isConnected: isConnected)
    if case .string(let text)? = note["Endpoint"] { status.endpoint = text }
    if case .string(let text)? = note["Error"] { status.error = text }
    if case .date(let time)? = note["SilentSince"] { status.silentSince = time }
    status.unreadable = Int(clamping: note["Unreadable"]?.signed ?? 0)
    return (status, since)
  }
}

// MARK: - Moving keys

extension StoredPlaces {
  /// The intents that move a key from another place of the user's to the cloud, with its text; nil
  /// where the cloud has it, or the place lacks it. They are refused where it changes meanwhile.
  public func intents(
    movingToCloud key: CloudKey, from place: Place
  ) throws(EngineError) -> [Intent]? {
    let (cloud, location) = (Location(.cloud, key.domain), Location(place, key.domain))
    guard try find(key.key, at: cloud) == nil, let stored = try find(key.key, at: location) else {
      return nil
    }
    return [
      .expect(key.key, cloud, nil), .expect(key.key, location, stored.value),
      .at(.cloud, .set(key.key, key.domain, stored.value, stored.writtenText)),
      .edit(location, .remove(key.key)),
    ]
  }

  /// The intents that move a key from the cloud to the user's place, with its text; nil where the
  /// cloud lacks it. They are refused where it changes meanwhile.
  public func intents(movingFromCloud key: CloudKey) throws(EngineError) -> [Intent]? {
    let cloud = Location(.cloud, key.domain)
    guard let stored = try find(key.key, at: cloud) else { return nil }
    let user = Location(.user, key.domain)
    return [
      .expect(key.key, cloud, stored.value),
      .edit(user, .set(key.key, stored.value, stored.writtenText)),
      .edit(cloud, .remove(key.key)),
    ]
  }
}

extension StoredValue {
  /// The text of the value, for a set that keeps it.
  fileprivate var writtenText: WrittenText { text.map { .exact($0) } ?? .canonical }
}
