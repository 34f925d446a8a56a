import PreferenceDeclarations
import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// Each declaration of a place as two documents, `<name>.plist` in XML and `<name>.json`, and a
/// report `drift` of what was changed since.
///
/// Setting a document declares exactly what it says; removing it takes back what it gave
/// (`DeclarationPlan`). A conflict with another declaration, what is forced, and keys that need
/// consent which the declaration does not have yet, are EPERM; a document that is not a dictionary
/// of domains is EINVAL. The ledger keeps the bytes that were written, so that a configuration
/// manager finds them again after a remount.
///
/// Threads: any. Cost: setting a document reads every key that it names; lists that are not in
/// memory are asked for one by one, which may wait for the owner of the store.
struct DeclarationContents: ViewContents {
  let search: SearchEngine
  /// nil means the user's.
  let place: Place?

  private let memory = LedgerMemory()

  private static let drift: Key = "drift"

  init(search: SearchEngine, place: Place?) { (self.search, self.place) = (search, place) }

  private var declarations: Declarations {
    Declarations(search.places, in: place, memory: memory) {
      [search] key, domain, place throws(EngineError) in
      try search.value(of: key, in: domain, behind: place)
    }
  }

  /// The declaration that a key names, and the ending, which says how the document is written.
  private static func name(_ key: Key) -> (name: String, ending: String)? {
    guard let ending = Ledger.Text.endings.first(where: key.string.hasSuffix) else { return nil }
    let name = String(key.string.dropLast(ending.count))
    return Ledger.canName(name) ? (name, ending) : nil
  }

  private static func keys(of name: String) -> [Key] {
    Ledger.Text.endings.map { Key(name + $0) }
  }

  func keys() throws(EngineError) -> Set<Key> {
    Set(try declarations.ledger().declarations.keys.flatMap(Self.keys)).union([Self.drift])
  }

  func whole(
    _ key: Key
  ) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)? {
    var modified = try search.modified(declarations.location) ?? Timestamp(nanoseconds: 0)
    if key == Self.drift {
      for location in try declarations.comparedLocations() {
        modified = max(modified, try search.modified(location) ?? modified)
      }
      let text = try declarations.drift().map { $0.line.printable() + "\n" }.joined()
      return (.string(text), Array(text.utf8), modified)
    }
    let ledger = try declarations.ledger()
    guard let (name, ending) = Self.name(key), let declaration = ledger.declarations[name] else {
      return nil
    }
    let value = Value.dictionary(declaration.document)
    if let text = ledger.texts[name], text.ending == ending, Self.isText(text.bytes, of: value) {
      return (value, text.bytes, modified)
    }
    let text = ending == ".json" ? nil : try? Document.write(value, as: .xml)
    return (value, text ?? ValueText.canonical(value, style: .json), modified)
  }

  private static func isText(_ bytes: [UInt8], of value: Value) -> Bool {
    Recogniser.value(
      of: bytes, kind: .dictionary, template: value, shown: value, null: Declaration.absent)
      == value
  }

  func apply(
    _ changes: [WholeChange], isComputed: Bool, isJudged: Bool, by author: Author
  ) throws(EngineError) -> Changeset {
    var requests: [Declarations.Request] = []
    for change in changes { requests.append(try request(change)) }
    return try declarations.carryOut(requests, isJudged: isJudged, by: author).changeset
  }

  private func request(_ change: WholeChange) throws(EngineError) -> Declarations.Request {
    guard let (name, ending) = Self.name(change.key) else {
      throw EngineError(
        .system(.notPermitted),
        "\(change.key): the name of a declaration has .json or .plist behind it, and no blanks")
    }
    switch change.value {
    case nil: return .undeclare(name)
    case .dictionary(let document):
      let all = try declarations.ledger().declarations
      // A file that was renamed keeps the way in which it is declared.
      let old = all[name] ?? all.values.first { $0.document == document }
      let declaration = try Declaration(
        document, isMerged: old?.isMerged ?? false, variables: .own)
      try Declaration.requireConsent(declaration.document, as: old?.document, name)
      return .declare(
        name, declaration, over: [],
        text: change.text.map { Ledger.Text(ending: ending, bytes: $0) })
    default:
      throw EngineError(
        .system(.invalidArgument), "\(change.key): a declaration is a dictionary of domains")
    }
  }

  func isReadOnly(_ key: Key) -> Bool { key == Self.drift }

  /// A document comes and goes with its key of the ledger; the report is always there.
  func changes(by item: Changeset.Item) -> [Key: KeyEvent.Kind] {
    var changes = [Self.drift: KeyEvent.Kind.changed]
    guard item.location == declarations.location, let key = item.edit.key else { return changes }
    // A text changes alone where a file is written again, with other blanks.
    if let file = Ledger.file(ofText: key) { return [file: .changed] }
    guard Ledger.canName(key.string) else { return changes }
    for document in Self.keys(of: key.string) { changes[document] = item.event?.kind ?? .changed }
    return changes
  }

  /// The domains of everything that is declared, as far as the ledger is in memory.
  func domainsNeeded(for key: Key?) -> [DomainName] {
    let location = declarations.location
    guard search.places.isLoaded(location), let ledger = try? declarations.ledger() else {
      return [location.domain]
    }
    return [location.domain] + ledger.domains
  }
}
