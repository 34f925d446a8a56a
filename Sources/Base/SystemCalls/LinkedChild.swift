import Glibc

/// A child process that ends with this one: its standard input is a pipe, which ends when this
/// process does, however that happens. Its other standard streams are /dev/null, and it has no
/// other descriptor of this process.
public struct LinkedChild: ~Copyable {
  /// The number of the process.
  public let process: pid_t
  private var pipe: Descriptor?
  private let handle: Descriptor

  private init(_ process: pid_t, _ pipe: consuming Descriptor, _ handle: consuming Descriptor) {
    self.process = process
    self.pipe = consume pipe
    self.handle = handle
  }

  /// Starts a program, given by its path or by a name in PATH.
  public static func start(
    _ program: String, _ arguments: [String]
  ) throws(SystemError) -> LinkedChild {
    let ends = try Descriptor.pipe()
    let reading = Descriptor(owning: ends.reading)
    let writing = Descriptor(owning: ends.writing)
    let process = try Child.startApart(
      program, arguments, streams: [reading.number, nil, nil])
    return try LinkedChild(process, writing, Child.endDescriptor(of: process))
  }

  /// A descriptor that can be read when the child has ended.
  public var endDescriptor: CInt { handle.number }

  /// The exit status of a child that has ended, 127 where a signal ended it; nil if it runs.
  public borrowing func status() -> Int32? {
    var entry = pollfd(fd: handle.number, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, 0) > 0 else { return nil }
    return Child.wait(process)
  }

  /// Ends the standard input of the child, which may end then.
  public mutating func endInput() { pipe = nil }

  /// Ends the child with SIGKILL, also one that is stopped, and waits for its end.
  public borrowing func end() {
    kill(process, SIGKILL)
    _ = Child.wait(process)
  }
}

extension LinkedChild {
  /// Calls the body, on a thread of its own, when the standard input of this process ends: its parent
  /// has ended, or wants it to.
  public static func whenInputEnds(_ body: @escaping @Sendable () -> Void) throws(SystemError) {
    try WorkerThread(name: "prefs-stdin") {
      var byte: UInt8 = 0
      while read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR {}
      body()
    }.detach()
  }
}

/// Programs that are installed beside this one.
public enum SiblingProgram {
  /// The path of a program: the one that the environment variable names, else the one in the
  /// directory of the running program, else its name, for PATH. A set-uid program obeys neither
  /// variable, because the user who starts it may set them.
  public static func path(_ name: String, variable: String) -> String {
    if let given = Environment.variable(variable) { return given }
    if let program = Files.realPath("/proc/self/exe") {
      let beside = "\(Files.parent(of: program))/\(name)"
      if access(beside, X_OK) == 0 { return beside }
    }
    return Environment.variable("PATH") == nil ? "/usr/bin/\(name)" : name
  }
}
