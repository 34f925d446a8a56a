import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

// What is known of single keys, and of declarations.

extension BrowserStore {
  /// The most changes of a key that its details show.
  private static let mostChanges = 8

  /// What is known of a key. What cannot be found out is said in it.
  func details(of id: EntryID) -> Details {
    var details = Details(id: id)
    let schema = schemaKey(id)
    details.title = schema?.title ?? ""
    details.about = schema?.remarks ?? ""
    do throws(EngineError) {
      let found = try find(id)
      details.rule = schema?.rule ?? found?.kind.rawValue ?? ""
      let secrecy = Secrecy(places)
      details.holders = try Explanation(engine, layout, owner).holders(of: id.key, in: id.domain)
        .map {
          let isSecret = secrecy.hides($0.value, of: id, schema)
          let value = isSecret ? ValueLine.mask : ValueLine.short($0.value)
          return Details.Holder(source: $0.source, value: value, file: $0.file)
        }
      if !isPast {
        details.changes = try changes(of: id, atMost: Self.mostChanges).map(\.text)
      }
    } catch {
      details.problem = "not known: \(error.sentence)".printable()
    }
    return details
  }

  /// The last changes of a key, the newest first.
  func changes(
    of id: EntryID, atMost most: Int
  ) throws(EngineError) -> [(number: UInt64, text: String)] {
    let isSecret = schemaKey(id)?.hasSecrets == true
    var found: [(number: UInt64, text: String)] = []
    for case .change(let record) in try history.read().entries.reversed() {
      for item in record.items where item.key == id.key && item.location.domain == id.domain {
        let values =
          isSecret ? "(secret)" : "\(Self.short(item.before)) -> \(Self.short(item.after))"
        let place = item.location.place == .user ? "" : " in \(item.location.place.rawValue)"
        let text = "\(record.time.text) \(values)\(place)  \(record.source.text)"
        found.append((record.number, text.printable()))
      }
      if found.count >= most { break }
    }
    return Array(found.prefix(most))
  }

  private static func short(_ value: RecordedValue) -> String {
    String((value.value.map { ValueLine.short($0) } ?? value.text).prefix(60))
  }

  /// What is declared, by which declarations, and what is not as declared.
  func declarations() -> Event {
    var (declared, drifted): ([EntryID: [String]], Set<EntryID>) = ([:], [])
    for place in [nil, .host, .anyUser, .managed] as [Place?] {
      let declarations = Declarations(places, in: place)
      // A ledger that cannot be read declares nothing here.
      guard let ledger = try? declarations.ledger() else { continue }
      for path in ledger.paths {
        let id = EntryID(path.domain, path.key)
        for name in ledger.names(declaring: path) where declared[id]?.contains(name) != true {
          declared[id, default: []].append(name)
        }
      }
      for drift in (try? declarations.drift()) ?? [] {
        drifted.insert(EntryID(drift.path.domain, drift.path.key))
      }
    }
    return .declarations(declared, drifted: drifted)
  }

  /// A secret's value, which was asked for.
  func revealed(_ id: EntryID) throws(EngineError) -> Event {
    .revealed(id, try find(id).map { ValueLine.short($0.value) } ?? "")
  }

  /// The most bytes of a value's text that are shown.
  private static let mostShown = 1 << 21

  /// A key's value. Throws where it has none, and for a secret.
  /// - Parameter isShown: whether it may be a secret.
  func value(of id: EntryID, isShown: Bool) throws(EngineError) -> Value {
    let value = try find(id)?.value
    if let value, isShown || !Secrecy(places).hides(value, of: id, schemaKey(id)) { return value }
    let command = options.isPlain ? "reveal NUMBER" : "r"
    let reason = value == nil ? "it is not set" : "it is a secret; \(command) shows it"
    throw EngineError(.noSuchKey, domain: id.domain, key: id.key, reason)
  }

  /// The whole text of a value, as a key's file has it.
  func text(of id: EntryID, isShown: Bool) throws(EngineError) -> Event {
    let value = try value(of: id, isShown: isShown)
    var text = ValueText.canonical(value, style: .json).dropLast()
    if case .data(let bytes) = value { text = Array(bytes.hexadecimal.utf8)[...] }
    let rest = text.count - Self.mostShown
    let end = rest > 0 ? "\n... and \(rest) more bytes" : ""
    return .viewed(id, String(decoding: text.prefix(Self.mostShown), as: UTF8.self) + end)
  }

  // MARK: - Lines and exports

  /// The line of a shell that makes a change; empty if there is none.
  func line(_ id: EntryID, _ location: Location, _ value: Value?, isShown: Bool) -> String {
    var value = value
    if !isShown, let known = value, Secrecy(places).hides(known, of: id, schemaKey(id)) {
      value = .string(ValueLine.mask)
    }
    return Self.changes([(id, location, value)]).first?.command?.printableShellLine ?? ""
  }

  /// The keys' values in a form that sets them elsewhere. Secrets that are not shown are left out.
  func export(_ ids: [EntryID], as form: RecordedForm, shown: Set<EntryID>) throws(EngineError)
    -> Event
  {
    var all: [(EntryID, Location, Value?)] = []
    let secrecy = Secrecy(places)
    for id in ids {
      guard let found = try find(id),
        shown.contains(id) || !secrecy.hides(found.value, of: id, schemaKey(id))
      else { continue }
      let place: Place = found.location.place == .host ? .host : .user
      all.append((id, Location(place, id.domain), found.value))
    }
    let changes = Self.changes(all)
    var (text, rest) = form.text(of: changes)
    if form == .commands {
      text = changes.compactMap { $0.command?.printableShellLine }.map { $0 + "\n" }.joined()
    }
    let count = all.count - rest.count
    let left = ids.count - count
    let end = left > 0 ? "; \(left) left out: secret, not set, or too long" : ""
    let keys = count == 1 ? "1 key is" : "\(count) keys are"
    return .exported(Self.escaped(text), message: "\(keys) printed when you leave\(end)")
  }

  /// Changes from nothing to these values.
  private static func changes(_ all: [(EntryID, Location, Value?)]) -> [NetChange] {
    let items = all.map { id, location, value in
      let none = Metadata(text: nil, modified: Timestamp(nanoseconds: 0))
      let after = value.map { RecordedValue(StoredValue($0, none)) } ?? .none
      return HistoryRecord.Item(location, id.key, from: .notKept, to: after)
    }
    var record = HistoryRecord(items, time: .now, source: ChangeSource(.command))
    record.number = 1
    var filter = HistoryFilter()
    filter.isAll = true
    return NetChange.all(HistoryContents([.change(record)]), filter)
  }

  /// A text of several lines without anything that a terminal obeys. XML, which may have such
  /// characters in values, has numbers for them.
  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      let character = String(scalar)
      let isPlain = scalar == "\n" || scalar == "\t" || character.printable() == character
      escaped += isPlain ? character : "&#x\(String(scalar.value, radix: 16, uppercase: true));"
    }
    return escaped
  }
}
