import Glibc
import SystemCalls

/// The reason why a command failed, as a message of the command.
struct Refusal: Error {
  let text: String

  init(_ text: String) { self.text = text }
}

/// Writes to standard output and standard error.
enum Output {
  /// Writes all of the text to standard output. Throws if that fails, except with EPIPE: it is not
  /// an error that the reader of a pipe has ended. The rest of the text is then lost.
  static func write(_ text: String) throws(Refusal) { try write(Array(text.utf8)) }

  static func write(_ bytes: [UInt8]) throws(Refusal) {
    do throws(SystemError) {
      try Descriptor(owning: dup(STDOUT_FILENO)).write(bytes)
    } catch {
      if error.errno.rawValue == EPIPE { return }
      throw Refusal("Could not write to standard output: \(error.errno)")
    }
  }

  /// Writes the line to standard error. If that fails, the line is lost.
  static func complain(_ line: String) {
    do { try Descriptor(owning: dup(STDERR_FILENO)).write(Array("\(line)\n".utf8)) } catch {}
  }
}
