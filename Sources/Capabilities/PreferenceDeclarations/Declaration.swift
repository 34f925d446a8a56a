import PreferenceModel
import PropertyList

/// A document that declares preferences: a dictionary of domains, each a dictionary of keys and
/// values. A value `null` of JSON, or the dictionary `{"$absent": true}` of any format, declares
/// that the key has no value. Other dictionaries of words with a dollar are instructions
/// (`Instruction`).
package struct Declaration: Equatable, Sendable {
  /// What is declared of a path.
  package enum Declared: Equatable, Sendable {
    case value(Value)
    case absent

    /// The value; nil if there is to be none.
    package var value: Value? { if case .value(let value) = self { value } else { nil } }
  }

  /// The document.
  package let document: ValueDictionary
  /// Whether dictionaries are declared member by member (RFC 7396), so that other members stay.
  package let isMerged: Bool
  /// What is declared.
  package private(set) var paths: [DeclaredPath: Declared]
  /// The domains that are declared exactly: with `"$exact": true` among their keys.
  package let exact: Set<DomainName>
  /// The keys of those that the document does not name, and that are declared not to be there.
  package private(set) var swept: Set<DeclaredPath> = []
  /// The order of elements in the document.
  let positions: [DeclaredPath: Int]

  /// What the variables stood for that the document has, when it was declared; nil if it has none.
  package let variables: Variables?
  /// The keys whose values are different on another machine.
  let hostKeys: Set<DeclaredPath>

  /// What stands for a value that is declared not to be there.
  package static let absent: Value = ["$absent": true]

  /// Reads a declaration, which may call domains as people do (`DomainName.init(named:)`). It has
  /// its document with the names of the domains themselves. Throws EINVAL for a document that is
  /// not one.
  /// - Parameters:
  ///   - isStored: whether it is from a ledger: what an earlier version has taken for a value is
  ///     one.
  ///   - variables: what variables stand for; nil if strings are what they are.
  package init(
    _ document: ValueDictionary, isMerged: Bool = false, isStored: Bool = false,
    variables: Variables? = nil
  ) throws(EngineError) {
    var named: ValueDictionary = [:]
    let hasVariables = variables != nil && Value.dictionary(document).hasVariables
    var reading = Reading(isStored: isStored, variables: hasVariables ? variables : nil)
    var exact: Set<DomainName> = []
    for (name, settings) in document {
      let domain = DomainName(named: name.string)
      guard named.updateValue(settings, forKey: domain.key) == nil else {
        throw Self.refused(domain, "the document names the domain twice")
      }
      guard case .dictionary(let settings) = settings, .dictionary(settings) != Self.absent else {
        throw Self.refused(
          domain,
          "a declaration has a dictionary of keys and values for each domain, not "
            + (settings == Self.absent ? "null" : "a value of type \(settings.kind.rawValue)"))
      }
      guard domain.canNameList, domain != Ledger.domain else {
        throw Self.refused(domain, "no declaration can name it")
      }
      for (key, value) in settings {
        if key == Self.exactKey, case .boolean(let isExact) = value {
          if isExact { exact.insert(try Self.exact(domain)) }
        } else {
          try reading.add(value, DeclaredPath(domain, key), isMerged)
        }
      }
    }
    (self.document, self.isMerged) = (named, isMerged)
    (paths, positions, self.exact) = (reading.paths, reading.positions, exact)
    self.variables = reading.variables?.limited(to: reading.used)
    hostKeys = reading.hostKeys
  }

  /// Throws EPERM where a document has keys that need consent (`DomainName.consentReason`), unless
  /// the declaration of that name has the same ones already.
  package static func requireConsent(
    _ document: ValueDictionary, as known: ValueDictionary?, _ name: String
  ) throws(EngineError) {
    for (key, values) in document where values != [:] && values != known?[key] {
      let domain = DomainName(key.string)
      guard let reason = domain.consentReason else { continue }
      throw EngineError(
        .system(.notPermitted), domain: domain,
        "\(reason); prefs apply --as \(name) --rules FILE declares it")
    }
  }

  /// The word that a domain has among its keys which is declared exactly.
  package static let exactKey: Key = "$exact"

  /// Whether a word among the keys of a domain says how the domain is declared, and is no key.
  package static func isWord(_ key: Key, _ value: Value) -> Bool {
    key == exactKey && value.kind == .boolean
  }

  /// The domain; throws if it cannot be declared exactly.
  private static func exact(_ domain: DomainName) throws(EngineError) -> DomainName {
    guard domain != .global, !domain.string.hasPrefix("prefsfs") else {
      throw refused(
        domain, "$exact would remove keys that programs need, so it is refused for this domain")
    }
    return domain
  }

  /// The domains that it names with a key, or exactly.
  package var domains: Set<DomainName> { exact.union(paths.keys.lazy.map(\.domain)) }

  /// Declares a key not to be there that the document does not name.
  mutating func sweep(_ path: DeclaredPath) {
    guard exact.contains(path.domain), paths[path] == nil else { return }
    paths[path] = .absent
    swept.insert(path)
  }

  /// Ends what `sweep` has declared.
  mutating func unsweep() {
    for path in swept { paths[path] = nil }
    swept = []
  }

  private static func refused(_ domain: DomainName, _ sentence: String) -> EngineError {
    EngineError(.system(.invalidArgument), domain: domain, sentence)
  }
}

/// What a document says, as it is read.
private struct Reading {
  var paths: [DeclaredPath: Declaration.Declared] = [:]
  var positions: [DeclaredPath: Int] = [:]
  /// The variables that the document has so far, and the keys of those of the host.
  var used: Set<Variables.Name> = []
  var hostKeys: Set<DeclaredPath> = []
  let isStored: Bool
  let variables: Variables?

  init(isStored: Bool, variables: Variables?) {
    (self.isStored, self.variables) = (isStored, variables)
  }

  private mutating func expand(
    _ value: Value, _ path: DeclaredPath
  ) throws(EngineError) -> Value {
    guard let variables else { return value }
    var names: Set<Variables.Name> = []
    let expanded: Value
    do throws(Variables.Unknown) {
      expanded = try variables.expand(value, &names)
    } catch {
      let known = Variables.Name.allCases.map { "${\($0.rawValue)}" }.joined(separator: ", ")
      throw refused(
        path,
        "\(error.text) is not a variable; there are \(known); $${ stands for ${ itself")
    }
    used.formUnion(names)
    if names.contains(where: \.isOfHost) { hostKeys.insert(DeclaredPath(path.domain, path.key)) }
    return expanded
  }

  mutating func add(
    _ value: Value, _ path: DeclaredPath, _ isMerged: Bool
  ) throws(EngineError) {
    switch try instruction(value, path) {
    case .absent: paths[path] = .absent
    case .value(let value): paths[path] = .value(try expand(value, path))
    case .elements(let added, let removed):
      for element in added { try add(element: element, isThere: true, path) }
      for element in removed { try add(element: element, isThere: false, path) }
    case .merge(let members): try add(members: members, path)
    case nil:
      if isMerged, case .dictionary(let members) = value { return try add(members: members, path) }
      guard !value.hasInstruction(isStored: isStored) else {
        throw refused(
          path,
          "null, or a dictionary of words with $, can stand for the value of a key, and with "
            + "--merge or in $merge for that of a member; {\"$value\": X} is X itself")
      }
      paths[path] = .value(try expand(value, path))
    }
  }

  /// An empty dictionary changes nothing.
  private mutating func add(members: ValueDictionary, _ path: DeclaredPath) throws(EngineError) {
    for (key, value) in members {
      try add(value, DeclaredPath(path.domain, path.key, path.members + [key]), true)
    }
  }

  private mutating func add(
    element: Value, isThere: Bool, _ path: DeclaredPath
  ) throws(EngineError) {
    guard !element.hasInstruction(isStored: isStored) else {
      throw refused(path, "null, or a dictionary of words with $, cannot be an element of $add")
    }
    let element = try expand(element, path)
    let declared = isThere ? Declaration.Declared.value(element) : .absent
    let path = DeclaredPath(path.domain, path.key, path.members, element: element)
    let known = paths.updateValue(declared, forKey: path)
    guard known == nil || known == declared else {
      throw refused(path, "$add and $remove have the same element")
    }
    if known == nil { positions[path] = positions.count }
  }

  private func instruction(
    _ value: Value, _ path: DeclaredPath
  ) throws(EngineError) -> Instruction? {
    guard let words = Instruction.words(of: value) else { return nil }
    if let instruction = Instruction(words) { return instruction }
    if isStored { return nil }
    let names = words.map(\.key.string).sorted().joined(separator: ", ")
    throw refused(
      path,
      "a dictionary of \(names) is not an instruction; there are "
        + "{\"$add\": [...], \"$remove\": [...]}, {\"$merge\": {...}}, {\"$absent\": true} "
        + "and {\"$value\": X}, which is X itself")
  }

  private func refused(_ path: DeclaredPath, _ sentence: String) -> EngineError {
    EngineError(.system(.invalidArgument), domain: path.domain, key: path.key, sentence)
  }
}
