import PreferenceModel
import PropertyList

/// The settings of the cloud: preferences of the domain `prefsfs.cloud`, so that an administrator
/// can force them. Without `Endpoints` there is no cloud.
public struct CloudSettings: Equatable, Sendable {
  /// The domain of the settings. It never goes to the cloud itself.
  public static let domain = DomainName.cloudSettings

  /// The names of the settings.
  public enum Name: String, CaseIterable, Sendable {
    /// The URLs of etcd's servers, or `dir:` and the path of a directory: an array, or one string.
    case endpoints = "Endpoints"
    /// The user's name at the server.
    case user = "User"
    /// The path of a file with the user's password, which nobody else may read.
    case passwordFile = "PasswordFile"
    /// The path of the certificates that the server's certificate is verified with; without it,
    /// those of the system.
    case authorityFile = "CAFile"
    /// The path of this client's certificate.
    case certificateFile = "CertFile"
    /// The path of its private key.
    case keyFile = "KeyFile"
    /// What etcd's names of this user's keys begin with.
    case prefix = "Prefix"
    /// The path of a file with the key that values are sealed with, which nobody else may read.
    case encryptionKeyFile = "EncryptionKeyFile"
    /// The keys of the cloud: a dictionary of arrays of patterns, by domain.
    case keys = "Keys"
    /// The keys that stay on this machine, although `keys` or a schema names them.
    case local = "Local"

    /// The key of the preference.
    public var key: Key { Key(rawValue) }
  }

  private let values: [Name: Value]

  /// Reads the settings of a store.
  public init(of places: any StoredPlaces) throws(EngineError) {
    var values: [Name: Value] = [:]
    let locations = try CloudFacts.countingSettings(places)
    for name in Name.allCases {
      values[name] = try places.findFirst(name.key, in: locations)?.stored.value
    }
    self.values = values
  }

  /// A setting that is a text; nil where it is not set, or is empty.
  public func text(_ name: Name) -> String? {
    if case .string(let text)? = values[name], !text.isEmpty { text } else { nil }
  }

  /// The URLs of etcd's servers.
  public var endpoints: [String] { CloudFacts.servers(values[.endpoints]) }

  /// What the only endpoint begins with if the cloud is a directory, and names of its keys do.
  public static let directoryPrefix = "dir:"

  /// The path of the directory, if the cloud is one; nil if it is on servers.
  public var directory: String? {
    guard endpoints.count == 1, let first = endpoints.first, first.hasPrefix(Self.directoryPrefix)
    else { return nil }
    return String(first.dropFirst(Self.directoryPrefix.count))
  }

  /// Whether there is a cloud.
  public var isConfigured: Bool { !endpoints.isEmpty }

  /// The keys that belong in the cloud. The domains of this program's own settings are left out.
  public var keys: KeyPatterns { KeyPatterns(values[.keys]).ofCloud }

  /// The keys that stay on this machine, although `keys` or a schema names them.
  public var local: KeyPatterns { KeyPatterns(values[.local]) }

  /// The patterns of a setting that has some.
  public func patterns(_ name: Name) -> KeyPatterns { KeyPatterns(values[name]).ofCloud }
}
