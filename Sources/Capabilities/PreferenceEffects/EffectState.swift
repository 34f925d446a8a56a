import PreferenceModel
import PropertyList
import SystemCalls

/// What is known of the rules of a store on one machine: for which values each was last carried
/// out, and how that ended. Values are kept as keyed digests alone.
public struct EffectState: Equatable, Sendable {
  /// How a rule was carried out the last time.
  public struct Run: Equatable, Sendable {
    /// When it began.
    public var time = Timestamp(nanoseconds: 0)
    /// How long the command took.
    public var milliseconds: Int64 = 0
    /// How the command ended, e.g. `status 0`; nil if none was run.
    public var end: String?
    /// The file that was written, or was as it should be already; nil means none.
    public var file: String?
    /// Why it has failed; nil if it has not.
    public var problem: String?
    /// The first keys that it was for, as lines.
    public var keys: [String] = []
    /// How many keys it was for.
    public var count = 0

    /// Creates a run that has just begun.
    public init(time: Timestamp = .now) { self.time = time }
  }

  /// What is known of a rule.
  public struct Rule: Equatable, Sendable {
    /// The values of the last success; nil if there was none.
    public var done: EffectValues?
    /// What the file that it writes has, or may have after a crash.
    public var file: [Digest] = []
    /// The path of that file.
    public var path = ""
    /// The last time; nil if it was never carried out.
    public var last: Run?

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
    for (name, value) in rules {
      guard let rule = Rule(value) else { return nil }
      self.rules[name.string] = rule
    }
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

  init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }
}

extension EffectState.Rule {
  fileprivate init?(_ value: Value) {
    guard let entries = value.dictionary else { return nil }
    if let rule = entries["Rule"] {
      guard let digest = Digest(value: rule), let domains = entries["Values"]?.dictionary else {
        return nil
      }
      var values: [EffectKey: Digest] = [:]
      for (domain, keys) in domains {
        for (key, value) in keys.dictionary ?? [:] {
          guard let digest = Digest(value: value) else { return nil }
          values[EffectKey(DomainName(domain.string), key)] = digest
        }
      }
      done = EffectValues(rule: digest, values: values)
    }
    if case .array(let digests)? = entries["File"] {
      file = digests.compactMap(Digest.init(value:))
    }
    path = entries["Path"]?.string ?? ""
    last = entries["Last"]?.dictionary.map(EffectState.Run.init)
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
    entries["Last"] = last.map { .dictionary($0.values) }
    return .dictionary(entries)
  }
}

extension EffectState.Run {
  fileprivate init(_ entries: ValueDictionary) {
    func number(_ key: Key) -> Int64 { entries[key]?.signed ?? 0 }
    self.init(time: Timestamp(nanoseconds: number("Time")))
    milliseconds = number("Milliseconds")
    (end, file) = (entries["End"]?.string, entries["File"]?.string)
    problem = entries["Problem"]?.string
    (keys, count) = (entries["Keys"]?.strings ?? [], Int(clamping: number("Count")))
  }

  fileprivate var values: ValueDictionary {
    var entries: ValueDictionary = [
      "Time": .integer(WideInteger(time.nanoseconds)),
      "Milliseconds": .integer(WideInteger(milliseconds)),
      "Keys": .array(keys.map { .string($0) }), "Count": .integer(WideInteger(Int64(count))),
    ]
    entries["End"] = end.map { .string($0) }
    entries["File"] = file.map { .string($0) }
    entries["Problem"] = problem.map { .string($0) }
    return entries
  }
}
