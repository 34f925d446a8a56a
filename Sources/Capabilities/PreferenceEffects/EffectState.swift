import PreferenceModel
import PropertyList

/// What is known of the rules of a store on one machine: for which values each was last carried
/// out, and how that ended. Values are kept as keyed digests alone.
public struct EffectState: Equatable, Sendable {
  /// What is known of a rule.
  public struct Rule: Equatable, Sendable {
    /// The values of the last success; nil if there was none.
    public var done: EffectValues?
    /// What the file that it writes has, or may have after a crash.
    public var file: [Digest] = []
    /// The path of that file.
    public var path = ""
    /// How it was carried out the last time, as `EffectReport` has it; empty if it never was.
    public var last: ValueDictionary = [:]

    /// Creates what is known of a new rule.
    public init() {}
  }

  /// The key of the digests.
  public let key: Digest
  /// What is known of each rule, by name.
  public var rules: [String: Rule] = [:]

  /// Creates the state of a machine on which no rule has been carried out.
  public init() {
    key = Digest(low: .random(in: 0...(.max)), high: .random(in: 0...(.max)))
  }

  private static let format: Value = 1

  /// Reads a saved state; nil where it is damaged, or another machine's.
  package init?(_ bytes: [UInt8], host: String) {
    guard case .dictionary(let root)? = (try? Document.read(bytes))?.value,
      root["Format"] == Self.format, root["Host"] == .string(host),
      let key = root["Key"].flatMap(Digest.init(value:)),
      let rules = root["Rules"]?.dictionary
    else { return nil }
    self.key = key
    for (name, value) in rules { self.rules[name.string] = value.dictionary.map(Rule.init) }
  }

  /// The state as a file.
  package func bytes(host: String) -> [UInt8] {
    let rules = ValueDictionary(
      self.rules.sorted { $0.key < $1.key }.map { (key: Key($0.key), value: $0.value.value) })
    return Document.binary([
      "Format": Self.format, "Host": .string(host), "Key": .data(key.bytes),
      "Rules": .dictionary(rules),
    ])
  }
}

extension Digest {
  fileprivate init?(value: Value) {
    guard case .data(let bytes) = value else { return nil }
    self.init(bytes)
  }
}

extension EffectState.Rule {
  /// What is damaged counts as missing: then the rule is carried out again.
  fileprivate init(_ entries: ValueDictionary) {
    if let rule = entries["Rule"].flatMap(Digest.init(value:)) {
      var values: [EffectKey: Digest] = [:]
      for (domain, keys) in entries["Values"]?.dictionary ?? [:] {
        for (key, value) in keys.dictionary ?? [:] {
          values[EffectKey(DomainName(domain.string), key)] = Digest(value: value)
        }
      }
      done = EffectValues(rule: rule, values: values)
    }
    if case .array(let digests)? = entries["File"] {
      file = digests.compactMap(Digest.init(value:))
    }
    path = entries["Path"]?.string ?? ""
    last = entries["Run"]?.dictionary ?? [:]
  }

  fileprivate var value: Value {
    var entries: ValueDictionary = ["Path": .string(path)]
    entries["File"] = .array(file.map { .data($0.bytes) })
    if let done {
      var domains: [DomainName: ValueDictionary] = [:]
      for (name, digest) in done.values.sorted(by: { $0.key < $1.key }) {
        domains[name.domain, default: [:]][name.key] = .data(digest.bytes)
      }
      entries["Rule"] = .data(done.rule.bytes)
      entries["Values"] = .dictionary(
        ValueDictionary(domains.map { (key: $0.key.key, value: .dictionary($0.value)) }))
    }
    entries["Run"] = .dictionary(last)
    return .dictionary(entries)
  }
}
