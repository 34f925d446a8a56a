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
    do throws(Refusal) {
      let invocation = try Invocation(words.dropFirst())
      if case .help(let isManual) = invocation.command {
        Output.write(isManual ? Manual.page.troff : Manual.page.help)
        return 0
      }
      if case .print = invocation.command, invocation.isSilent {
        Output.write("-s doesn't make a lot of sense with -p.\n", to: STDERR_FILENO)
      }
      let failures = invocation.files.filter { !carryOut(invocation, $0) }
      return failures.isEmpty ? 0 : 1
    } catch {
      Output.write(error.text + "\n", to: STDERR_FILENO)
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
      Output.write("\(name): \(error.text)\n", to: STDERR_FILENO)
      return false
    }
  }
}

/// The reason why a command failed, as a message of the command.
struct Refusal: Error {
  let text: String

  init(_ text: String) { self.text = text }
}

/// Writes to standard output and standard error.
enum Output {
  /// Writes all of the text. If the descriptor fails, the rest is lost without a message.
  static func write(_ text: String, to descriptor: CInt = STDOUT_FILENO) {
    write(Array(text.utf8), to: descriptor)
  }

  static func write(_ bytes: [UInt8], to descriptor: CInt = STDOUT_FILENO) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 || errno == EINTR else { return }
      rest = rest.dropFirst(max(count, 0))
    }
  }
}
