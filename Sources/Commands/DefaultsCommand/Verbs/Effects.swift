import EffectServer
import PreferenceEffects
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// `effects`: shows the rules that say what happens when a value changes, checks them, carries one
/// out, and serves them for the owner of the store.
enum Effects {
  /// - Returns: the exit status: 1 where a check has found something, or a rule has failed.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    if arguments.remove("--serve") {
      let directory = try arguments.remove(option: "--store")
      try arguments.end()
      CallWatch.end()
      return EffectProgram.serve(Surroundings(store: directory))
    }
    let (isJSON, isOver) = (arguments.remove("--json"), arguments.remove("--over"))
    let verb = arguments.isEmpty ? "list" : try arguments.removeNext()
    let name = verb == "run" ? try arguments.removeNext() : ""
    try arguments.end()
    let store = try Refusal.wrapping("Could not reach the preferences") { () throws(EngineError) in
      try StoreView()
    }
    switch verb {
    case "list": return try show(store, isJSON)
    case "check": return try check(store)
    case "run": return try carryOut(name, store, isOver)
    default: throw Arguments.unexpected(verb)
    }
  }

  private static func show(_ store: StoreView, _ isJSON: Bool) throws(Refusal) -> Int32 {
    let reader = EffectReader(store.engine)
    let reports = try Refusal.wrapping(unreadable) { () throws(EngineError) in
      // The owner's report does not have the values now.
      try EffectReport.values(
        store.places, StoreLayout(store.surroundings), current: reader.values(of:))
    }
    if isJSON {
      for report in reports { Output.write(json: report) }
    } else {
      for line in EffectReport.lines(reports) { Output.write(line: line) }
    }
    return 0
  }

  private static let unreadable = "Could not read the rules"

  private static func entries(_ store: StoreView) throws(Refusal) -> [EffectRules.Entry] {
    try Refusal.wrapping(unreadable) { () throws(EngineError) in
      try EffectRules.read(store.places, StoreLayout(store.surroundings)).entries
    }
  }

  /// Carries out a rule in this process, with its output to standard error.
  private static func carryOut(
    _ name: String, _ store: StoreView, _ isOver: Bool
  ) throws(Refusal) -> Int32 {
    let message = "Could not carry out \(name)"
    guard let entry = try entries(store).first(where: { $0.name == name }) else {
      throw Refusal(message: message, detail: "\(DomainName.effects) has no such key")
    }
    guard let rule = entry.rule else { throw Refusal(message: message, detail: entry.problem) }
    // The command may take long.
    CallWatch.end()
    EffectProgram.prepareCommands()
    let layout = StoreLayout(store.surroundings)
    let file = EffectStateFile(layout)
    let job = try Refusal.wrapping(message) { () throws(EngineError) in
      let values = try EffectReader(store.engine).values(of: rule)
      let state = try file.update()
      let digests = EffectValues(name, entry.value, values, key: state.key)
      return EffectJob(rule, digests, values, since: state.rules[name]?.done, isOver: isOver)
    }
    let problem = job.perform(file, layout) { Output.write(line: $0.text, to: .errors) }
    guard let problem else { return 0 }
    throw Refusal(message: message, detail: problem)
  }

  // MARK: - Check

  private static func check(_ store: StoreView) throws(Refusal) -> Int32 {
    let writer = EffectWriter(StoreLayout(store.surroundings))
    var status: Int32 = 0
    var writers: [String: String] = [:]
    func complain(_ name: String, _ sentence: String) {
      Output.write(line: "\(name): \(sentence)")
      status = 1
    }
    for entry in try entries(store) {
      if let problem = entry.problem { complain(entry.name, problem) }
      guard let rule = entry.rule else { continue }
      for key in rule.unknown { complain(entry.name, "\(key) means nothing") }
      if let program = missingProgram(rule.command) {
        complain(entry.name, "there is no command \(program)")
      }
      guard let path = writer.path(of: rule) else { continue }
      do throws(EffectProblem) {
        let target = try writer.target(path)
        if let other = writers.updateValue(entry.name, forKey: target.path) {
          complain(entry.name, "\(other) writes \(path) too; only one of them will")
        }
      } catch {
        complain(entry.name, error.sentence)
      }
    }
    return status
  }

  /// The program of a command that the shell does not find. Nil too for a line that begins with
  /// something else than a name.
  private static func missingProgram(_ command: [String]?) -> String? {
    guard let command else { return nil }
    let isLine = command.count == 3 && command[..<2] == ["/bin/sh", "-c"]
    let word = isLine ? String(command[2].prefix { $0 != " " }) : command[0]
    guard word.utf8.allSatisfy({ $0.isLetter || $0.isDigit || "/._+-".utf8.contains($0) }) else {
      return nil
    }
    let search = ["-c", "command -v -- \"$1\"", "sh", word]
    guard let outcome = try? Child.runApart("/bin/sh", search, milliseconds: 2000) else {
      return nil
    }
    return outcome.status == 0 ? nil : word
  }
}

extension Effects {
  static let manual = VerbManual(
    group: .change, summary: "runs commands and writes files when values change",
    more: [
      .init("effects [--json]", "shows the rules, and how each went last"),
      .init("effects check", "complains about rules that do not count, or cannot work"),
      .init("effects run [--over] NAME", "does what a rule says now"),
    ],
    text: """
      A rule is a key of the domain prefsfs.effects. Its value is a dictionary: Keys
      (patterns, DOMAIN/KEY), Run (a command) or Write (a file) with As (json, plist,
      env or ini), Delay and Timeout (seconds). It counts in the user's, the host's, the
      machine's and the managed lists. prefsd has it carried out when values that
      programs read have changed, once for each state of them.
      """,
    options: [
      VerbManual.json, .init("--over", "run: replaces a file that was edited since it was written"),
    ],
    example: """
      $ prefs write prefsfs.effects reload '{Keys = "com.example.e/*"; Run = "pkill -HUP e";}'
      $ prefs effects check
      """)
}
