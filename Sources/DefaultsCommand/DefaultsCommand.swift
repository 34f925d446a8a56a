import PreferenceModel
import PropertyList
import SystemCalls

/// The `defaults` command: Apple's verbs with Apple's messages and exit statuses, and verbs of our own.
///
/// It is a client of the store, as every program is (law 7): when it returns, every mount and every program
/// of the user reads what it wrote. It reads and writes what the user's own places hold: of a key that the
/// host's list has, that; `-currentHost` and paths name one place outright.
///
/// Half-broken states: without an owner it starts `prefsd`; an owner who is stopped is a failure after 5 s,
/// and nothing was written.
public enum DefaultsCommand {
  /// Runs a command line, without the program's name. Output goes to standard output, messages to standard
  /// error. Blocks.
  /// - Returns: the exit status; 255 for a command line that is none.
  public static func run(_ words: [String]) -> Int32 {
    do throws(Refusal) {
      // What is no UTF-8 was replaced.
      if words.contains(where: { $0.unicodeScalars.contains("\u{FFFD}") }) {
        throw Refusal("An argument is not UTF-8; nothing was done")
      }
      let (options, rest) = try Options.parse(words)
      guard let name = rest.first, let verb = Verb(name) else { throw .usage }
      var arguments = Arguments(rest.dropFirst(), options)
      try arguments.takeOptions(of: verb)
      let status = try verb.run(&arguments)
      if let errno = Output.failure.withLock({ $0 }) {
        throw Refusal("Could not write to standard output: \(errno)")
      }
      return status
    } catch {
      return error.report()
    }
  }
}

/// Why a command ends without having done what was asked for.
struct Refusal: Error {
  /// Apple's words; empty: the usage is shown.
  var message: String
  /// What was in the way, in ours.
  var detail: String?
  var status: Int32 = 1

  /// The command line is none.
  static let usage = Refusal(message: "", status: 255)

  init(message: String, detail: String? = nil, status: Int32 = 1) {
    (self.message, self.detail, self.status) = (message, detail, status)
  }

  /// A message of one sentence.
  init(_ message: String, _ error: EngineError? = nil) {
    self.init(message: message, detail: error.map { "\($0)" })
  }

  /// Says it: usage on standard output, everything else on standard error.
  func report() -> Int32 {
    if message.isEmpty {
      Output.write(Manual.page.help)
    } else {
      Output.log(message)
      if let detail { Output.write("defaults: \(detail)\n", to: .errors) }
    }
    return status
  }
}
