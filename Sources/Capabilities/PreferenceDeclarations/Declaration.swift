import PreferenceModel
import PropertyList

/// What a declaration can name: a key of a domain, or with members a part of a dictionary.
package struct DeclaredPath: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let domain: DomainName
  package let key: Key
  /// The keys that lead from the key's value to the part; empty: the whole value.
  package let members: [Key]

  package init(_ domain: DomainName, _ key: Key, _ members: [Key] = []) {
    (self.domain, self.key, self.members) = (domain, key, members)
  }

  /// Returns what the key has if the path leads to the value and the key has nothing else.
  func wrapping(_ value: Value) -> Value {
    members.reversed().reduce(value) { .dictionary([$1: $0]) }
  }

  /// The path of what the first members lead to.
  func prefix(_ count: Int) -> DeclaredPath {
    DeclaredPath(domain, key, Array(members.prefix(count)))
  }

  /// Whether this is a part of the other.
  func isPart(of other: DeclaredPath) -> Bool {
    domain == other.domain && key == other.key && members.count > other.members.count
      && members.starts(with: other.members)
  }

  /// Whether one is a part of the other, and not the same.
  func overlaps(_ other: DeclaredPath) -> Bool {
    isPart(of: other) || other.isPart(of: self)
  }

  package static func < (one: DeclaredPath, other: DeclaredPath) -> Bool {
    if one.domain != other.domain { return one.domain < other.domain }
    if one.key != other.key { return one.key < other.key }
    return one.members.lexicographicallyPrecedes(other.members)
  }

  /// The domain, and the key with its members.
  package var description: String {
    "\(domain) " + ([key] + members).map(\.string).joined(separator: ".")
  }
}

/// A document that declares preferences: a dictionary of domains, each a dictionary of keys and
/// values. A value `null` of JSON, or the dictionary `{"$absent": true}` of any format, declares
/// that the key has no value.
package struct Declaration: Equatable, Sendable {
  /// What is declared of a path.
  package enum Declared: Equatable, Sendable {
    case value(Value)
    case absent

    /// The value; nil: there is to be none.
    package var value: Value? { if case .value(let value) = self { value } else { nil } }
  }

  /// The document.
  package let document: ValueDictionary
  /// Whether dictionaries are declared member by member (RFC 7396), so that other members stay.
  package let isMerged: Bool
  /// What is declared.
  package let paths: [DeclaredPath: Declared]

  /// What stands for a value that is declared not to be there.
  package static let absent: Value = ["$absent": true]

  /// Reads a declaration, which may call domains as people do (`DomainName.init(named:)`). It has its
  /// document with the names of the domains themselves. Throws EINVAL for a document that is not one.
  package init(_ document: ValueDictionary, isMerged: Bool = false) throws(EngineError) {
    var named: ValueDictionary = [:]
    var paths: [DeclaredPath: Declared] = [:]
    for (name, settings) in document {
      let domain = DomainName(named: name.string)
      guard named.updateValue(settings, forKey: domain.key) == nil else {
        throw EngineError(
          .system(.invalidArgument), domain: domain, "the document names the domain twice")
      }
      guard case .dictionary(let settings) = settings, .dictionary(settings) != Self.absent else {
        throw EngineError(
          .system(.invalidArgument), domain: domain,
          "a declaration has a dictionary of keys and values for each domain, not "
            + (settings == Self.absent ? "null" : "a value of type \(settings.kind.rawValue)"))
      }
      guard domain.canNameList, domain != Ledger.domain else {
        throw EngineError(.system(.invalidArgument), domain: domain, "no declaration can name it")
      }
      for (key, value) in settings {
        try Self.add(value, DeclaredPath(domain, key), isMerged, to: &paths)
      }
    }
    (self.document, self.isMerged, self.paths) = (named, isMerged, paths)
  }

  private static func add(
    _ value: Value, _ path: DeclaredPath, _ isMerged: Bool,
    to paths: inout [DeclaredPath: Declared]
  ) throws(EngineError) {
    if value == absent {
      paths[path] = .absent
    } else if isMerged, case .dictionary(let members) = value {
      // An empty one changes nothing.
      for (key, value) in members {
        let part = DeclaredPath(path.domain, path.key, path.members + [key])
        try add(value, part, isMerged, to: &paths)
      }
    } else {
      guard !value.hasAbsent else {
        throw EngineError(
          .system(.invalidArgument), domain: path.domain, key: path.key,
          "null can stand for the value of a key, and with --merge for that of a member")
      }
      paths[path] = .value(value)
    }
  }
}

extension Value {
  /// Whether the value is, or has inside, what stands for no value.
  fileprivate var hasAbsent: Bool {
    if self == Declaration.absent { return true }
    switch self {
    case .array(let elements): return elements.contains { $0.hasAbsent }
    case .dictionary(let members): return members.contains { $0.value.hasAbsent }
    default: return false
    }
  }

  /// Whether members can be in it: it is a dictionary, and so is each of them but the last.
  package func canHave(_ members: some Collection<Key>) -> Bool {
    guard let first = members.first else { return true }
    guard case .dictionary(let values) = self else { return false }
    return values[first].map { $0.canHave(members.dropFirst()) } ?? true
  }

  /// The part of the value that members lead to; nil if there is none.
  package func part(_ members: some Collection<Key>) -> Value? {
    guard let first = members.first else { return self }
    guard case .dictionary(let values) = self else { return nil }
    return values[first]?.part(members.dropFirst())
  }
}

extension Value? {
  /// Gives the value another part, or takes it away (nil). A value on the way that is not a
  /// dictionary becomes one. A dictionary that had only this part goes with it, unless `keepsEmpty`.
  /// Cost: O(members), if nothing else holds the value.
  package mutating func replace(
    _ members: some Collection<Key>, with part: Value?, keepsEmpty: Bool = false
  ) {
    guard let first = members.first else {
      self = part
      return
    }
    var values = self?.dictionary ?? [:]
    // Nothing but `values` may hold the dictionary while it changes: that would copy it.
    self = nil
    // Nor may anything but `inner` hold the inner dictionary: a boolean stands in its place.
    var inner = values.updateValue(.boolean(false), forKey: first)
    inner.replace(members.dropFirst(), with: part, keepsEmpty: keepsEmpty)
    values[first] = inner
    if !values.isEmpty || part != nil || keepsEmpty { self = .dictionary(values) }
  }
}
