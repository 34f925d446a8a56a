import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// The `defaults` command: the verbs of the command of macOS, with its messages and exit statuses,
/// and further verbs of this project.
///
/// It is a client of the store. When it returns, every mount and every program of the user reads
/// what it wrote. It reads the first of the user's own places that has the key: the cloud, the list
/// of this host, the list for all hosts. It writes a key of the cloud there, and any other key to
/// the list for all hosts, and to that of this host too if that has the key. `-currentHost` and
/// paths select a single place.
///
/// Half-broken states: if there is no owner, it starts `prefsd`. If the owner is stopped (SIGSTOP,
/// a debugger), the command fails after 5 s and nothing is written. If the owner works on something
/// long, such as this change, the command waits for it, a minute at most after these 5 s. If a
/// single call to a file system does not return within 5 s, such as that of the home, the command
/// ends with status 1 and names the path (`CallWatch`); what the owner was asked for before that is
/// made.
public enum DefaultsCommand {
  /// Runs a command line, without the program's name. Output goes to standard output, and messages
  /// go to standard error. Blocks until the command is done.
  /// - Returns: the exit status, which the manual page lists; 255 if the command line is wrong.
  public static func run(_ words: [String]) -> Int32 {
    Inheritance.occupyStandardStreams()
    CallWatch.begin { sentence in
      Output.write(line: "defaults: \(sentence)", to: .errors)
      _exit(1)
    }
    var verb: Verb?
    do throws(Refusal) {
      guard CommandLine.isUTF8 else {
        throw Refusal("An argument is not UTF-8; nothing was done")
      }
      let (options, rest) = try Options.parse(words)
      guard let name = rest.first else { throw .mistake("a verb is missing") }
      guard let found = Verb(name) else { throw .mistake(Verb.absence(of: name)) }
      verb = found
      var arguments = Arguments(rest.dropFirst(), options)
      try arguments.parseOptions(of: found)
      let status = try found.run(&arguments)
      if let errno = Output.failure.withLock({ $0 }), errno.rawValue != EPIPE {
        throw Refusal("Could not write to standard output: \(errno)")
      }
      return status
    } catch {
      return error.report(verb)
    }
  }
}

/// The reason why a command fails.
struct Refusal: Error {
  /// The message of Apple's command; if it is empty, the command line is wrong, and the usage is
  /// shown instead.
  var message: String
  /// This project's explanation, which is shown after the message.
  var detail: String?
  /// The exit status.
  var status: Int32 = 1

  /// There is no command line: the whole help is shown.
  static let usage = Refusal(message: "", status: 255)

  /// The command line is wrong.
  /// - Parameter sentence: what is wrong with it.
  static func mistake(_ sentence: String) -> Refusal {
    Refusal(message: "", detail: sentence, status: 255)
  }
}

extension Refusal {
  /// Creates a refusal with Apple's message and, if there is an error, its text as the explanation.
  init(_ message: String, _ error: EngineError? = nil) {
    let hint = error?.reason == .unfit ? " (--force sets it)" : ""
    self.init(message: message, detail: error.map { "\($0)\(hint)" })
  }

  /// Runs the body, and turns an error that it throws into a refusal with this message.
  static func wrapping<Result>(
    _ message: String, _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) {
      return try body()
    } catch {
      throw Refusal(message, error)
    }
  }

  /// Prints the message and the explanation to standard error. If the command line is wrong, prints
  /// the mistake there, and a line of usage to standard output, where that of Apple's command goes.
  /// - Parameter verb: the verb of the command line, if it has one.
  /// - Returns: the exit status.
  func report(_ verb: Verb? = nil) -> Int32 {
    if !message.isEmpty { Output.log(message) }
    if let detail { Output.write(line: "defaults: \(detail)", to: .errors) }
    if message.isEmpty { Output.write(detail == nil ? Manual.page.help : Manual.usage(of: verb)) }
    return status
  }
}
