import PreferenceDeclarations
import PreferenceModel
import PropertyList
import SystemCalls

/// Each declaration of a place as two documents, `<name>.plist` in XML and `<name>.json`, and a
/// report `drift` of what was changed since.
///
/// Setting a document declares exactly what it says; removing it takes back what it gave
/// (`DeclarationPlan`). A conflict with another declaration, and what is forced, is EPERM; a
/// document that is not a dictionary of domains is EINVAL.
///
/// Threads: any. Cost: setting a document reads every key that it names; lists that are not in
/// memory are asked for one by one, which may wait for the owner of the store.
struct DeclarationContents: WholeContents {
  let search: SearchEngine
  /// nil: the user's.
  let place: Place?

  private static let drift: Key = "drift"

  private var declarations: Declarations { Declarations(search.places, in: place) }

  /// The declaration that a key names, and whether as JSON.
  private static func name(_ key: Key) -> (name: String, isJSON: Bool)? {
    for (ending, isJSON) in [(".plist", false), (".json", true)] where key.string.hasSuffix(ending)
    {
      let name = String(key.string.dropLast(ending.count))
      return Ledger.canName(name) ? (name, isJSON) : nil
    }
    return nil
  }

  private static func keys(of name: String) -> [Key] {
    [Key(name + ".plist"), Key(name + ".json")]
  }

  func keys() throws(EngineError) -> Set<Key> {
    Set(try declarations.ledger().declarations.keys.flatMap(Self.keys)).union([Self.drift])
  }

  func whole(
    _ key: Key
  ) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)? {
    var modified = try search.modified(declarations.location) ?? Timestamp(nanoseconds: 0)
    if key == Self.drift {
      for path in try declarations.ledger().before {
        let location = Location(path.value.place, path.key.domain)
        modified = max(modified, try search.modified(location) ?? modified)
      }
      let text = try declarations.drift().map { $0.line.printable() + "\n" }.joined()
      return (.string(text), Array(text.utf8), modified)
    }
    guard let (name, isJSON) = Self.name(key),
      let declaration = try declarations.ledger().declarations[name]
    else { return nil }
    let value = Value.dictionary(declaration.document)
    let text = isJSON ? nil : try? Document.write(value, as: .xml)
    return (value, text ?? ValueText.canonical(value, style: .json), modified)
  }

  func apply(
    _ changes: [WholeChange], isComputed: Bool, by author: Author
  ) throws(EngineError) -> Changeset {
    var requests: [Declarations.Request] = []
    for (key, value) in changes { requests.append(try request(key, value)) }
    return try declarations.carryOut(requests, by: author).changeset
  }

  private func request(_ key: Key, _ value: Value?) throws(EngineError) -> Declarations.Request {
    guard let (name, _) = Self.name(key) else {
      throw EngineError(
        .system(.notPermitted),
        "\(key): the name of a declaration has .json or .plist behind it, and no blanks")
    }
    switch value {
    case nil: return .undeclare(name)
    case .dictionary(let document):
      let all = try declarations.ledger().declarations
      // A file that was renamed keeps the way in which it is declared.
      let old = all[name] ?? all.values.first { $0.document == document }
      return .declare(
        name, try Declaration(document, isMerged: old?.isMerged ?? false), over: [])
    default:
      throw EngineError(
        .system(.invalidArgument), "\(key): a declaration is a dictionary of domains")
    }
  }

  func isReadOnly(_ key: Key) -> Bool { key == Self.drift }

  func keys(changedBy item: Changeset.Item) -> [Key] {
    guard item.location == declarations.location, let key = item.edit.key else {
      return [Self.drift]
    }
    return Ledger.canName(key.string) ? Self.keys(of: key.string) + [Self.drift] : [Self.drift]
  }

  /// A document comes and goes with its key of the ledger; the report is always there.
  func kind(of item: Changeset.Item, for key: Key) -> KeyEvent.Kind {
    guard key != Self.drift, item.location == declarations.location else { return .changed }
    switch item.edit {
    case .remove, .removeDomain: return .removed
    case .set:
      if case .nothing = item.before { return .created }
      return .changed
    default: return .changed
    }
  }

  /// The domains of everything that is declared, as far as the ledger is in memory.
  func domainsNeeded(for key: Key?) -> [DomainName] {
    let location = declarations.location
    guard search.places.isLoaded(location), let ledger = try? declarations.ledger() else {
      return [location.domain]
    }
    return [location.domain] + Set(ledger.paths.map(\.domain))
  }
}
