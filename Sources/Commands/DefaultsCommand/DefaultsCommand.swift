import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// The `defaults` command: the verbs of the command of macOS, with its messages and exit statuses,
/// and further verbs of this project. Started as `prefs` it is the same with another help.
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
      Output.note(sentence)
      _exit(1)
    }
    var verb: Verb?
    do throws(Refusal) {
      guard CommandLine.isUTF8 else {
        throw Refusal("An argument is not UTF-8; nothing was done")
      }
      let status = try carryOut(words, &verb)
      if let errno = Output.failure.withLock({ $0 }), errno.rawValue != EPIPE {
        throw Refusal("Could not write to standard output: \(errno)")
      }
      return status
    } catch {
      return error.report(verb)
    }
  }

  /// Carries out the verb of a command line.
  /// - Parameter verb: becomes the verb, as soon as it is known.
  private static func carryOut(_ words: [String], _ verb: inout Verb?) throws(Refusal) -> Int32 {
    let words = Browse.isMeant(words) ? [Verb.browse.rawValue] + words : words
    if words.isEmpty { throw .usage }
    let (options, rest) = try Options.parse(words)
    guard let name = rest.first else { throw .mistake("a verb is missing") }
    guard let found = Verb(name) else { throw .mistake(Verb.absence(of: name)) }
    verb = found
    var arguments = Arguments(rest.dropFirst(), options)
    if arguments.first == "--help" { return HelpVerb.show(found) }
    try arguments.parseOptions(of: found)
    return try found.command.run(&arguments)
  }
}

extension Refusal {
  /// Prints the message and the explanation to standard error. If the command line is wrong, prints
  /// the mistake there, and a line of usage to standard output, where that of Apple's command goes.
  /// - Parameter verb: the verb of the command line, if it has one.
  /// - Returns: the exit status.
  func report(_ verb: Verb? = nil) -> Int32 {
    if !message.isEmpty { Output.log(message) }
    if let detail { Output.note(detail) }
    if message.isEmpty { Output.write(detail == nil ? Manual.page.help : Manual.usage(of: verb)) }
    return status
  }
}
