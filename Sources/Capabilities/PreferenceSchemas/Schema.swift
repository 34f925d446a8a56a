import PreferenceModel
import PropertyList

/// What a schema says of a domain: a preference manifest (`pfm_*` keys, as ProfileManifests has
/// them), with keys of ours.
///
/// Every schema informs. One with `prefs_authoritative` also decides: its values are judged, and
/// its defaults are those of the program.
public struct Schema: Sendable {
  /// The domain's name for people; may be empty.
  public let title: String
  /// What the domain is for; may be empty.
  public let summary: String
  /// Whether it comes with the program: then it judges changes and gives defaults.
  public let isAuthoritative: Bool
  /// Whether it gives a default to any key.
  public let hasFallbacks: Bool
  /// The keys, in the order of the file.
  public let keys: [SchemaKey]
  /// What is wrong with the file, a sentence for each; the rest of it counts.
  public let problems: [String]
  private let index: [Key: Int]

  /// The largest file that is read, in bytes.
  public static let largest = 16 << 20

  /// Creates a schema of keys.
  public init(
    title: String, summary: String, isAuthoritative: Bool, keys: [SchemaKey],
    problems: [String] = []
  ) {
    (self.title, self.summary, self.isAuthoritative) = (title, summary, isAuthoritative)
    var (index, known): ([Key: Int], [SchemaKey]) = ([:], [])
    var problems = problems
    for key in keys {
      if index[key.name] != nil {
        problems.append("\(key.name) is there twice; the first one counts")
        continue
      }
      index[key.name] = known.count
      known.append(key)
    }
    hasFallbacks = isAuthoritative && known.contains { $0.fallback != nil }
    (self.index, self.keys, self.problems) = (index, known, problems)
  }

  /// What the schema says of a key; nil if it does not have the key. Cost: a hash look-up.
  public subscript(key: Key) -> SchemaKey? { index[key].map { keys[$0] } }

  /// The default that an authoritative schema gives for a key; nil if there is none.
  /// A whole number as the default of a real is one.
  public func fallback(of key: Key) -> Value? {
    guard isAuthoritative, let known = self[key], let value = known.fallback else { return nil }
    guard known.kind == .real, case .integer(let number) = value else { return value }
    return .real(number.double)
  }

  /// Whether the key is to be the same on all machines of a user: an authoritative schema says so.
  public func isInCloud(_ key: Key) -> Bool { isAuthoritative && self[key]?.isCloud == true }

  /// Says why a value must not be set by people; nil if it may. Only an authoritative schema
  /// refuses; it accepts a key that it does not have. Cost: O(the value).
  /// - Parameter quotes: whether the sentence has the value, unless it is a secret.
  public func refusal(of value: Value, for key: Key, quotes: Bool = true) -> String? {
    isAuthoritative ? self[key]?.objection(to: value, quotes: quotes) : nil
  }

  /// The key whose name is nearest to one that the schema does not have; nil if none is near.
  public func nearName(to key: Key) -> Key? {
    NearName.find(key.string, among: keys.lazy.map(\.name.string)).map { Key($0) }
  }
}

/// What a schema says of a key, of a member of a dictionary, or of the elements of an array.
public struct SchemaKey: Sendable {
  /// The name; empty for the elements of an array.
  public var name: Key
  /// The type; nil if the schema does not say it.
  public var kind: Kind?
  /// The name for people; may be empty.
  public var title = ""
  /// What it does; may be empty.
  public var summary = ""
  /// What a program takes where nobody has set it, or what an editor suggests.
  public var fallback: Value?
  /// The smallest and the largest number or date.
  public var minimum, maximum: Value?
  /// The values that it may have; empty means any.
  public var choices: [Value] = []
  /// A title for each of the choices; may be empty.
  public var choiceTitles: [String] = []
  /// Whether other values than the choices are possible.
  public var allowsOthers = false
  /// What a string must match.
  public var pattern: Pattern?
  /// Whether a program needs it. Nobody is refused for it.
  public var isRequired = false
  /// Whether its value is a secret.
  public var isSensitive = false
  /// Whether it is state of the program, and not a setting.
  public var isState = false
  /// Whether an authoritative schema has it in the cloud, as if the user had added it.
  public var isCloud = false
  /// Since which version it should not be used any more; nil if it may be used.
  public var deprecated: String?
  /// The unit of a number; may be empty.
  public var unit = ""
  /// The members of a dictionary; of an array what its elements may be, one of them.
  public var members: [SchemaKey] = [] {
    didSet {
      index = Dictionary(members.enumerated().map { ($1.name, $0) }) { first, _ in first }
    }
  }
  private var index: [Key: Int] = [:]

  /// Whether its value, or a part of it, is a secret.
  public var hasSecrets: Bool { isSensitive || members.contains { $0.hasSecrets } }

  /// The member with that name. Cost: a hash look-up.
  func member(_ name: Key) -> SchemaKey? { index[name].map { members[$0] } }

  /// Creates what is known of a key: its name.
  public init(_ name: Key, kind: Kind? = nil) { (self.name, self.kind) = (name, kind) }

  /// In manifests, names of members that stand for any key, and for the value of any key.
  package static let (anyKey, anyValue): (Key, Key) = ("{{key}}", "{{value}}")
}
