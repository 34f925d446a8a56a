import Glibc
import PreferenceHistory
import PreferenceModel
import SystemCalls
import TerminalScreen

/// What the command line of the browser says.
package struct BrowserOptions: Sendable {
  /// The only domain that is shown; nil means all.
  package var domain: DomainName?
  /// The moment whose values are shown, read only; nil means the present.
  package var moment: HistoryMoment?
  /// The user whose preferences root looks at, read only; nil means its own.
  package var user: String?
  /// The only place that is shown and changed; nil means what programs read.
  package var place: Place?
  /// Whether keys are a numbered list with a prompt, for screen readers, logs and slow lines. So it
  /// is, too, wherever the terminal cannot move its cursor.
  package var isPlain = false

  /// All keys of this user, as they are.
  package init() {}

  /// Why nothing can be changed; nil if changes are possible.
  var readOnly: String? {
    if moment != nil { return "refused: this is the past, which cannot be changed" }
    return user == nil ? nil : "refused: preferences of another user are only looked at"
  }

  /// What the head of the screen says of it.
  var head: String {
    var words = ["prefs"]
    if let domain { words.append(domain.string) }
    if let place { words.append("in \(place.rawValue)") }
    if let user { words.append("of \(user)") }
    if let moment { words.append("at \(moment.word)") }
    return words.joined(separator: " ") + (readOnly == nil ? "" : ", read only")
  }

  /// The words of a command that shows a key.
  func command(showing id: EntryID) -> [String] {
    let words =
      if let moment { ["read", "--at", moment.word] } else if let user {
        ["explain", "--for", user]
      } else { ["explain"] }
    let domain = id.domain == .global ? "-g" : id.domain.string
    return ["prefs"] + words + [domain, id.key.string]
  }
}

extension HistoryMoment {
  /// The moment as a word of a command line.
  fileprivate var word: String {
    switch self {
    case .time(let time): time.text
    case .number(let number): "\(number)"
    }
  }
}

/// The browser of preferences: all keys in a terminal.
package enum Browser {
  /// Runs the browser until the user leaves it. Standard input and output are the terminal; of the
  /// plain form they may be anything. What the user wants printed is written to standard output at
  /// the end, and errors go to standard error. Blocks.
  ///
  /// The terminal is given back as it was, also after a signal or a crash.
  /// - Returns: the exit status: 0; 1 if the preferences cannot be read; 128 and a signal's number
  ///   that has ended it.
  package static func run(_ options: BrowserOptions) -> Int32 {
    var options = options
    if !Terminal.canShow() { options.isPlain = true }
    do throws(EngineError) {
      let store = try BrowserStore(options)
      // From here on threads of their own ask file systems, and may wait.
      CallWatch.end()
      if options.isPlain { return PlainSession(store).run() }
      return try EngineError.wrapping { () throws(SystemError) in try Session(store).run() }
    } catch {
      write("prefs: could not show the preferences: \(error)".printable() + "\n", to: 2)
      return 1
    }
  }

  /// Writes a text to a standard stream; what the stream does not take is lost.
  static func write(_ text: String, to stream: CInt = 1) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(stream, $0.baseAddress, $0.count) }
      if count < 0, Errno.current != .interrupted { return }
      rest = rest.dropFirst(max(count, 0))
    }
  }
}
