import Glibc
import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `record`: prints what makes the same changes again, in another store (`RecordedForm`). The
/// changes are those since a moment, or those that are made while a program runs, or until Ctrl-C.
enum Record {
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var selection = HistoryArguments()
    var form = RecordedForm.commands
    var command: [String] = []
    while let word = arguments.first, command.isEmpty {
      if try selection.read(&arguments) { continue }
      if !word.hasPrefix("--"), selection.filter.domain == nil {
        try selection.readTarget(&arguments)
        continue
      }
      _ = try arguments.removeNext()
      switch word {
      case "--as":
        let name = try arguments.removeNext()
        guard let known = RecordedForm(rawValue: name) else {
          let names = RecordedForm.allCases.map(\.rawValue).joined(separator: ", ")
          throw Refusal(message: "Unknown --as \(name)", detail: "it is one of \(names)")
        }
        form = known
      case "--": while !arguments.isEmpty { command.append(try arguments.removeNext()) }
      default: throw Arguments.unexpected(word)
      }
    }
    return try Refusal.wrapping("Could not record") { () throws(EngineError) in
      let store = try StoreView()
      var status: Int32 = 0
      if selection.filter.since == nil {
        selection.filter.since = .number(try selection.history(of: store).lastNumber + 1)
        if !command.isEmpty { selection.filter.unit = ProcessFacts.beginRecording() }
        status = try wait(command)
      }
      print(try selection.history(of: store), selection.filter, form)
      return status
    }
  }

  /// Runs the program to its end; without one, waits for Ctrl-C.
  /// - Returns: the exit status of the program.
  private static func wait(_ command: [String]) throws(EngineError) -> Int32 {
    if let program = command.first {
      return try EngineError.wrapping { () throws(SystemError) in
        try Child.run(program, Array(command.dropFirst()))
      }
    }
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGINT, SIGTERM] { sigaddset(&signals, signal) }
    sigprocmask(SIG_BLOCK, &signals, nil)
    Output.note("recording until Ctrl-C")
    var signal: Int32 = 0
    sigwait(&signals, &signal)
    return 0
  }

  private static func print(
    _ history: HistoryContents, _ filter: HistoryFilter, _ form: RecordedForm
  ) {
    let all = NetChange.all(history, filter.withState)
    let (text, rest) = form.text(of: all.filter { filter.contains($0.key) && $0.isDifference })
    Output.write(text)
    let state = all.filter { !filter.contains($0.key) }.count
    if state > 0 { note("\(state) keys that hold a program's state (--all has them)", form) }
    for key in rest { note(key.text, form) }
  }

  /// Says what was left out: as a comment, or on standard error beside a property list.
  private static func note(_ what: String, _ form: RecordedForm) {
    let isComment = form == .commands || form == .ansible
    Output.write(line: "# left out: \(what)", to: isComment ? .output : .errors)
  }
}

/// `diff`: shows what is different between two moments, from the first to the second, whichever of
/// them is the earlier one.
enum Diff {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let start = try HistoryArguments.moment(word: try arguments.removeNext()).endOfSecond
    let end = try HistoryArguments.moment(word: try arguments.removeNext()).endOfSecond
    var selection = HistoryArguments()
    let isJSON = try selection.readAll(&arguments)
    try Refusal.wrapping("Could not read the history") { () throws(EngineError) in
      let history = try selection.history(of: StoreView())
      let from = HistoryMoment.number(try history.requireNumber(at: start))
      let to = HistoryMoment.number(try history.requireNumber(at: end))
      // No change is in both: the time between them has one direction.
      for change in changes(after: from, until: to, history, selection.filter) {
        print(change.key, from: change.before, to: change.after, isJSON)
      }
      for change in changes(after: to, until: from, history, selection.filter) {
        print(change.key, from: change.after, to: change.before, isJSON)
      }
    }
  }

  private static func changes(
    after start: HistoryMoment, until end: HistoryMoment, _ history: HistoryContents,
    _ filter: HistoryFilter
  ) -> [NetChange] {
    var filter = filter
    (filter.since, filter.until) = (start.next, end)
    return NetChange.all(history, filter).filter(\.isDifference)
  }

  private static func print(
    _ key: RecordedKey, from old: RecordedValue, to new: RecordedValue, _ isJSON: Bool
  ) {
    if isJSON { return Output.write(json: key.values(from: old, to: new)) }
    Output.write(line: "\(key.text): \(old.text(to: new))")
  }
}

extension Record {
  static let manual = VerbManual(
    group: .history, summary: "prints what makes changes again, elsewhere",
    more: [
      .init("record --since TIME [FILTER...]", "prints what makes the changes again"),
      .init("record [--as FORM] [-- CMD...]", "the same, while CMD runs, or until Ctrl-C"),
    ],
    text: """
      With a command, only what it and its children change is recorded, and the exit
      status is the command's.
      """,
    options: [.init("--as FORM", "commands (or none said), apply, ansible or profile")]
      + HistoryArguments.forms,
    example: """
      $ prefs record --as ansible --since yesterday > tasks.yml
      $ prefs record -- sh -c 'defaults write com.example.editor TabWidth -int 8'
      defaults write com.example.editor TabWidth -int 8
      """)
}

extension Diff {
  static let manual = VerbManual(
    group: .history, summary: "compares the values of two moments",
    more: [
      .init(
        "diff TIME TIME [DOMAIN [KEY]]", "shows what is different at the second moment")
    ],
    options: [
      .init("--place PLACE", "of that place alone"),
      .init("--all", "also what programs keep for themselves, such as frames of windows"),
      VerbManual.json, VerbManual.time,
    ],
    example: """
      $ prefs diff yesterday now com.example.editor
      """)
}
