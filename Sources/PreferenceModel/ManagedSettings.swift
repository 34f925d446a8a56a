import PropertyList
import SystemCalls

/// What the configuration profiles of one managed place set. Its lists are not a part of it: they
/// are searched before the profiles.
public struct ManagedSettings: Sendable {
  /// The values that profiles force, by domain. The metadata of each names its profile.
  public var forced: [DomainName: [Key: StoredValue]] = [:]
  /// The values that profiles set once, for the user to change.
  public var once: [OnceSetting] = []
  /// A dictionary for each profile, refused ones too: see `Profile.report`.
  public var reports: [ValueDictionary] = []
  /// When the first of the profiles ends; nil: none does.
  public var until: Timestamp?

  /// Creates the settings of a place without profiles.
  public init() {}
}

/// A value that a profile sets once, in the user's place, and never forces.
public struct OnceSetting: Equatable, Sendable {
  /// The profile's identifier and UUID, the domain and the key: a value is set once for each.
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
  /// What identifies the state of the place's profiles on the disk. Cost: a listing of the
  /// directory, and a stat(2) for each profile.
  func state(of place: Place) -> [String]

  /// Reads the profiles of a place, as they count at that time. A profile that is refused sets
  /// nothing; its report says why.
  func settings(of place: Place, at now: Timestamp) -> ManagedSettings

  /// What a profile with these bytes would do, as its report says it.
  func check(_ bytes: [UInt8]) -> ValueDictionary
}
