import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `apply --as`, `undeclare`, `declared`: declarations, which take back what they gave.
enum Declared {
  static func declare(_ arguments: DeclareArguments) throws(Refusal) -> Int32 {
    let request = Declarations.Request.declare(
      arguments.name, arguments.declaration, over: arguments.over)
    let limit = arguments.limit.map { limit in
      Declarations.Request.limit(
        arguments.name, nanoseconds: limit.nanoseconds, isLease: limit.isLease, from: .now)
    }
    return try carryOut(
      request, in: arguments.place, isDryRun: arguments.isDryRun, isJudged: !arguments.isForced,
      because: arguments.because, limit)
  }

  /// `confirm`: a declaration has no deadline any more.
  static func confirm(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let place = try DeclareArguments.place(&arguments)
    let name = try arguments.removeNext()
    try arguments.end()
    try Refusal.wrapping("Could not confirm; nothing was changed") { () throws(EngineError) in
      let store = try StoreView(via: .declaration)
      _ = try store.declarations(in: place).carryOut([.confirm(name)], by: store.author)
    }
    return 0
  }

  static func undeclare(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let place = try DeclareArguments.place(&arguments)
    let isDryRun = arguments.remove("--dry-run") || arguments.options.isDryRun
    let name = try arguments.removeNext()
    try arguments.end()
    if name.hasPrefix("--") { throw Arguments.unexpected(name) }
    return try carryOut(.undeclare(name), in: place, isDryRun: isDryRun)
  }

  private static func carryOut(
    _ request: Declarations.Request, in place: Place?, isDryRun: Bool, isJudged: Bool = false,
    because: String = "", _ limit: Declarations.Request? = nil
  ) throws(Refusal) -> Int32 {
    var view: StoreView?
    do throws(EngineError) {
      let store = try StoreView(via: .declaration, because: because)
      view = store
      let declarations = store.declarations(in: place)
      let requests = [request] + (limit.map { [$0] } ?? [])
      var plan = try declarations.plan(requests, isJudged: isJudged)
      // Asked before the change, which the history has afterwards.
      let changes = plan.steps.contains { !$0.isChange } ? try LastChanges(store) : nil
      if isDryRun {
        try store.check(plan.intents)
      } else {
        (plan, _) = try declarations.carryOut(requests, isJudged: isJudged, by: store.author)
      }
      for step in plan.steps { Output.write(line: step.line(changes)) }
      if case .undeclare = request { return 0 }
      return plan.steps.contains(where: \.isChange) ? Apply.changed : 0
    } catch {
      let verb = if case .undeclare = request { "undeclare" } else { "apply" }
      var quoted = error
      if error.reason == .unfit, let view {
        quoted = view.quoting(error, Self.value(of: error, in: request))
      }
      throw Refusal("Could not \(verb); nothing was changed", quoted)
    }
  }

  /// The value that is declared of the key that the error is about.
  private static func value(
    of error: EngineError, in request: Declarations.Request
  ) -> Value? {
    guard case .declare(_, let declaration, _, _, _) = request, let domain = error.domain,
      let key = error.key
    else { return nil }
    return declaration.paths[DeclaredPath(domain, key)]?.value
  }

  // MARK: - Reports

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    if arguments.remove("--adopt") { return try Adopt.run(&arguments) }
    let (isDrift, isJSON) = (arguments.remove("--drift"), arguments.remove("--json"))
    let user = try arguments.remove(option: "--for")
    let place = try DeclareArguments.place(&arguments)
    try arguments.end()
    return try Refusal.wrapping("Could not read the declarations") { () throws(EngineError) in
      let store = try StoreView(ofUser: user)
      let declarations = store.declarations(in: place)
      return isDrift
        ? try showDrift(declarations, store, isJSON) : try showNames(declarations, isJSON)
    }
  }

  private static func showNames(
    _ declarations: Declarations, _ isJSON: Bool
  ) throws(EngineError) -> Int32 {
    let ledger = try declarations.ledger()
    let drift = try declarations.drift()
    for (name, declaration) in ledger.declarations.sorted(by: { $0.key < $1.key }) {
      let keys = declaration.paths.count - declaration.swept.count
      let named = declaration.exact.union(declaration.paths.keys.map(\.domain))
      let domains = named.count
      let drifted = drift.filter { $0.names.contains(name) }.count
      if isJSON {
        Output.write(json: [
          "name": .string(name), "keys": .integer(WideInteger(UInt64(keys))),
          "domains": .integer(WideInteger(UInt64(domains))),
          "drifted": .integer(WideInteger(UInt64(drifted))),
          "document": .dictionary(declaration.document),
        ])
      } else {
        var end = drifted > 0 ? ", \(drifted) drifted" : ""
        if let deadline = ledger.deadlines[name] { end += ", until \(deadline.end)" }
        let counts =
          "\(keys) key\(keys == 1 ? "" : "s") of \(domains) domain\(domains == 1 ? "" : "s")"
        Output.write(line: "\(name): \(counts)\(end)")
      }
    }
    return 0
  }

  private static func showDrift(
    _ declarations: Declarations, _ store: StoreView, _ isJSON: Bool
  ) throws(EngineError) -> Int32 {
    let drift = try declarations.drift()
    if drift.isEmpty { return 0 }
    let changes = try LastChanges(store)
    for drift in drift {
      let last = changes.last(of: drift.path, in: drift.place)
      if isJSON {
        Output.write(json: drift.values(last))
      } else {
        let who = last.map { ": \($0.number) \($0.time.text) \($0.source.text)" } ?? ""
        Output.write(line: drift.line + who)
      }
    }
    return Apply.changed
  }
}

extension Deadline {
  /// When it is over, if nobody sets a clock.
  fileprivate var end: String {
    let left = remaining(at: .now)
    let (time, isOver) = Timestamp.now.nanoseconds.addingReportingOverflow(left)
    let text = Timestamp(nanoseconds: isOver ? .max : time).text
    return isLease ? text : "\(text) unless it is confirmed"
  }
}

extension StoreView {
  /// The declarations of a place; nil means the user's.
  func declarations(in place: Place?) -> Declarations {
    let engine = engine
    return Declarations(engine.places, in: place) { key, domain, place throws(EngineError) in
      try engine.value(of: key, in: domain, behind: place)
    }
  }
}

/// The last changes of keys, as the history has them.
private struct LastChanges {
  private var last: [RecordedKey: HistoryRecord] = [:]

  init(_ store: StoreView) throws(EngineError) {
    for record in try HistoryReader(store.places).read().records {
      for item in record.items { last[item.recordedKey] = record }
    }
  }

  func last(of path: DeclaredPath, in place: Place) -> HistoryRecord? {
    last[RecordedKey(path.key, at: Location(place, path.domain))]
  }
}

extension DeclarationPlan.Step {
  fileprivate func line(_ changes: LastChanges?) -> String {
    let lines = ValueDescription.lines(from: present, to: goal)
    let change = "\(path): \(lines.old) -> \(lines.new)"
    switch outcome {
    case .set: return change
    case .restored: return change + "    (back: no longer declared)"
    case .moved: return change + "    (back in \(place.rawValue): declared in another list)"
    case .changedSince:
      let last = changes?.last(of: path, in: place)
      let who = last.map { ", \($0.time.text), \($0.source.text)" } ?? ""
      return "\(path): \(present.line) stays    (changed since\(who))"
    case .notKept:
      return "\(path): \(present.line) stays    (what was there before is not kept)"
    }
  }
}

extension Declarations.Drift {
  fileprivate func values(_ last: HistoryRecord?) -> ValueDictionary {
    var values: ValueDictionary = [
      "domain": .string(path.domain.string), "place": .string(place.rawValue),
      "path": .array(([path.key] + path.members).map { .string($0.string) }),
      "names": .array(names.map { .string($0) }),
    ]
    values["element"] = path.element?.value
    values["declared"] = declared
    values["present"] = present
    values["unreadable"] = failure.map { .string($0) }
    guard let last else { return values }
    values["number"] = .integer(WideInteger(last.number))
    values["time"] = .string(last.time.text)
    values["via"] = .string("\(last.source.via)")
    values["program"] = .string(last.source.program)
    if !last.source.because.isEmpty { values["because"] = .string(last.source.because) }
    return values
  }
}

extension Declared {
  static let manual = VerbManual(
    group: .declarations, summary: "names the declarations, and what was changed since",
    more: [
      .init(
        "declared [--drift] [--json] [--for USER]",
        "names the declarations; what was changed since, and by whom"),
      .init(
        "declared --adopt [--dry-run] [--all] [--as NAME] FILE...",
        "writes what was changed since into the documents"),
    ],
    text: """
      With --drift it ends with status 2 if something is not as declared.
      """,
    options: [
      .init("--drift", "shows each key that is not as declared"), VerbManual.json,
      .init("--adopt", "changes only the values in the documents that drifted"),
      .init("--all", "--adopt: adds new keys of declared domains, too"),
      .init("--as NAME", "--adopt: the declaration that the documents are"),
      .init("--dry-run", "--adopt: prints a diff"),
      .init("--place PLACE", "what is declared there: managed, any-user, user or host"),
      VerbManual.user,
    ],
    example: """
      $ prefs declared
      site: 1 key of 1 domain
      $ prefs declared --drift
      """)

  static let confirmManual = VerbManual(
    group: .declarations, summary: "keeps what was applied with --confirm",
    more: [.init("confirm NAME", "what was applied with --confirm stays")],
    options: [.init("--place PLACE", "what was declared there: managed, any-user, user or host")],
    example: """
      $ prefs apply --as site --confirm 5m site.json
      $ prefs confirm site
      """)

  static let undeclareManual = VerbManual(
    group: .declarations, summary: "takes back what a declaration gave",
    more: [.init("undeclare [--dry-run] NAME", "takes back what the declaration gave")],
    text: """
      What was there before comes back; what somebody changed since then stays.
      """,
    options: [
      .init("--place PLACE", "what was declared there: managed, any-user, user or host"),
      .init("--dry-run", "only says what would be done"),
    ],
    example: """
      $ prefs undeclare --dry-run site
      """)
}
