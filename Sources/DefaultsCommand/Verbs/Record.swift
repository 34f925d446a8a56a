import Glibc
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `record`: prints what makes the same changes again, in another store: commands, or a document
/// for `apply`. The changes are those since a moment, or those that are made while a program runs,
/// or until Ctrl-C.
enum Record {
  private enum Form: String { case commands, apply }

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var selection = HistoryArguments()
    var form = Form.commands
    var command: [String] = []
    while let word = arguments.first, command.isEmpty {
      if try selection.read(&arguments) { continue }
      _ = try arguments.removeNext()
      switch word {
      case "--as":
        let name = try arguments.removeNext()
        guard let known = Form(rawValue: name) else {
          throw Refusal(message: "--as \(name) means no form", detail: "commands, or apply")
        }
        form = known
      case "--": while !arguments.isEmpty { command.append(try arguments.removeNext()) }
      case _ where !word.hasPrefix("--") && selection.filter.domain == nil:
        selection.filter.domain = Target.domain(named: word)
      default: throw .usage
      }
    }
    do throws(EngineError) {
      let store = try StoreView()
      var status: Int32 = 0
      if selection.filter.since == nil {
        selection.filter.since = .number(try selection.history(of: store).lastNumber + 1)
        status = try wait(command)
      }
      print(try selection.history(of: store), selection.filter, form)
      return status
    } catch {
      throw Refusal("Could not record", error)
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
    Output.write("defaults: recording until Ctrl-C\n", to: .errors)
    var signal: Int32 = 0
    sigwait(&signals, &signal)
    return 0
  }

  private static func print(
    _ history: HistoryContents, _ filter: HistoryFilter, _ form: Form
  ) {
    let all = NetChange.all(history, filter.withState)
    let changes = all.filter { filter.contains($0.key) && $0.isDifference }
    var rest: [String] = []
    switch form {
    case .commands:
      for change in changes {
        if let command = change.command {
          Output.write(command + "\n")
        } else {
          rest.append(change.key.text)
        }
      }
    case .apply:
      var domains: ValueDictionary = [:]
      for change in changes {
        guard change.key.location.place == .user, let value = change.after.value else {
          rest.append(change.key.text)
          continue
        }
        let name = Key(change.key.location.domain.string)
        var settings: ValueDictionary =
          if case .dictionary(let known)? = domains[name] { known } else { [:] }
        settings[change.key.key] = value
        domains[name] = .dictionary(settings)
      }
      Output.write(Document.anyXML(.dictionary(domains)))
    }
    let state = all.filter { !filter.contains($0.key) }.count
    if state > 0 { note("\(state) keys that hold a program's state (--all has them)", form) }
    for name in rest { note(name, form) }
  }

  /// Says what was left out: as a comment, or on standard error beside a document.
  private static func note(_ what: String, _ form: Form) {
    Output.write(line: "# left out: \(what)", to: form == .commands ? .output : .errors)
  }
}

/// `diff`: shows what is different between two moments.
enum Diff {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    var selection = HistoryArguments()
    let from = try HistoryArguments.moment(word: try arguments.removeNext()).endOfSecond
    selection.filter.until = try HistoryArguments.moment(word: try arguments.removeNext())
      .endOfSecond
    selection.filter.since = from.next
    while !arguments.isEmpty {
      if try selection.read(&arguments) { continue }
      try selection.readTarget(&arguments)
    }
    do throws(EngineError) {
      let history = try selection.history(of: StoreView())
      for change in NetChange.all(history, selection.filter) where change.isDifference {
        Output.write(line: "\(change.key.text): \(change.before.text) -> \(change.after.text)")
      }
    } catch {
      throw Refusal("Could not read the history", error)
    }
  }
}

extension NetChange {
  /// The command that makes the change again; nil where there is none: the value is not kept, or
  /// the place is not one of `defaults`.
  fileprivate var command: String? {
    let location = key.location
    guard [.user, .host, .cloud].contains(location.place), after.isKnown else { return nil }
    let host = location.place == .host ? "-currentHost " : ""
    let domain = location.domain == .global ? "-g" : Self.quoted(location.domain.string)
    let target = "\(domain) \(Self.quoted(key.key.string))"
    guard let value = after.value else { return "defaults \(host)delete \(target)" }
    return Self.words(value).map { "defaults \(host)write \(target) \($0)" }
  }

  /// The words of a command line that mean the value; nil: none do.
  private static func words(_ value: Value) -> String? {
    switch value {
    case .string(let text): return "-string \(quoted(text))"
    case .boolean(let flag): return "-bool \(flag)"
    case .integer(let number) where number.signed != nil: return "-int \(number)"
    case .data(let bytes): return "-data \(quoted(bytes.hexadecimal))"
    case .date:
      let text = String(decoding: ValueText.canonical(value), as: UTF8.self)
      return "-date \(quoted(String(text.dropLast())))"
    case .integer, .real, .single, .uid, .array, .dictionary:
      return Document.element(value).map { quoted(String(decoding: $0, as: UTF8.self)) }
    }
  }

  /// The text as a word of a shell.
  static func quoted(_ text: String) -> String {
    let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+:,@%/=")
    if !text.isEmpty, text.allSatisfy({ plain.contains($0) }) { return text }
    return "'"
      + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
