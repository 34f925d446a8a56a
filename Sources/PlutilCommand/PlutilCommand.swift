import Glibc
import PropertyList
import SystemCalls

/// The `plutil` command: property lists looked at, converted and edited, with the words, messages and exit
/// statuses of macOS's.
///
/// It reads and writes files, not preferences: a list of a mounted store is better changed with `defaults`.
/// A file whose value cannot be written in the format that was asked for is left as it is.
///
/// Source: plutil(1), and Apple's plutil in swift-corelibs-foundation. Different: `--` ends the options, as
/// the usage says; standard input without `-o` goes to standard output; a file is replaced in one step; what is
/// wrong with a list is said in our readers' words; JSON's null is refused.
public enum PlutilCommand {
  /// Runs a command line, the program's name first. Blocks.
  /// - Returns: the exit status: 0, or 1 where the command line is wrong or one of the files failed.
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

  /// - Returns: whether it was done.
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

/// What was refused, in the words of the command.
struct Refusal: Error {
  let text: String

  init(_ text: String) { self.text = text }
}

/// Where text goes.
enum Output {
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
