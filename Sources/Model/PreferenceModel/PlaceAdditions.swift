import PropertyList
import SystemCalls

/// What files beside the lists of one place add to it: configuration profiles, fragments, the
/// lists of vendors, and those of the user's groups.
///
/// A list overrides the profiles of its place, and a user's those of the user's groups: their
/// values count where the list does not have the key. A fragment, or a vendor's list, overrides the
/// list (`Setter`).
public struct PlaceAdditions: Sendable {
  /// The values that are added, by domain. The metadata of each names what sets it.
  public var values: [DomainName: [Key: StoredValue]] = [:]
  /// The domains of which a fragment, or a vendor's list, cannot be read, and why. Nothing of such
  /// a domain can be read in the place: the file may be the one that counts.
  public var unreadable: [DomainName: EngineError] = [:]
  /// Why it is not known what is added, so that nothing of the place can be read; nil if it is
  /// known.
  public var obstacle: EngineError?
  /// The fragments and vendors' lists, in the order in which they apply: the last one counts.
  public var fragments: [Fragment] = []
  /// The values that profiles set once, for the user to change.
  public var once: [OnceSetting] = []
  /// A dictionary for each profile, also for those that are refused or have ended, in the order in
  /// which they apply. Keys, as far as known: `file`, `place`, `identifier`, `name`, `signer`,
  /// `refused` (why), `until`, `over` (true: it has ended), `left alone` (types of payloads),
  /// `forced` and `once` (dictionaries of domains, of their keys and values), and `joined` (the
  /// same, of the keys that get the arrays of several profiles).
  public var reports: [ValueDictionary] = []
  /// When the first of the profiles that count ends; nil if none ends.
  public var until: Timestamp?
  /// When the last of the profiles that have ended did so; nil if none has.
  public var lastEnd: Timestamp?

  /// Whether other profiles count at that moment than those that were read: one has ended, or the
  /// clock was wrong when they were read, and one has not ended yet.
  public func isOutdated(at now: Timestamp) -> Bool {
    until.map { $0 <= now } == true || lastEnd.map { $0 > now } == true
  }

  /// Why nothing of the domain can be read in the place; nil if it can be read.
  public func error(of domain: DomainName) -> EngineError? { obstacle ?? unreadable[domain] }

  /// Creates the additions of a place that has none.
  public init() {}

  /// A property list beside a list of a place, which overrides it.
  public struct Fragment: Equatable, Sendable {
    /// The path.
    public let file: String
    /// The domain that it is about.
    public let domain: DomainName
    /// What it sets.
    public let values: ValueDictionary

    /// Creates a fragment.
    public init(file: String, domain: DomainName, values: ValueDictionary) {
      (self.file, self.domain, self.values) = (file, domain, values)
    }
  }

  /// Returns a text that differs if the file, or the right to read it, may have changed. Cost: one
  /// stat(2).
  public static func fileState(_ path: String) -> String {
    guard let status = try? Files.status(path) else { return path }
    // Mode and owner are a part of it: they decide whether the file can be read.
    let times = [status.st_mtim, status.st_ctim].map { Timestamp($0).nanoseconds }
    return "\(path) \(status.st_ino) \(status.st_size) \(times) \(status.st_mode)"
  }
}

/// A value that a profile sets once, in the user's or the host's place, and does not force.
public struct OnceSetting: Equatable, Sendable {
  /// The profile's identifier and UUID, the domain and the key, as one text. A value with a time
  /// stamp is set once for each such text, also if the stamp changes.
  public let identity: String
  /// The profile's time stamp of the value; nil if the value is set again after each log-in.
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
  func settings(of place: Place, at now: Timestamp) -> PlaceAdditions

  /// Returns the report of a profile with these bytes, as `PlaceAdditions.reports` has them,
  /// without file and place.
  func check(_ bytes: [UInt8]) -> ValueDictionary
}
