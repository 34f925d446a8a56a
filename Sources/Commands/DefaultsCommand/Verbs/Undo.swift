import PreferenceHistory
import PreferenceModel
import PropertyList

/// `undo`: takes changes of the history back, all or none: see `UndoPlan`.
enum Undo {
  /// What is done with keys that were changed later.
  private enum Conflicts { case refuse, over, skip }

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var selection = HistoryArguments()
    var conflicts = Conflicts.refuse
    var isDryRun = false
    let because = try arguments.removeLast(option: "--because").map(Arguments.reason) ?? ""
    while let word = arguments.first {
      if try selection.read(&arguments) { continue }
      switch word {
      case "--over": conflicts = .over
      case "--skip": conflicts = .skip
      case "--dry-run": isDryRun = true
      case _ where UInt64(word) != nil && selection.filter.number == nil:
        selection.filter.number = UInt64(word)
      case _ where !word.hasPrefix("--") && selection.filter.domain == nil:
        try selection.readTarget(&arguments)
        continue
      default: throw Arguments.unexpected(word)
      }
      _ = try arguments.removeNext()
    }
    let filter = selection.filter
    guard selection.isLimited || filter.number != nil else {
      throw .mistake("undo needs the number of a change, or a filter; `prefs history` has them")
    }
    if filter.number != nil,
      filter.since != nil || filter.until != nil || filter.by != nil || filter.via != nil
    {
      throw Refusal(
        message: "A change is named by its number, or by --since, --until, --by and --via",
        detail: "leave one out; --place, a domain and a key go with both")
    }
    return try undo(&selection, conflicts, isDryRun, because)
  }

  private static func undo(
    _ selection: inout HistoryArguments, _ conflicts: Conflicts, _ isDryRun: Bool,
    _ because: String
  ) throws(Refusal) -> Int32 {
    try Refusal.wrapping("Could not undo; nothing was changed") { () throws(EngineError) in
      let store = try StoreView(via: .undo, because: because)
      let history = try selection.history(of: store)
      selection.filter.isUndo = true
      let changes = NetChange.all(history, selection.filter)
      if let line = history.leftOutLine(selection.filter) { Output.write(line: line, to: .errors) }
      noteRest(history, selection.filter, changes.count)
      if changes.isEmpty {
        Output.note("there is no such change; `history` shows them")
        return 1
      }
      let plan = try UndoPlan(changes, store.places, over: conflicts == .over)
      let isRefused = !plan.conflicts.isEmpty && conflicts != .skip
      for conflict in plan.conflicts {
        let end = isRefused ? "nothing was changed" : "it stays as it is"
        Output.note("\(conflict.key.shortText): \(conflict.reason); \(end)")
      }
      if isRefused { return 1 }
      if isDryRun {
        try store.check(plan.intents)
      } else {
        try plan.apply(to: store.places, by: store.author)
      }
      for step in plan.steps { Output.write(line: step.line) }
      return 0
    }
  }

  /// Says how many keys are left out because an undo cannot take their changes back.
  private static func noteRest(_ history: HistoryContents, _ filter: HistoryFilter, _ count: Int) {
    var whole = filter
    whole.isUndo = false
    let rest = NetChange.all(history, whole).filter { $0.key.location.domain != .declared }.count
    guard rest > count else { return }
    let keys = rest - count == 1 ? "1 key" : "\(rest - count) keys"
    Output.note(
      "left out: \(keys) of profiles or of the machine's lists (--via, --place, or a number names "
        + "them)")
  }
}

extension UndoPlan.Step {
  fileprivate var line: String {
    let lines = ValueDescription.lines(from: present, to: goal.shown)
    return "\(key.shortText): \(lines.old) -> \(goal.shown == nil ? goal.text : lines.new)"
  }
}

extension RecordedKey {
  /// The domain and key, behind the place if it is not the user's list.
  fileprivate var shortText: String {
    (location.place == .user ? "" : "\(location.place.rawValue) ") + "\(location.domain) \(key)"
  }
}

extension Undo {
  static let manual = VerbManual(
    group: .history, summary: "takes changes back",
    more: [
      .init("undo NUMBER|FILTER... [HOW...]", "takes changes back, all or none of them")
    ],
    text: """
      A change is named by its number, which history shows, or by filters. If a key
      was changed again later, nothing is done, unless --over or --skip says what.
      """,
    options: HistoryArguments.forms + ways + [VerbManual.because],
    example: """
      $ prefs undo --since -1h --dry-run
      $ prefs undo com.example.editor TabWidth
      com.example.editor TabWidth: 8 -> 4
      """)

  private static let ways: [VerbManual.Form] = [
    .init("--over", "takes later changes of the same keys back, too"),
    .init("--skip", "leaves keys alone that were changed later, or are forced"),
    .init("--dry-run", "only says what would be done"),
  ]
}
