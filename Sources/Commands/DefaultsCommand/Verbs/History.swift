import Glibc
import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `history`: shows what was changed, when, and by whom.
enum History {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    var selection = HistoryArguments()
    let user = try arguments.remove(option: "--for")
    if arguments.first == "forget" {
      if user != nil { throw .mistake("--for does not go with forget") }
      return try forget(&arguments)
    }
    let isJSON = try selection.readAll(&arguments)
    try Refusal.wrapping("Could not read the history") { () throws(EngineError) in
      let store = try StoreView(ofUser: user)
      let history = try selection.history(of: store)
      for entry in history.entries {
        if isJSON {
          guard let values = entry.values(selection.filter) else { continue }
          Output.write(json: values)
        } else {
          Output.write(entry.text(selection.filter))
        }
      }
      let isEmpty = !history.records.contains { record in
        selection.filter.contains(record)
          && record.items.contains { selection.filter.contains($0.recordedKey) }
      }
      let leftOut = history.leftOutLine(selection.filter)
      if !isJSON, let leftOut { Output.write(line: leftOut) }
      if isEmpty, leftOut == nil, let domain = selection.filter.domain {
        try noteAbsence(of: domain, store)
      }
    }
  }

  /// Says that the history has nothing of a domain, which may be misspelt.
  private static func noteAbsence(of domain: DomainName, _ store: StoreView) throws(EngineError) {
    let known = try store.engine.domains()
    let isKnown = domain == .global || known.contains(domain)
    let line =
      isKnown
      ? "the history has no such change of \(domain)"
      : "there is no domain \(domain), and the history has no such change of it"
    Output.note(line)
  }

  private static func forget(_ arguments: inout Arguments) throws(Refusal) {
    _ = try arguments.removeNext()
    let target = try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.removeNext())
    try arguments.end()
    try Refusal.wrapping("Could not remove the values") { () throws(EngineError) in
      let store = try StoreView()
      let report = try store.places.report(.forget(target.domain, key))
      guard case .integer(let count) = report else { return }
      Output.write("\(count) records had values, which are removed\n")
      for place in [nil, .host, .anyUser, .managed] as [Place?] {
        try forget(target.domain, key, in: Declarations(store.engine.places, in: place), store)
      }
    }
  }

  /// Removes the values that the ledger of declarations has from before.
  private static func forget(
    _ domain: DomainName, _ key: Key?, in declarations: Declarations, _ store: StoreView
  ) throws(EngineError) {
    let place = declarations.location.place
    do throws(EngineError) {
      let count = try declarations.forget(of: domain, key, by: store.author)
      guard count > 0 else { return }
      Output.write(
        line: "\(count) values from before declarations (\(place.rawValue)) are removed")
    } catch {
      // The machine's are root's; what a user has in the history is gone in any case.
      guard !place.isOwn, geteuid() != 0 else { throw error }
      Output.note("what declarations (\(place.rawValue)) have from before stays: \(error)")
    }
  }
}

extension History {
  static let manual = VerbManual(
    group: .history, summary: "shows what was changed, when, and by whom",
    more: [
      .init("history [DOMAIN [KEY]] [FILTER...]", "shows what was changed, when, and by whom"),
      .init("history forget DOMAIN [KEY]", "removes values from the history for good"),
    ],
    text: """
      The number at the beginning of a line names the change, for undo.
      """,
    options: HistoryArguments.forms + [VerbManual.json, VerbManual.user],
    example: """
      $ prefs history com.example.editor
      $ prefs history --since yesterday --by vim
      """)
}
