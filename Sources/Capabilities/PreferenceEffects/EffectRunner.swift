import Glibc
import SystemCalls

/// Runs the command of a rule to its end.
///
/// The command has a session of its own, no descriptor but the standard streams, default signals,
/// and umask and directory of this process. Standard input is a file in memory, so nobody waits for
/// a command that does not read it. Its output and errors are read while it runs; what is beyond 64
/// KiB is thrown away.
///
/// Threads: any. `run` waits for the command, its timeout and 5 s at most.
public enum EffectRunner {
  /// How a command has ended.
  public struct Outcome: Sendable {
    /// Its exit status; nil means a signal ended it.
    public var status: Int32?
    /// How it has ended, in words.
    public var end: String
    /// The beginning of what it wrote.
    public var output: [UInt8] = []
    /// How long it took.
    public var milliseconds: Int64 = 0
  }

  /// The most bytes of output that are kept.
  static let mostOutput = 1 << 16
  /// Milliseconds between SIGTERM and SIGKILL.
  private static let grace: Int64 = 5000

  /// Runs a program with its arguments. Processes that it leaves behind may write later: a thread
  /// reads that, as they would get SIGPIPE otherwise.
  public static func run(
    _ words: [String], input: [UInt8], variables: [String], timeout: Double
  ) throws(SystemError) -> Outcome {
    let began = Instant.now
    let ends = try Descriptor.pipe()
    let reading = Descriptor(owning: ends.reading)
    let process = try start(words, input, Descriptor(owning: ends.writing), variables)
    let ending = try Child.endDescriptor(of: process)
    _ = fcntl(reading.number, F_SETFL, O_NONBLOCK)
    var outcome = Outcome(status: nil, end: "")
    var (isOpen, isLate) = (true, false)
    var deadline = began.advanced(seconds: timeout)
    while true {
      var entries = [ending.number, isOpen ? reading.number : -1].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      _ = poll(&entries, 2, CInt(clamping: deadline.milliseconds(after: .now)))
      if entries[1].revents != 0 { isOpen = read(reading.number, &outcome.output) }
      if entries[0].revents != 0 { break }
      guard deadline <= .now else { continue }
      kill(-process, isLate ? SIGKILL : SIGTERM)
      (isLate, deadline) = (true, Instant.now.advanced(milliseconds: grace))
    }
    // A pipe holds 64 KiB: one more time has all that the command itself has written.
    if isOpen { isOpen = read(reading.number, &outcome.output) }
    // A command that took too long is killed with the processes that it has started.
    if isLate { kill(-process, SIGKILL) }
    let (status, signal) = Child.waitForEnd(of: process)
    let end = status.map { "status \($0)" } ?? "signal \(signal)"
    (outcome.status, outcome.end) = isLate ? (nil, "timeout, \(end)") : (status, end)
    outcome.milliseconds = Instant.now.nanoseconds(after: began) / 1_000_000
    if isOpen { drain(reading) }
    return outcome
  }

  private static func start(
    _ words: [String], _ input: [UInt8], _ writing: consuming Descriptor, _ variables: [String]
  ) throws(SystemError) -> pid_t {
    let file = try Descriptor.inMemory("prefs-effect")
    try file.write(input)
    lseek(file.number, 0, SEEK_SET)
    return try Child.startApart(
      words[0], Array(words.dropFirst()), streams: [file.number, writing.number, writing.number],
      variables: variables)
  }

  /// Reads once.
  /// - Returns: false at the end, when nobody has the other end any more.
  private static func read(_ number: CInt, _ output: inout [UInt8]) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    let count = Glibc.read(number, &buffer, buffer.count)
    if count < 0 { return errno == EAGAIN || errno == EINTR }
    output += buffer.prefix(min(count, mostOutput - output.count))
    return count > 0
  }

  /// The threads that read what processes write that commands have left behind.
  private static let drains = BlockingThreads(name: "prefs-drain", most: 16, mostWaiting: 0)

  private static func drain(_ reading: consuming Descriptor) {
    let shared = SharedDescriptor(reading)
    // Where there are too many, the pipe is closed.
    _ = drains.run {
      _ = fcntl(shared.value.number, F_SETFL, 0)
      var rest = [UInt8](repeating: 0, count: mostOutput)
      while read(shared.value.number, &rest) {}
    }
  }
}
