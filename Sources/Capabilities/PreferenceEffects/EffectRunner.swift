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

  /// Runs a command. What processes that it has left write later is read by a thread of its own, or
  /// they would end at it.
  public static func run(
    _ command: EffectRule.Command, input: [UInt8], variables: [String], timeout: Double
  ) throws(SystemError) -> Outcome {
    let began = Instant.now
    let ends = try Descriptor.pipe()
    let reading = Descriptor(owning: ends.reading)
    let process = try start(command, input, Descriptor(owning: ends.writing), variables)
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
    while isOpen, hasMore(reading.number) { isOpen = read(reading.number, &outcome.output) }
    note(wait(process), isLate: isLate, process, in: &outcome)
    outcome.milliseconds = Instant.now.nanoseconds(after: began) / 1_000_000
    if isOpen { drain(reading) }
    return outcome
  }

  private static func start(
    _ command: EffectRule.Command, _ input: [UInt8], _ writing: consuming Descriptor,
    _ variables: [String]
  ) throws(SystemError) -> pid_t {
    let words =
      switch command {
      case .shell(let line): ["/bin/sh", "-c", line]
      case .words(let words): words
      }
    let file = try Descriptor.inMemory("prefs-effect")
    try file.write(input)
    lseek(file.number, 0, SEEK_SET)
    return try Child.startApart(
      words[0], Array(words.dropFirst()), streams: [file.number, writing.number, writing.number],
      variables: variables)
  }

  private static func hasMore(_ number: CInt) -> Bool {
    var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
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

  private static func wait(_ process: pid_t) -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    return status
  }

  private static func note(
    _ status: Int32, isLate: Bool, _ process: pid_t, in outcome: inout Outcome
  ) {
    // What is left of a command that came too late goes with it.
    if isLate { kill(-process, SIGKILL) }
    let signal = status & 0x7F
    if signal == 0, !isLate { outcome.status = status >> 8 & 0xFF }
    let end = signal == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(signal)"
    outcome.end = isLate ? "timeout, \(end)" : end
  }

  /// The threads that read what processes write that commands have left behind.
  private static let drains = BlockingThreads(name: "prefs-drain", most: 16, mostWaiting: 0)

  private static func drain(_ reading: consuming Descriptor) {
    let shared = SharedDescriptor(reading)
    // Where there are too many, the pipe is closed.
    _ = drains.run {
      var rest = [UInt8](repeating: 0, count: mostOutput)
      var isOpen = true
      while isOpen {
        var entry = pollfd(fd: shared.value.number, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, -1)
        isOpen = read(shared.value.number, &rest)
      }
    }
  }
}
