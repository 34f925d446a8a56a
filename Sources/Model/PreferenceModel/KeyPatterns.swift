import PropertyList

/// Which keys of which domains a setting is about, such as those of the cloud: patterns, in which
/// `*` stands for any text.
public struct KeyPatterns: Equatable, Sendable {
  /// The patterns of each domain.
  public private(set) var patterns: [DomainName: [String]] = [:]

  /// No key.
  public init() {}

  /// Reads a setting: a dictionary of arrays of patterns, or of one pattern, by domain. What is not
  /// a pattern is left out.
  public init(_ value: Value?) {
    guard case .dictionary(let domains)? = value else { return }
    for (name, value) in domains {
      let domain = DomainName(name.string)
      patterns[domain] = Self.patterns(in: value)?.compactMap(\.string)
    }
  }

  /// Whether all of a setting is read; a setting that is not there is.
  public static func areUnderstood(_ value: Value?) -> Bool {
    guard let value else { return true }
    guard case .dictionary(let domains) = value else { return false }
    return domains.allSatisfy { patterns(in: $0.value)?.allSatisfy { $0.string != nil } ?? false }
  }

  /// - Returns: what the setting has of a domain; nil if it is no pattern, and no array of them.
  private static func patterns(in value: Value) -> [Value]? {
    switch value {
    case .array(let items): items
    case .string: [value]
    default: nil
    }
  }

  /// The patterns of the domains whose keys may be in the cloud.
  package var ofCloud: KeyPatterns {
    var result = self
    result.patterns = patterns.filter { domain, _ in domain.mayBeInCloud }
    return result
  }

  /// Whether a pattern names the key. Cost: a hash look-up; the length of the patterns of the
  /// domain.
  public func contain(_ key: Key, of domain: DomainName) -> Bool {
    guard !patterns.isEmpty, let own = patterns[domain] else { return false }
    return own.contains { Self.matches(key.string, $0) }
  }

  /// Whether the text matches the pattern: each `*` takes as little as it can, and more where the
  /// rest does not match.
  package static func matches(_ text: String, _ pattern: String) -> Bool {
    var (text, pattern) = (text.utf8[...], pattern.utf8[...])
    var retry: (text: Substring.UTF8View, pattern: Substring.UTF8View)?
    while !text.isEmpty || !pattern.isEmpty {
      if pattern.first == UInt8(ascii: "*") {
        pattern = pattern.dropFirst()
        retry = (text, pattern)
      } else if let byte = text.first, pattern.first == byte {
        (text, pattern) = (text.dropFirst(), pattern.dropFirst())
      } else if let last = retry, !last.text.isEmpty {
        (text, pattern) = (last.text.dropFirst(), last.pattern)
        retry = (text, pattern)
      } else {
        return false
      }
    }
    return true
  }
}
