import PreferenceModel
import PropertyList

/// A configuration profile (`*.mobileconfig`), as far as it sets preferences. The format is that of
/// Apple's device management (TopLevel.yaml and CommonPayloadKeys.yaml of apple/device-management).
/// `PayloadScope` is checked and has no effect: the directory of the file says for whom it counts.
public struct Profile: Equatable, Sendable {
  /// A value that the profile sets.
  public struct Setting: Equatable, Sendable {
    /// How the value is set.
    public enum Kind: Equatable, Sendable {
      /// The user cannot change it.
      case forced
      /// The user can change it. It is set once; or after each log-in, if it has no time stamp
      /// (`mcx_data_timestamp`).
      case once(AbsoluteTime?)
    }

    /// The domain.
    public let domain: DomainName
    /// Whether the domain's name ends in `.ByHost`: a value that is set once then goes to the
    /// host's place. For forced values it makes no difference.
    public let isHost: Bool
    /// The key.
    public let key: Key
    /// The value.
    public let value: Value
    /// How it is set.
    public let kind: Kind
  }

  /// Arrays that become one array, also across profiles (`mcx_union_policy_keys`).
  public struct Union: Equatable, Sendable {
    /// The domain.
    public let domain: DomainName
    /// The keys whose arrays are joined. Other values of these keys add nothing.
    public let inputs: [Key]
    /// The key that is forced to all of their elements.
    public let output: Key
    /// Whether of equal elements only the first stays.
    public let removesDuplicates: Bool
  }

  /// `PayloadIdentifier`. Of several profiles that set a key, the one whose identifier is last in
  /// byte order counts.
  public let identifier: String
  /// `PayloadUUID`.
  public let uuid: String
  /// `PayloadDisplayName`; the identifier if there is none.
  public let name: String
  /// `RemovalDate`: when the profile ends; nil means never.
  public let removal: AbsoluteTime?
  /// `DurationUntilRemoval`: how many seconds after its installation the profile ends; nil if it
  /// does not end for that reason.
  public let duration: Double?
  /// The values, in the order of the payloads.
  public internal(set) var settings: [Setting] = []
  /// The arrays to join.
  public internal(set) var unions: [Union] = []
  /// The types of the payloads that configure a machine and not a domain, each once. They have no
  /// effect.
  public internal(set) var leftAlone: [String] = []
}

/// Why a profile is refused: none of its settings count.
public struct ProfileRefusal: Error, Equatable, CustomStringConvertible {
  /// The reason, for people.
  public let description: String

  init(_ description: String) { self.description = description }
}

extension Profile {
  /// Creates a profile from its document. Throws if the document is not a profile, or if any of its
  /// payloads cannot be used.
  public init(_ document: Value) throws(ProfileRefusal) {
    guard case .dictionary(let root) = document else {
      throw ProfileRefusal("a profile is a dictionary")
    }
    if root["IsEncrypted"] == true || root["EncryptedPayloadContent"] != nil {
      throw ProfileRefusal("it is encrypted: install it without encryption")
    }
    guard try root.text("PayloadType") == "Configuration" else {
      throw ProfileRefusal("its PayloadType is not Configuration")
    }
    guard root["PayloadVersion"] == 1 else { throw ProfileRefusal("its PayloadVersion is not 1") }
    identifier = try root.text("PayloadIdentifier")
    uuid = try root.text("PayloadUUID")
    if case .string(let text)? = root["PayloadDisplayName"] {
      name = text
    } else {
      name = identifier
    }
    switch root["PayloadScope"] {
    case nil, "User", "System": break
    default: throw ProfileRefusal("its PayloadScope is neither User nor System")
    }
    switch root["RemovalDate"] {
    case nil: removal = nil
    case .date(let date)? where date.seconds.isFinite: removal = date
    default: throw ProfileRefusal("its RemovalDate is not a date")
    }
    switch root["DurationUntilRemoval"] {
    case nil: duration = nil
    case .real(let seconds)? where seconds.isFinite: duration = seconds
    case .integer(let seconds)?: duration = Double("\(seconds)")
    default: throw ProfileRefusal("its DurationUntilRemoval is not a number of seconds")
    }
    guard case .array(let payloads)? = root["PayloadContent"] else {
      throw ProfileRefusal("its PayloadContent is not an array of payloads")
    }
    for (index, payload) in payloads.enumerated() {
      do {
        try add(payload)
      } catch {
        throw ProfileRefusal("payload \(index + 1): \(error)")
      }
    }
  }

  // MARK: - Payloads

  /// Adds the settings of one payload, whose type is the domain.
  private mutating func add(_ payload: Value) throws(ProfileRefusal) {
    guard case .dictionary(let payload) = payload else {
      throw ProfileRefusal("a payload is a dictionary")
    }
    let type = try payload.text("PayloadType")
    if type == "com.apple.ManagedClient.preferences" { return try addDomains(payload) }
    if MachinePayloads.contains(type) {
      if !leftAlone.contains(type) { leftAlone.append(type) }
      return
    }
    // `com.apple.MCX(TimeServer)` is a part of the domain com.apple.MCX.
    let (domain, isHost) = try Self.domain(String(type.prefix { $0 != "(" }))
    for (key, value) in payload where !key.string.hasPrefix("Payload") {
      settings.append(
        Setting(domain: domain, isHost: isHost, key: key, value: value, kind: .forced))
    }
  }

  /// Adds the settings of a payload that names its domains.
  private mutating func addDomains(_ payload: ValueDictionary) throws(ProfileRefusal) {
    guard case .dictionary(let domains)? = payload["PayloadContent"] else {
      throw ProfileRefusal("its PayloadContent is not a dictionary of domains")
    }
    for (name, content) in domains.sorted(by: { $0.key < $1.key }) {
      let (domain, isHost) = try Self.domain(name.string)
      guard case .dictionary(let rows) = content else {
        throw ProfileRefusal("\(name): not a dictionary")
      }
      for (row, entries) in rows.sorted(by: { $0.key < $1.key }) {
        guard ["Forced", "Set-Once"].contains(row.string) else { continue }
        guard case .array(let entries) = entries else {
          throw ProfileRefusal("\(name): \(row) is not an array")
        }
        for entry in entries { try add(entry, row.string, domain, isHost) }
      }
    }
  }

  /// Adds the settings of one entry of `Forced` or `Set-Once` (`row`).
  private mutating func add(
    _ entry: Value, _ row: String, _ domain: DomainName, _ isHost: Bool
  ) throws(ProfileRefusal) {
    guard case .dictionary(let entry) = entry else {
      throw ProfileRefusal("\(domain): an entry of \(row) is not a dictionary")
    }
    guard case .dictionary(let values)? = entry["mcx_preference_settings"] else {
      throw ProfileRefusal("\(domain): an entry of \(row) has no mcx_preference_settings")
    }
    var kind = Setting.Kind.forced
    if row != "Forced" {
      switch entry["mcx_data_timestamp"] {
      case .date(let date)?: kind = .once(date)
      case nil: kind = .once(nil)
      default: throw ProfileRefusal("\(domain): mcx_data_timestamp is not a date")
      }
    }
    for (key, value) in values {
      settings.append(Setting(domain: domain, isHost: isHost, key: key, value: value, kind: kind))
    }
    if row == "Forced", case .array(let unions)? = entry["mcx_union_policy_keys"] {
      for union in unions { try add(union: union, domain) }
    }
  }

  private mutating func add(union: Value, _ domain: DomainName) throws(ProfileRefusal) {
    guard case .dictionary(let union) = union,
      case .array(let inputs)? = union["mcx_input_key_names"],
      case .string(let output)? = union["mcx_output_key_name"]
    else {
      throw ProfileRefusal(
        "\(domain): an entry of mcx_union_policy_keys lacks its input or output keys")
    }
    let names = inputs.compactMap { if case .string(let name) = $0 { Key(name) } else { nil } }
    unions.append(
      Union(
        domain: domain, inputs: names, output: Key(output),
        removesDuplicates: union["mcx_remove_duplicates"] == true))
  }

  /// The domain that a name in a profile means.
  private static func domain(
    _ name: String
  ) throws(ProfileRefusal) -> (domain: DomainName, isHost: Bool) {
    let isHost = name.hasSuffix(".ByHost")
    let plain = isHost ? String(name.dropLast(".ByHost".count)) : name
    if [".GlobalPreferences", "NSGlobalDomain", "Apple Global Domain"].contains(plain) {
      return (.global, isHost)
    }
    let domain = DomainName(plain)
    guard domain.canNameList else { throw ProfileRefusal("\"\(name)\" cannot name a domain") }
    return (domain, isHost)
  }
}

extension ValueDictionary {
  /// The text of a key that must have one.
  fileprivate func text(_ key: Key) throws(ProfileRefusal) -> String {
    guard case .string(let text)? = self[key], !text.isEmpty else {
      throw ProfileRefusal("it has no \(key)")
    }
    return text
  }
}
