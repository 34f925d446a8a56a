import Glibc
import PropertyList
import SystemCalls

/// The `plutil` command, which checks, prints, converts and edits property lists. Its options,
/// messages and exit statuses are those of the command of macOS.
///
/// It reads and writes files and knows nothing of preferences, so `defaults` is the better way to
/// change the lists of a store. If a value cannot be written in the requested format, the file
/// stays as it is.
///
/// Source: plutil(1), and Apple's plutil in swift-corelibs-foundation. Differences: `--` ends the
/// options, as the usage of Apple's command says; the result for standard input goes to standard
/// output if there is no `-o`; a file is replaced in one step; messages about damaged lists are
/// those of this project's parsers; null in JSON is refused.
public enum PlutilCommand {
  /// Runs a command line, whose first word is the program's name. Blocks until it is done.
  /// - Returns: the exit status: 0, or 1 if the command line is wrong or one of the files failed.
  public static func run(_ words: [String]) -> Int32 {
    Inheritance.occupyStandardStreams()
    do throws(Refusal) {
      guard CommandLine.isUTF8 else { throw Refusal("An argument is not UTF-8; nothing was done") }
      if let word = words.dropFirst().first, ["-help", "-man"].contains(word) {
        try Output.write(word == "-man" ? Manual.page.troff : Manual.page.help)
        return 0
      }
      let invocation = try Invocation(words.dropFirst())
      if case .print = invocation.command, invocation.isSilent {
        Output.complain("-s doesn't make a lot of sense with -p.")
      }
      let failures = invocation.files.filter { !carryOut(invocation, $0) }
      return failures.isEmpty ? 0 : 1
    } catch {
      Output.complain(error.text)
      return 1
    }
  }

  /// Carries out the command for a file, and prints the message if that fails.
  /// - Returns: whether it succeeded.
  private static func carryOut(_ invocation: Invocation, _ file: String) -> Bool {
    do throws(Refusal) {
      try Job(invocation, file).run()
      return true
    } catch {
      let name = file == "-" ? "<stdin>" : file
      Output.complain("\(name): \(error.text)")
      return false
    }
  }
}
