import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// The filters of a command about the history, as its command line has them.
struct HistoryArguments {
  var filter = HistoryFilter()
  /// Whether a filter says which changes are meant.
  private(set) var isLimited = false

  /// Reads a filter, if the next word is one.
  /// - Returns: whether it was.
  mutating func read(_ arguments: inout Arguments) throws(Refusal) -> Bool {
    switch arguments.first {
    case "--since": filter.since = try Self.moment(&arguments)
    case "--until": filter.until = try Self.moment(&arguments).endOfSecond
    case "--by":
      let name = try Self.word(&arguments)
      // An unset variable of a script.
      guard !name.isEmpty else {
        throw Refusal(message: "--by needs a name", detail: "that of a program, or of its unit")
      }
      filter.by = name
    case "--via": filter.via = try Self.via(try Self.word(&arguments))
    case "--place":
      let name = try Self.word(&arguments)
      filter.place = Place(rawValue: name.replacing("managed-for/", with: "managed-for:"))
      if filter.place == nil {
        throw Refusal(
          message: "\(name) is not a place",
          detail: "managed, managed-for/USER, cloud, host, user, or any-user")
      }
    case "--all":
      _ = try arguments.removeNext()
      filter.isAll = true
      return true
    default: return false
    }
    isLimited = true
    return true
  }

  /// Reads the rest of a command line: filters, a domain with or without a key, and `--json`.
  /// - Returns: whether it has `--json`.
  mutating func readAll(_ arguments: inout Arguments) throws(Refusal) -> Bool {
    var isJSON = false
    while let word = arguments.first {
      if try read(&arguments) { continue }
      if word == "--json" {
        _ = try arguments.removeNext()
        isJSON = true
      } else if !word.hasPrefix("--"), filter.domain == nil {
        try readTarget(&arguments)
      } else {
        throw Arguments.unexpected(word)
      }
    }
    return isJSON
  }

  /// Reads the domain, and a key behind it.
  mutating func readTarget(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    guard !target.isPath else {
      throw Refusal(
        message: "The history of \(target.name) cannot be asked for by its path",
        detail: "name the domain")
    }
    (filter.domain, isLimited) = (target.domain, true)
    if let word = arguments.first, !word.hasPrefix("--") {
      filter.key = Key(try arguments.removeNext())
    }
  }

  private static func word(_ arguments: inout Arguments) throws(Refusal) -> String {
    _ = try arguments.removeNext()
    return try arguments.removeNext()
  }

  private static func via(_ name: String) throws(Refusal) -> ChangeSource.Via {
    if let via = ChangeSource.Via.allCases.first(where: { "\($0)" == name }) { return via }
    let names = ChangeSource.Via.allCases.map { "\($0)" }.joined(separator: ", ")
    throw Refusal(message: "Unknown --via \(name)", detail: "it is one of \(names)")
  }

  private static func moment(_ arguments: inout Arguments) throws(Refusal) -> HistoryMoment {
    try moment(word: try word(&arguments))
  }

  /// Returns the moment that a word of the command line means.
  static func moment(word text: String) throws(Refusal) -> HistoryMoment {
    guard let moment = HistoryMoment(text) else {
      throw Refusal(message: "\(text) is not a time", detail: HistoryMoment.forms)
    }
    return moment
  }

  /// Reads the history of the store. The filter then knows which of its keys hold state.
  mutating func history(of store: StoreView) throws(EngineError) -> HistoryContents {
    let history = try HistoryReader(store.places).read()
    if history.isOff {
      Output.note("the history is off (prefsfs History)")
    }
    filter.busy = filter.isAll ? [] : history.busyKeys()
    return history
  }
}

extension HistoryContents {
  /// The line that says how many changes the filter leaves out because their keys hold a program's
  /// state; nil means none.
  func leftOutLine(_ filter: HistoryFilter) -> String? {
    let left = leftOut(by: filter)
    guard left > 0 else { return nil }
    let what = "\(left) change\(left == 1 ? "" : "s") of keys that hold a program's state"
    return "# left out: \(what) (--all)"
  }
}

extension HistoryArguments {
  /// What the help says of the filters.
  static let forms: [VerbManual.Form] = [
    .init(
      "--since, --until TIME", "a number, ISO 8601, a day (UTC), yesterday, now, -2h (s, m, h, d)"),
    .init("--by NAME", "changes of that program (its path or its name), or unit"),
    .init("--via WAY", "mount, command, library, list, profile, once, cloud, undo, declaration"),
    .init("--all", "also what programs keep for themselves, such as frames of windows"),
    .init("--place PLACE", "managed, managed-for/USER, cloud, host, user, any-user"),
  ]
}
