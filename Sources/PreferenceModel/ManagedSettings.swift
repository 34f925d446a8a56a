import PropertyList
import SystemCalls

/// What the configuration profiles of one managed place set. What its lists have is not included:
/// the lists are searched before the profiles.
public struct ManagedSettings: Sendable {
  /// The values that profiles force, by domain. The metadata of each names its profile.
  public var forced: [DomainName: [Key: StoredValue]] = [:]
  /// The values that profiles set once, for the user to change.
  public var once: [OnceSetting] = []
  /// A dictionary for each profile, also for those that are refused or have ended, in the order in
  /// which they apply. Keys, as far as known: `file`, `place`, `identifier`, `name`, `signer`,
  /// `refused` (why), `until`, `over` (true: it has ended), `left alone` (types of payloads),
  /// `forced` and `once` (dictionaries of domains, of their keys and values), and `joined` (the
  /// same, of the keys that get the arrays of several profiles).
  public var reports: [ValueDictionary] = []
  /// When the first of the profiles that count ends; nil: none ends.
  public var until: Timestamp?

  /// Creates the settings of a place without profiles.
  public init() {}
}

/// A value that a profile sets once, in the user's or the host's place, and does not force.
public struct OnceSetting: Equatable, Sendable {
  /// The profile's identifier and UUID, the domain and the key, as one text. A value with a time
  /// stamp is set once for each such text, also if the stamp changes.
  public let identity: String
  /// The profile's time stamp of the value; nil: the value is set again after each log-in.
  public let time: AbsoluteTime?
  /// Where the value is set: the user's or the host's place.
  public let location: Location
  /// The key.
  public let key: Key
  /// The value.
  public let value: Value

  /// Creates a setting.
  public init(
    identity: String, time: AbsoluteTime?, location: Location, key: Key, value: Value
  ) {
    (self.identity, self.time, self.location) = (identity, time, location)
    (self.key, self.value) = (key, value)
  }
}

/// Reads the configuration profiles of the managed places.
///
/// Threads: any. A call reads files, and may wait for a disk.
public protocol ProfileReading: Sendable {
  /// Returns what identifies the state of the place's profiles, and of the certificates of their
  /// signers, on the disk: an equal result means that nothing has changed. Cost: a listing of each
  /// directory, and a stat(2) for each file.
  func state(of place: Place) -> [String]

  /// Reads the profiles of a place, as they count at that time. A profile that is refused sets
  /// nothing; its report says why.
  func settings(of place: Place, at now: Timestamp) -> ManagedSettings

  /// Returns the report of a profile with these bytes, as `ManagedSettings.reports` has them,
  /// without file and place.
  func check(_ bytes: [UInt8]) -> ValueDictionary
}
