import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// What was declared in a place, and what was there before: the domain `prefsfs.declared` of the
/// place.
///
/// Its keys are ordinary preferences: each name of a declaration has its document. Names that begin
/// with a dot are the ledger's own: `.merged`, the names of declarations that merge dictionaries;
/// `.over`, for each name the declarations that it takes precedence of; `.variables`, for each name
/// what the variables in its document stood for when it was declared; `.deadlines`, for each name
/// until when it counts, and what it said before; `.text/<file>`, the bytes
/// of a document that was written as a file; and for each domain `.domain/<domain>`, with `names`,
/// the declarations that name the domain, and `before`, what was there before each of its paths
/// that is declared. Where a part is declared and something else than a dictionary with parts stood
/// there, `before` has that too, under the path of the dictionary. Where elements are declared and
/// the place had no array, `before` has what was there under the path of the array, with `base`,
/// the array that the elements were put into. So an apply reads and writes the
/// keys of its own domains (`LedgerPart`). Earlier versions had all of `before` and all texts in
/// one key each, `.before` and `.texts`, which are read too.
package struct Ledger: Equatable, Sendable {
  /// The domain that has it.
  package static let domain = DomainName.declared

  /// What was there before a path was declared.
  package struct Before: Equatable, Sendable {
    /// The place of the key. Without `--place` it is the one that a change of the key goes to.
    package var place: Place
    /// What the path had; nil if it had none.
    package var value: Value?
    /// The text that was written for it.
    package var text: [UInt8]?
    /// Whether `value` is known: it is not for keys whose values the history does not keep.
    package var isKept = true
    /// Whether the place did not have the domain.
    package var hasMadeDomain = false
    /// What the key had in other lists of the user's, from which it was removed because it is
    /// declared absent.
    package var others: [Before] = []
    /// Whether no document names the key, and one declares its domain exactly.
    package var isSwept = false
    /// How often an array had the element.
    package var times = 1
    /// The array that the elements were put into, where the place had none; nil if it had one, or
    /// the path is no array's.
    package var base: [Value]?

    /// The largest number that counts of `times`.
    package static let mostTimes = 1 << 20

    /// Removes the values.
    /// - Returns: how many there were.
    fileprivate mutating func forget() -> Int {
      var count = 0
      if value != nil {
        (value, text, isKept) = (nil, nil, false)
        count = 1
      }
      base = base.map { _ in [] }
      for index in others.indices { count += others[index].forget() }
      return count
    }
  }

  /// A document as it was written as a file.
  package struct Text: Equatable, Sendable {
    /// The end of the file's name: `.json` or `.plist`.
    package let ending: String
    package let bytes: [UInt8]

    package init(ending: String, bytes: [UInt8]) { (self.ending, self.bytes) = (ending, bytes) }

    /// The ends of the names that documents have.
    package static let endings = [".plist", ".json"]
  }

  package var declarations: [String: Declaration] = [:]
  /// The texts of declarations. Whether one still says what the declaration does, a reader checks:
  /// the ledger may have been edited.
  package var texts: [String: Text] = [:]
  package var over: [String: Set<String>] = [:]
  package var before: [DeclaredPath: Before] = [:]
  /// Until when declarations count that must be confirmed, or are leases.
  package var deadlines: [String: Deadline] = [:]
  /// The names of declarations that merge dictionaries, and whose documents were not read.
  private var mergedBesides: Set<String> = []
  /// What variables stood for in documents that were not read.
  private var variablesBesides: [String: Variables] = [:]

  /// An empty ledger.
  package init() {}

  /// Whether a declaration can have the name.
  package static func canName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && name.utf8.count <= 200
      && name.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "/") && $0 != 0x7F }
  }

  /// Removes what was there before these paths were declared.
  /// - Returns: how many values there were.
  mutating func forget(_ isMeant: (DeclaredPath) -> Bool) -> Int {
    var count = 0
    for path in before.keys where isMeant(path) { count += before[path]?.forget() ?? 0 }
    return count
  }

  // MARK: - What counts

  /// The declarations of a path.
  package func names(declaring path: DeclaredPath) -> [String] {
    declarations.filter { $0.value.paths[path] != nil }.keys.sorted()
  }

  /// What counts for a path: what the declaration says that no other one takes precedence of. nil
  /// if nobody declares it.
  package func effective(_ path: DeclaredPath) -> Declaration.Declared? {
    let names = names(declaring: path)
    let last = names.first { name in !names.contains { over[$0]?.contains(name) == true } }
    return (last ?? names.first).flatMap { declarations[$0]?.paths[path] }
  }

  /// The paths in order; elements of an array in that of a document which has them.
  func inOrder(_ paths: some Sequence<DeclaredPath>) -> [DeclaredPath] {
    var positions: [DeclaredPath: Int] = [:]
    for (_, declaration) in declarations.sorted(by: { $0.key > $1.key }) {
      positions.merge(declaration.positions) { $1 }
    }
    return paths.sorted { one, other in
      guard one.element != nil, other.element != nil, one.array == other.array else {
        return one < other
      }
      let (first, second) = (positions[one] ?? .max, positions[other] ?? .max)
      return first == second ? one < other : first < second
    }
  }

  /// Whether a path is of a key whose value is different on another machine.
  func isOfHost(_ path: DeclaredPath) -> Bool {
    let key = DeclaredPath(path.domain, path.key)
    return declarations.values.contains { $0.hostKeys.contains(key) && $0.paths[path] != nil }
  }

  /// Every path that is declared.
  package var paths: Set<DeclaredPath> {
    declarations.values.reduce(into: []) { $0.formUnion($1.paths.keys) }
  }

  /// Two declarations that say different things of a path, and neither takes precedence; or that
  /// declare a dictionary and a part of it.
  package struct Conflict: Equatable, Sendable {
    package let path: DeclaredPath
    package let names: [String]
  }

  /// The conflicts of a declaration with others.
  package func conflicts(of name: String) -> [Conflict] {
    guard let own = declarations[name] else { return [] }
    var conflicts: [Conflict] = []
    for (other, declaration) in declarations.sorted(by: { $0.key < $1.key }) where other != name {
      let isOver = over[name]?.contains(other) == true || over[other]?.contains(name) == true
      let keys = Dictionary(grouping: declaration.paths.keys) { DeclaredPath($0.domain, $0.key) }
      for (path, declared) in own.paths {
        let isDifferent = declaration.paths[path].map { $0 != declared } ?? false
        let near = keys[DeclaredPath(path.domain, path.key)] ?? []
        if isDifferent && !isOver || near.contains(where: path.overlaps) {
          conflicts.append(Conflict(path: path, names: [name, other]))
        }
      }
    }
    return conflicts.sorted { $0.path < $1.path }
  }
}

// MARK: - As preferences

extension Ledger {
  /// Reads the ledger of a place. Throws EINVAL where it is damaged.
  package init(_ values: ValueDictionary) throws(EngineError) {
    self.init()
    var merged: Set<String> = []
    if let value = values[Self.mergedKey] {
      guard case .array(let names) = value else { throw Self.damaged(Self.mergedKey) }
      merged = Set(names.compactMap(\.string))
    }
    var variables: [String: Variables] = [:]
    for (key, value) in values[Self.variablesKey]?.dictionary ?? [:] {
      variables[key.string] = Variables(value)
    }
    for (key, value) in values where !key.string.hasPrefix(".") {
      guard case .dictionary(let document) = value else { throw Self.damaged(key) }
      do throws(EngineError) {
        declarations[key.string] = try Declaration(
          document, isMerged: merged.contains(key.string), isStored: true,
          variables: variables[key.string])
      } catch {
        throw Self.damaged(key)
      }
    }
    for (name, value) in values[Self.deadlinesKey]?.dictionary ?? [:] {
      deadlines[name.string] = Deadline(value)
    }
    mergedBesides = merged.filter { declarations[$0] == nil }
    variablesBesides = variables.filter { declarations[$0.key] == nil }
    if let value = values[Self.overKey] {
      guard case .dictionary(let all) = value else { throw Self.damaged(Self.overKey) }
      for case (let name, .array(let others)) in all {
        over[name.string] = Set(others.compactMap(\.string))
      }
    }
    if case .dictionary(let texts)? = values[Self.textsKey] {
      for (file, value) in texts { addText(file, value) }
    }
    if let entries = values[Self.beforeKey] { try addBefore(entries, Self.beforeKey) }
    for (key, value) in values {
      if let file = Self.file(ofText: key) { addText(file, value) }
      guard key.string.hasPrefix(Self.domainPrefix) else { continue }
      guard case .dictionary(let part) = value else { throw Self.damaged(key) }
      if let entries = part["before"] { try addBefore(entries, key) }
    }
    sweep(before.filter(\.value.isSwept).map(\.key))
  }

  // MARK: - Domains that are declared exactly

  /// Has the declarations which declare a domain exactly declare these keys of it not to be there,
  /// unless a document names them. Cost: O(declared paths), if there are any.
  mutating func sweep(_ keys: some Collection<DeclaredPath>) {
    if keys.isEmpty { return }
    let named = namedKeys
    for name in declarations.keys {
      for key in keys where !named.contains(key) { declarations[name]?.sweep(key) }
    }
  }

  /// The keys that documents name, wholly, in part, or to say nothing of them (`"$add": []`).
  var namedKeys: Set<DeclaredPath> {
    declarations.values.reduce(into: []) { named, declaration in
      for (domain, settings) in declaration.document {
        for (key, _) in settings.dictionary ?? [:] {
          named.insert(DeclaredPath(DomainName(domain.string), key))
        }
      }
    }
  }

  mutating func unsweep() {
    for name in declarations.keys { declarations[name]?.unsweep() }
  }

  /// The keys that a declaration which declares its domain exactly keeps away when no document
  /// names them: those that were swept before, and those that would come back.
  var sweptKeys: [DeclaredPath] {
    before.filter { path, before in
      before.isSwept
        || path.isWhole && before.base == nil && before.value != nil && before.isKept
          && !HistoryFilter.isState(RecordedKey(path.key, at: Location(before.place, path.domain)))
    }.map(\.key)
  }

  /// The domains that declarations name.
  package var domains: Set<DomainName> {
    declarations.values.reduce(into: []) { domains, declaration in
      domains.formUnion(declaration.exact)
      domains.formUnion(declaration.paths.keys.lazy.map(\.domain))
    }
  }

  private mutating func addText(_ file: Key, _ value: Value) {
    guard case .data(let bytes) = value,
      let ending = Text.endings.first(where: file.string.hasSuffix)
    else { return }
    let name = String(file.string.dropLast(ending.count))
    if declarations[name] != nil { texts[name] = Text(ending: ending, bytes: bytes) }
  }

  private mutating func addBefore(_ entries: Value, _ key: Key) throws(EngineError) {
    guard case .array(let entries) = entries else { throw Self.damaged(key) }
    for entry in entries {
      guard let (path, before) = Self.entry(entry) else { throw Self.damaged(key) }
      self.before[path] = before
    }
  }

  /// The key of all that was there before, and of all texts, in ledgers of earlier versions.
  static let (beforeKey, textsKey): (Key, Key) = (".before", ".texts")
  static let (mergedKey, overKey): (Key, Key) = (".merged", ".over")
  static let (variablesKey, deadlinesKey): (Key, Key) = (".variables", ".deadlines")
  private static let (domainPrefix, textPrefix) = (".domain/", ".text/")

  /// The keys that are about all declarations.
  static let commonKeys = [mergedKey, overKey, variablesKey, deadlinesKey]

  /// The key of what is known of a domain.
  static func key(of domain: DomainName) -> Key { Key(domainPrefix + domain.string) }

  /// The key of the text of a document that was written as that file.
  static func textKey(_ file: String) -> Key { Key(textPrefix + file) }

  /// The name of the file whose text the key has; nil if the key is another one.
  package static func file(ofText key: Key) -> Key? {
    guard key.string.hasPrefix(textPrefix) else { return nil }
    return Key(String(key.string.dropFirst(textPrefix.count)))
  }

  /// The declarations that name a domain, as the value of its key says.
  static func names(in value: Value?) -> [String] {
    guard case .array(let names)? = value?.dictionary?["names"] else { return [] }
    return names.compactMap(\.string).filter(canName)
  }

  private static func damaged(_ key: Key) -> EngineError {
    EngineError(
      .system(.invalidArgument), domain: domain, key: key,
      "the ledger of declarations is damaged, so nothing was changed; "
        + "without it (defaults delete \(domain)) nothing counts as declared, and values stay")
  }

  private static func entry(_ value: Value) -> (DeclaredPath, Before)? {
    guard case .dictionary(let entry) = value, case .string(let place)? = entry["place"],
      let place = Place(rawValue: place), case .string(let domain)? = entry["domain"],
      case .array(let names)? = entry["path"]
    else { return nil }
    let keys = names.compactMap(\.string).map { Key($0) }
    guard let key = keys.first, keys.count == names.count else { return nil }
    var before = Before(place: place, value: entry["value"])
    if case .data(let text)? = entry["text"] { before.text = text }
    before.isKept = entry["lost"] != true
    if let times = entry["times"]?.signed {
      before.times = min(max(Int(clamping: times), 1), Before.mostTimes)
    }
    if case .array(let base)? = entry["base"] { before.base = base }
    before.hasMadeDomain = entry["made"] == true
    before.isSwept = entry["swept"] == true
    if case .array(let others)? = entry["others"] {
      before.others = others.compactMap { Self.entry($0)?.1 }
    }
    let path = DeclaredPath(
      DomainName(domain), key, Array(keys.dropFirst()), element: entry["element"])
    return (path, before)
  }

  /// The keys of the ledger's domain.
  /// - Parameter domains: those whose keys are known; nil means all.
  func values(of domains: Set<DomainName>? = nil) -> ValueDictionary {
    var values: ValueDictionary = [:]
    for (name, declaration) in declarations {
      values[Key(name)] = .dictionary(declaration.document)
    }
    let besides = mergedBesides.filter { declarations[$0] == nil }
    let merged = besides.union(declarations.filter(\.value.isMerged).keys).sorted()
    if !merged.isEmpty { values[Self.mergedKey] = .array(merged.map { .string($0) }) }
    var variables = variablesBesides.filter { declarations[$0.key] == nil }
    for (name, declaration) in declarations { variables[name] = declaration.variables }
    if !variables.isEmpty {
      values[Self.variablesKey] = .dictionary(
        ValueDictionary(variables.map { (key: Key($0.key), value: $0.value.value) }))
    }
    if !deadlines.isEmpty {
      values[Self.deadlinesKey] = .dictionary(
        ValueDictionary(deadlines.map { (key: Key($0.key), value: $0.value.value) }))
    }
    let over = over.filter { !$0.value.isEmpty }
    if !over.isEmpty {
      values[Self.overKey] = .dictionary(
        ValueDictionary(
          over.map { name, others in
            (key: Key(name), value: .array(others.sorted().map { .string($0) }))
          }))
    }
    for (name, text) in texts {
      values[Self.textKey(name + text.ending)] = .data(text.bytes)
    }
    for (domain, part) in parts(of: domains) {
      values[Self.key(of: domain)] = .dictionary(
        ValueDictionary(part.map { (key: $0, value: .array($1)) }))
    }
    return values
  }

  /// What is kept of each domain.
  private func parts(of domains: Set<DomainName>?) -> [DomainName: [Key: [Value]]] {
    var parts: [DomainName: [Key: [Value]]] = [:]
    for (name, declaration) in declarations.sorted(by: { $0.key < $1.key }) {
      for domain in declaration.document.keys.lazy.map({ DomainName($0.string) })
      where domains?.contains(domain) ?? true {
        parts[domain, default: [:]]["names", default: []].append(.string(name))
      }
    }
    for (path, before) in before.sorted(by: { $0.key < $1.key }) {
      parts[path.domain, default: [:]]["before", default: []].append(Self.value(path, before))
    }
    return parts
  }

  private static func value(_ path: DeclaredPath, _ before: Before) -> Value {
    var entry: ValueDictionary = [
      "place": .string(before.place.rawValue), "domain": .string(path.domain.string),
      "path": .array(([path.key] + path.members).map { .string($0.string) }),
    ]
    entry["element"] = path.element?.value
    if before.times > 1 { entry["times"] = .integer(WideInteger(UInt64(before.times))) }
    if let base = before.base { entry["base"] = .array(base) }
    entry["value"] = before.value
    if let text = before.text { entry["text"] = .data(text) }
    if !before.isKept { entry["lost"] = true }
    if before.hasMadeDomain { entry["made"] = true }
    if before.isSwept { entry["swept"] = true }
    if !before.others.isEmpty {
      entry["others"] = .array(before.others.map { Self.value(path, $0) })
    }
    return .dictionary(entry)
  }
}
