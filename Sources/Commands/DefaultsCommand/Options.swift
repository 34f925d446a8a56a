import Glibc
import PreferenceHistory
import PreferenceModel
import StoreAccess

/// The options of a command line, before and behind the verb.
struct Options {
  /// `-currentHost`: only the place of this host is used.
  var isCurrentHost = false
  /// `--apple-text`: everything but ASCII is escaped.
  var isAppleText = false
  /// `--json`, `--plist`: how `read` shows values.
  var form = Form.description
  /// `--path`: keys are paths into values.
  var isPath = false
  /// `--sync`, or `DEFAULTS_SYNC=1`: when the command returns, the list on the disk has the change.
  var isSynchronous = getenv("DEFAULTS_SYNC").map { String(cString: $0) == "1" } ?? false
  /// `--at MOMENT`: values as they were then; nil means as they are.
  var moment: HistoryMoment?
  /// `--effective`: `read` shows the values that count.
  var isEffective = false
  /// `--for USER`: a report is about that user; nil means about the one who asks.
  var user: String?
  /// `--force`: schemas refuse nothing.
  var isForced = false
  /// `--rules`: a document may have rules, which run commands, and settings of the cloud.
  var allowsRules = false
  /// `--lease TIME`: for how many nanoseconds what is written counts; nil if it has no end.
  var lease: Int64?
  /// `--because TEXT`: why something is changed, for the history.
  var because = ""
  /// `--dry-run`: nothing is written.
  var isDryRun = false

  enum Form {
    case description
    case json
    case plist
  }

  /// Parses the options before the verb.
  /// - Returns: the options, and the words from the verb on. Throws if there is no verb.
  static func parse(_ words: [String]) throws(Refusal) -> (Options, ArraySlice<String>) {
    var options = Options()
    var rest = words[...]
    while let word = rest.first {
      switch word {
      case "-currentHost": options.isCurrentHost = true
      case "-host":
        rest.removeFirst()
        guard let host = rest.first else { throw .mistake("-host needs the name of a host") }
        try check(host)
        options.isCurrentHost = true
      case "--apple-text": options.isAppleText = true
      default: return (options, rest)
      }
      rest.removeFirst()
    }
    throw .mistake("a verb is missing")
  }

  /// Throws unless the name is one of this host. The lists of other hosts are in the same
  /// directory, but they are not a place of a store on this host.
  private static func check(_ host: String) throws(Refusal) {
    let own = Surroundings.hostName
    let known = [own, String(own.prefix { $0 != "." }), "localhost", Surroundings().hostIdentifier]
    if !known.contains(host) {
      throw Refusal(
        message: "Preferences of the host \(host) cannot be reached from here",
        detail: "this is \(own); use -currentHost for it, or a path below ByHost for another")
    }
  }
}

/// The words behind the verb, which are consumed one by one.
struct Arguments {
  /// The words that are left.
  private(set) var rest: ArraySlice<String>
  var options: Options

  init(_ rest: ArraySlice<String>, _ options: Options) {
    (self.rest, self.options) = (rest, options)
  }

  var isEmpty: Bool { rest.isEmpty }
  var count: Int { rest.count }
  var first: String? { rest.first }

  /// Removes and returns the next word; throws at the end of the command line.
  mutating func removeNext() throws(Refusal) -> String {
    guard let word = rest.popFirst() else { throw .mistake("a word is missing at the end") }
    return word
  }

  /// Removes a word, wherever it is.
  /// - Returns: whether it was there.
  mutating func remove(_ word: String) -> Bool {
    let count = rest.count
    rest.removeAll { $0 == word }
    return rest.count < count
  }

  /// Removes an option, wherever it is, and returns the word behind it; nil if it is not there.
  mutating func remove(option: String) throws(Refusal) -> String? {
    guard let index = rest.firstIndex(of: option) else { return nil }
    // An unset variable of a script: the next option is not the word.
    guard index + 1 < rest.endIndex, !rest[index + 1].hasPrefix("--") else {
      throw .mistake("\(option) needs a word behind it")
    }
    let word = rest[index + 1]
    rest.removeSubrange(index...index + 1)
    return word
  }

  /// Removes every such option, and returns the word behind the last one: a wrapper's options can
  /// be overridden behind them.
  mutating func removeLast(option: String) throws(Refusal) -> String? {
    var last: String?
    while let word = try remove(option: option) { last = word }
    return last
  }

  /// Returns the text that says why something is changed. Throws if it is too long.
  static func reason(_ text: String) throws(Refusal) -> String {
    guard text.utf8.count <= ChangeSource.longestReason else {
      throw .mistake("the text of --because has \(ChangeSource.longestReason) bytes at most")
    }
    return text
  }

  /// Throws if there are more words.
  func end() throws(Refusal) {
    if let word = rest.first { throw Self.unexpected(word) }
  }

  /// The refusal of a word that means nothing here.
  static func unexpected(_ word: String) -> Refusal {
    .mistake(word.hasPrefix("--") ? "there is no option \(word) here" : "unexpected word \(word)")
  }

  /// Parses the options of the verb, which are right behind it.
  mutating func parseOptions(of verb: Verb) throws(Refusal) {
    while let word = rest.first, verb.options.contains(word) {
      switch word {
      case "--json": options.form = .json
      case "--plist": options.form = .plist
      case "--path": options.isPath = true
      case "--sync": options.isSynchronous = true
      case "--at":
        rest.removeFirst()
        guard let moment = rest.first else { throw .mistake("--at needs a time") }
        options.moment = try HistoryArguments.moment(word: moment).endOfSecond
      case "--effective": options.isEffective = true
      case "--for":
        rest.removeFirst()
        guard let user = rest.first else { throw .mistake("--for needs the name of a user") }
        options.user = user
      case "--lease":
        rest.removeFirst()
        guard let time = rest.first else { throw .mistake("--lease needs a time") }
        options.lease = try TimeArgument.nanoseconds(time)
      case "--because":
        rest.removeFirst()
        guard let text = rest.first else { throw .mistake("--because needs a text") }
        options.because = try Self.reason(text)
      case "--dry-run": options.isDryRun = true
      case "--force": options.isForced = true
      case "--rules": options.allowsRules = true
      default: options.isAppleText = true
      }
      rest.removeFirst()
    }
  }
}
