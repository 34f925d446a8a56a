import Glibc
import PreferenceProtocol

/// What stands before the verb, and the options behind it.
struct Options {
  /// `-currentHost`: the place of this host, outright.
  var isCurrentHost = false
  /// `--apple-text`: everything but ASCII is escaped.
  var isAppleText = false
  /// `--json`, `--plist`: how `read` shows values.
  var form = Form.description
  /// `--path`: keys are paths into values.
  var isPath = false
  /// `--sync`: the list on the disk is rewritten when the command returns.
  var isSynchronous = getenv("DEFAULTS_SYNC").map { String(cString: $0) == "1" } ?? false
  /// `--dry-run`: nothing is written.
  var isDryRun = false

  enum Form {
    case description
    case json
    case plist
  }

  /// Takes the options before the verb.
  static func parse(_ words: [String]) throws(Refusal) -> (Options, ArraySlice<String>) {
    var options = Options()
    var rest = words[...]
    while let word = rest.first {
      switch word {
      case "-currentHost": options.isCurrentHost = true
      case "-host":
        rest.removeFirst()
        guard let host = rest.first else { throw .usage }
        try check(host)
        options.isCurrentHost = true
      case "--apple-text": options.isAppleText = true
      default: return (options, rest)
      }
      rest.removeFirst()
    }
    throw .usage
  }

  /// Lists of other hosts are in the same directory, but no store of this host has them as a place.
  private static func check(_ host: String) throws(Refusal) {
    var name = [CChar](repeating: 0, count: 256)
    gethostname(&name, name.count - 1)
    let own = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let known = [own, String(own.prefix { $0 != "." }), "localhost", Surroundings().hostIdentifier]
    if !known.contains(host) {
      throw Refusal(
        message: "Preferences of the host \(host) cannot be reached from here",
        detail: "this is \(own); use -currentHost for it, or a path below ByHost for another")
    }
  }
}

/// The words behind the verb.
struct Arguments {
  private(set) var rest: ArraySlice<String>
  var options: Options

  init(_ rest: ArraySlice<String>, _ options: Options) {
    (self.rest, self.options) = (rest, options)
  }

  var isEmpty: Bool { rest.isEmpty }
  var count: Int { rest.count }
  var first: String? { rest.first }

  /// The next word; where there is none, the command line is none.
  mutating func take() throws(Refusal) -> String {
    guard let word = rest.popFirst() else { throw .usage }
    return word
  }

  /// There are no more words.
  func end() throws(Refusal) {
    if !rest.isEmpty { throw .usage }
  }

  /// Takes the verb's own options, which stand right behind it.
  mutating func takeOptions(of verb: Verb) throws(Refusal) {
    while let word = rest.first, verb.options.contains(word) {
      switch word {
      case "--json": options.form = .json
      case "--plist": options.form = .plist
      case "--path": options.isPath = true
      case "--sync": options.isSynchronous = true
      case "--dry-run": options.isDryRun = true
      default: options.isAppleText = true
      }
      rest.removeFirst()
    }
  }
}
