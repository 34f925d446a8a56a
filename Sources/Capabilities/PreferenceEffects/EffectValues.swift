import PreferenceModel
import PropertyList

/// A key of a domain.
public struct EffectKey: Hashable, Comparable, Sendable {
  /// The domain.
  public let domain: DomainName
  /// The key.
  public let key: Key

  /// Creates the name of a key.
  public init(_ domain: DomainName, _ key: Key) { (self.domain, self.key) = (domain, key) }

  /// A line, `DOMAIN KEY`, with both escaped as the names of files are.
  public var line: String {
    "\(NameCodec.encode(domain.key)) \(NameCodec.encode(key))"
  }

  public static func < (left: EffectKey, right: EffectKey) -> Bool {
    left.domain == right.domain ? left.key < right.key : left.domain < right.domain
  }
}

/// What a rule has been carried out for, or would be: the rule itself, and the values of its keys,
/// as keyed digests.
public struct EffectValues: Equatable, Sendable {
  /// The rule.
  public var rule: Digest
  /// The values of the keys that have one.
  public var values: [EffectKey: Digest]

  /// - Parameter name: the rule's name, which is a part of each digest: equal values of two rules
  ///   cannot be seen to be equal.
  public init(
    _ name: String, _ rule: Value, _ values: [EffectKey: Value], key: Digest
  ) {
    // Equal values are equal binary lists, and others are others.
    func digest(_ parts: [Value]) -> Digest {
      Digest(of: Document.binary(.array([.string(name)] + parts)), key: key)
    }
    self.rule = digest([rule])
    self.values = [:]
    for (name, value) in values {
      self.values[name] = digest([.string(name.domain.string), .string(name.key.string), value])
    }
  }

  /// Creates what was read from a file.
  init(rule: Digest, values: [EffectKey: Digest]) { (self.rule, self.values) = (rule, values) }

  /// The keys whose values are different here: all of them where the rule has changed.
  /// - Parameter old: nil if the rule has never been carried out.
  public func changes(since old: EffectValues?) -> [EffectKey] {
    guard let old, old.rule == rule else { return values.keys.sorted() }
    let names = Set(values.keys).union(old.values.keys)
    return names.filter { values[$0] != old.values[$0] }.sorted()
  }
}

/// What a command gets of the changes that it runs for.
public struct EffectInput: Sendable {
  /// Standard input: JSON, `{DOMAIN: {KEY: value or null}}`.
  public let document: [UInt8]
  /// `PREFS_CHANGED`: a line for each key. Linux passes 128 KiB in a variable at most, so the lines
  /// beyond 64 KiB are left out.
  public let lines: String

  /// - Parameter values: the values now; a key without one is `null`.
  public init(_ changes: [EffectKey], _ values: [EffectKey: Value]) {
    var (lines, parts) = ("", [(domain: DomainName, text: String)]())
    for name in changes {
      let line = name.line + "\n"
      if lines.utf8.count + line.utf8.count <= 1 << 16 { lines += line }
      let key = Document.lineOfJSON(.string(name.key.string))
      let text = "\(key): \(values[name].map { Document.lineOfJSON($0) } ?? "null")"
      if parts.last?.domain == name.domain {
        parts[parts.count - 1].text += ",\n    " + text
      } else {
        parts.append((name.domain, text))
      }
    }
    let domains = parts.map {
      "  \(Document.lineOfJSON(.string($0.domain.string))): {\n    \($0.text)\n  }"
    }
    document = Array(("{\n" + domains.joined(separator: ",\n") + "\n}\n").utf8)
    self.lines = lines
  }
}
