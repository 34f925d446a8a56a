import Glibc
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// Which changes of the history a command is about: the filters of `history` and `undo`.
struct HistorySelection {
  /// A moment, or the change with a number.
  enum Moment {
    case time(Timestamp)
    case number(UInt64)

    /// The end of the second, for a time without a fraction: so are times printed.
    var endOfSecond: Moment {
      guard case .time(let time) = self, time.nanoseconds % 1_000_000_000 == 0 else { return self }
      let end = time.nanoseconds.addingReportingOverflow(999_999_999)
      return .time(Timestamp(nanoseconds: end.overflow ? .max : end.partialValue))
    }

    /// The moment after which changes are not in the state of this one.
    var next: Moment {
      switch self {
      case .time(let time): .time(time.next)
      case .number(let number): .number(number.addingReportingOverflow(1).partialValue)
      }
    }
  }

  /// The only domain, and the only key; nil: all.
  var domain: DomainName?
  var key: Key?
  /// The only change; nil: all.
  var number: UInt64?
  var since, until: Moment?
  /// The path or name of a program, or a unit; nil: all.
  var by: String?
  var via: ChangeSource.Via?
  /// Whether keys that hold a program's state, and are no settings, are meant too.
  var isAll = false
  /// Whether a filter says which changes are meant.
  private(set) var isLimited = false

  /// Reads a filter, if the next word is one.
  /// - Returns: whether it was.
  mutating func read(_ arguments: inout Arguments) throws(Refusal) -> Bool {
    switch arguments.first {
    case "--since": since = try Self.moment(&arguments)
    case "--until": until = try Self.moment(&arguments).endOfSecond
    case "--by": by = try Self.word(&arguments)
    case "--via":
      let name = try Self.word(&arguments)
      via = ChangeSource.Via.allCases.first { "\($0)" == name }
      guard via != nil else {
        let names = ChangeSource.Via.allCases.map { "\($0)" }.joined(separator: ", ")
        throw Refusal(message: "--via \(name) means no changes", detail: "it is one of \(names)")
      }
    case "--all":
      _ = try arguments.removeNext()
      isAll = true
      return true
    default: return false
    }
    isLimited = true
    return true
  }

  /// Reads the domain, and a key behind it.
  mutating func readTarget(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    guard !target.isPath else {
      throw Refusal(
        message: "The history of \(target.name) cannot be asked for by its path",
        detail: "name the domain")
    }
    (domain, isLimited) = (target.domain, true)
    if let word = arguments.first, !word.hasPrefix("--") { key = Key(try arguments.removeNext()) }
  }

  private static func word(_ arguments: inout Arguments) throws(Refusal) -> String {
    _ = try arguments.removeNext()
    return try arguments.removeNext()
  }

  private static func moment(_ arguments: inout Arguments) throws(Refusal) -> Moment {
    try moment(word: try word(&arguments))
  }

  /// Returns the moment that a word of the command line means.
  static func moment(word text: String) throws(Refusal) -> Moment {
    guard let moment = moment(text, now: .now) else {
      throw Refusal(
        message: "\(text) is no time",
        detail: "a number of a change, 2026-11-21T07:20:00Z, 2026-11-21, yesterday, now, or -2h")
    }
    return moment
  }

  /// Returns the moment that a text means; nil if it means none. Days begin at midnight, UTC, as
  /// the times that `history` prints.
  static func moment(_ text: String, now: Timestamp) -> Moment? {
    if let number = UInt64(text) { return .number(number) }
    let day: Int64 = 86_400_000_000_000
    let today = now.nanoseconds - (now.nanoseconds % day + day) % day
    switch text {
    case "now": return .time(now)
    case "today": return .time(Timestamp(nanoseconds: today))
    case "yesterday": return .time(Timestamp(nanoseconds: today - day))
    default: break
    }
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    if text.hasPrefix("-"), let unit = text.last.flatMap({ units[$0] }),
      let count = Int32(text.dropFirst().dropLast()), count >= 0
    {
      // At most 2^31 * 86,400 seconds.
      let length = (Int64(count) * unit).multipliedReportingOverflow(by: 1_000_000_000)
      let start = now.nanoseconds.subtractingReportingOverflow(length.partialValue)
      let isBefore = length.overflow || start.overflow
      return .time(Timestamp(nanoseconds: isBefore ? .min : start.partialValue))
    }
    for text in [text, text + "T00:00:00Z"] {
      if case .date(let date)? = Recogniser.value(of: Array(text.utf8), kind: .date) {
        return .time(Timestamp(date))
      }
    }
    return nil
  }

  /// The same changes, with those of keys that hold a program's state.
  var withState: HistorySelection {
    var selection = self
    selection.isAll = true
    return selection
  }

  /// Whether the change is meant, apart from its keys.
  func contains(_ record: HistoryRecord) -> Bool {
    if let number { return record.number == number }
    switch since {
    case .time(let time)? where record.time < time: return false
    case .number(let number)? where record.number < number: return false
    default: break
    }
    switch until {
    case .time(let time)? where record.time > time: return false
    case .number(let number)? where record.number > number: return false
    default: break
    }
    if let via, record.source.via != via { return false }
    guard let by else { return true }
    let program = record.source.program
    return by == program || by == record.source.unit
      || program.split(separator: "/").last.map(String.init) == by
  }

  /// Whether the key of a change is meant.
  func contains(_ item: HistoryRecord.Item) -> Bool { contains(item.key, of: item.location.domain) }

  /// Whether the key of several changes is meant.
  func contains(_ change: NetChange) -> Bool { contains(change.key, of: change.location.domain) }

  private func contains(_ changed: Key, of changedDomain: DomainName) -> Bool {
    if let domain, changedDomain != domain { return false }
    if let key { return changed == key }
    return isAll || number != nil || !Self.isState(changed)
  }

  /// Whether the key holds a program's state, by its name: where its windows were, and when it last
  /// looked for something.
  static func isState(_ key: Key) -> Bool {
    let name = key.string
    return name.hasPrefix("NSWindow Frame ") || name.hasPrefix("NSSplitView")
      || name.hasPrefix("NSNav") || name.hasPrefix("NSToolbar") || name.contains("Geometry")
      || name.hasSuffix("LastCheckTime")
  }
}

/// The history of a store, as its owner has it now.
struct HistoryView {
  /// Every change that is known, the oldest first.
  let records: [HistoryRecord]
  let entries: [HistoryDirectory.Entry]

  /// The number of the last change; 0: there is none.
  var lastNumber: UInt64 { records.last?.number ?? 0 }

  /// Has the owner write what it has, and reads the history.
  init(_ store: StoreView) throws(EngineError) {
    guard case .dictionary(let report) = try store.places.report(.history),
      case .string(let path)? = report["Directory"]
    else {
      throw EngineError(
        .system(.invalidArgument), "the running prefsd is older and keeps no history")
    }
    if report["Off"] == true {
      Output.write(line: "defaults: the history is off (prefsfs History)", to: .errors)
    }
    entries = try EngineError.wrapping { () throws(SystemError) in
      try HistoryDirectory(path).entries()
    }
    records = entries.compactMap { if case .change(let record) = $0 { record } else { nil } }
  }
}
