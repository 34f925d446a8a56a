import Foundation
import Synchronization
import Testing

/// A directory below /tmp for one test, with all that programs use: HOME, the XDG directories, the
/// machine's preferences and two mount points. The preferences of the user who runs the tests are
/// not touched. `withSandbox` removes the directory. Its name has the number of the process, by
/// which `scripts/test` finds what a run has left that a signal has ended.
public final class Sandbox: Sendable {
  /// The sandbox's directory.
  public let root: String

  init() throws {
    var template = Array("/tmp/prefsfs-test-\(getpid())-XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else { throw POSIXError(.EIO) }
    root = String(cString: path)
    for directory in [
      "config/ByHost", "state", "system/managed", "mount", "mount2", "home", "programs",
    ] {
      try FileManager.default.createDirectory(
        atPath: "\(root)/\(directory)", withIntermediateDirectories: true)
    }
    try FileManager.default.createSymbolicLink(
      atPath: "\(programs)/prefs", withDestinationPath: Program.beside("defaults"))
  }

  /// The directory of the user's lists (XDG_CONFIG_HOME).
  public var config: String { root + "/config" }
  /// The directory that holds journals and metadata of stores (XDG_STATE_HOME).
  public var state: String { root + "/state" }
  /// The directory of the machine's lists, in the place of /etc/preferences.
  public var system: String { root + "/system" }
  /// The mount point of most tests.
  public var mountPoint: String { root + "/mount" }

  /// The mount point of a test's second mount.
  public var secondMountPoint: String { root + "/mount2" }

  /// The directory of `prefs`, which is a link to the `defaults` that was built with the tests.
  public var programs: String { root + "/programs" }

  /// The environment of programs that run in the sandbox.
  public var environment: [String: String] {
    var environment = ProcessInfo.processInfo.environment
    environment["HOME"] = root + "/home"
    environment["XDG_CONFIG_HOME"] = config
    environment["XDG_STATE_HOME"] = state
    environment["XDG_RUNTIME_DIR"] = root + "/run"
    environment["PREFSFS_SYSTEM_DIR"] = system
    environment["XDG_DATA_DIRS"] = "\(root)/local:\(root)/share"
    environment["LC_ALL"] = "C.UTF-8"
    environment["PREFSFS_LOG"] = backgroundLogFile
    return environment
  }

  private var shellEnvironment: [String: String] {
    var environment = environment
    environment["M"] = mountPoint
    environment["M2"] = secondMountPoint
    environment["C"] = config
    environment["PREFSFS"] = Program.path
    environment["PREFSD"] = Program.beside("prefsd")
    environment["PROBE"] = Program.beside("prefs-probe")
    environment["SAMPLE"] = Program.beside("prefs-sample")
    // `defaults` is the one that was built with the tests, and `prefs` the same.
    let directory = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
    environment["PATH"] = "\(programs):\(directory):\(environment["PATH"] ?? "/usr/bin:/bin")"
    return environment
  }

  /// Runs a shell command line in the sandbox, with bash, to its end. `$M` and `$M2` are the mount
  /// points, and `$C` is the directory of the user's lists. `$PREFSFS`, `$PREFSD`, `$PROBE` and
  /// `$SAMPLE` are programs that were built with the tests, and so are `defaults` and `prefs`.
  /// After five minutes it is killed, and the status is 137: a command that hangs fails its test.
  @discardableResult
  public func shell(_ command: String) -> Outcome {
    Program.run(
      "/usr/bin/timeout", ["--signal=KILL", "300", "/bin/bash", "-c", command],
      environment: shellEnvironment)
  }

  /// Starts a command line as `shell` does, and returns while it runs. The caller waits for its
  /// end, or kills it.
  public func start(_ command: String) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = ["-c", command]
    process.environment = shellEnvironment
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  /// Kills a process that was started and waits for its end. The signal is SIGKILL, because what a
  /// test starts may block SIGTERM.
  public func end(_ process: Process) {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Starts inotifywait(1) on paths below `directory`, or below the sandbox's root where that is
  /// nil, and returns when the watches are there. The file `events` in the root gets a line for
  /// each event.
  public func watch(_ paths: [String], in directory: String? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/inotifywait")
    process.currentDirectoryURL = URL(fileURLWithPath: directory ?? root)
    process.arguments =
      ["-m", "--format", "%e %w%f", "-e", "modify,close_write,create,delete,delete_self"] + paths
    for (name, set) in [("events", true), ("notes", false)] {
      _ = FileManager.default.createFile(atPath: "\(root)/\(name)", contents: nil)
      let file = FileHandle(forWritingAtPath: "\(root)/\(name)")
      if set { process.standardOutput = file } else { process.standardError = file }
    }
    try process.run()
    waitUntil("grep -q established $C/../notes")
    return process
  }

  /// Runs the command until it succeeds, at most 100 times with 50 ms in between; then the test
  /// fails.
  public func waitUntil(_ command: String, sourceLocation: SourceLocation = #_sourceLocation) {
    for _ in 0..<100 {
      if shell(command).status == 0 { return }
      usleep(50000)
    }
    Issue.record("never succeeded: \(command)", sourceLocation: sourceLocation)
  }

  /// Writes a list with Python's plistlib; `python` is a Python expression for the dictionary, the
  /// same whenever it is evaluated. Python runs once for each list: many tests begin with the same.
  public func makeList(_ file: String, _ python: String, format: String = "BINARY") {
    let program = """
      import plistlib, datetime, sys
      plistlib.dump(\(python), open(sys.argv[1], 'wb'), fmt=plistlib.FMT_\(format))
      """
    if let known = Self.lists.withLock({ $0[program] }) {
      return write(known, to: file)
    }
    let outcome = Program.run("/usr/bin/python3", ["-c", program, file], environment: environment)
    precondition(outcome.status == 0, outcome.errors)
    Self.lists.withLock { $0[program] = FileManager.default.contents(atPath: file) }
  }

  /// Writes a file in place, as Python does.
  private func write(_ contents: Data, to path: String) {
    let file = fopen(path, "w")
    defer { if let file { fclose(file) } }
    let count = contents.withUnsafeBytes { bytes in
      file.map { fwrite(bytes.baseAddress, 1, bytes.count, $0) }
    }
    precondition(count == contents.count, "\(path) cannot be written")
  }

  /// The lists that Python has written, by the program that wrote them.
  private static let lists = Mutex<[String: Data]>([:])

  /// Reads a list with Python's plistlib and returns what Python prints of an expression, in which
  /// `d` is the dictionary; if Python fails, what it wrote to standard error.
  public func evaluate(_ file: String, _ python: String) -> String {
    let program = """
      import plistlib, sys
      d = plistlib.load(open(sys.argv[1], 'rb'))
      print(\(python))
      """
    let outcome = Program.run("/usr/bin/python3", ["-c", program, file], environment: environment)
    return outcome.status == 0 ? String(outcome.output.dropLast()) : outcome.errors
  }

  func remove() {
    for point in MountTable.points(below: root).reversed() {
      Program.run("/bin/sh", ["-c", "fusermount3 -u -z '\(point)'"], environment: environment)
    }
    endProcesses()
    do {
      try FileManager.default.removeItem(atPath: root)
    } catch {
      Issue.record("the sandbox is not removed: \(error)")
    }
  }

  /// Waits for the programs of the sandbox to end: they write their files until then. What is left
  /// after five seconds is killed, and the test fails.
  private func endProcesses() {
    for _ in 0..<500 {
      let left = processes
      if left.isEmpty { return }
      // A prefsd that a client started would wait 30 s for another client. A mount that ends needs
      // one until then.
      let names = left.map { ($0, Self.text("/proc/\($0)/comm")) }
      if !names.contains(where: { ["prefsfs\n", "prefs-guard\n"].contains($0.1) }) {
        for (process, name) in names where name == "prefsd\n" { kill(process, SIGTERM) }
      }
      usleep(10000)
    }
    for process in processes {
      Issue.record("still running: \(Self.text("/proc/\(process)/cmdline"))")
      kill(process, SIGKILL)
    }
  }

  /// The process that owns the sandbox's store (`prefsd`); nil if there is none.
  public var owner: pid_t? {
    processes.first { Self.text("/proc/\($0)/comm") == "prefsd\n" }
  }

  /// Kills the owner of the sandbox's store with SIGKILL, or ends it with another signal, and returns
  /// when it is gone.
  public func killOwner(with signal: Int32 = SIGKILL) {
    guard let owner else { return }
    kill(owner, signal)
    waitUntil("! kill -0 \(owner) 2> /dev/null")
  }

  private var backgroundLogFile: String { root + "/background-log" }

  /// What the programs of the sandbox that run in the background have logged: `prefsd`, and mounts
  /// without `-f`.
  public var backgroundLog: String {
    (try? String(contentsOfFile: backgroundLogFile, encoding: .utf8)) ?? ""
  }

  /// The processes that run in the sandbox's environment.
  private var processes: [pid_t] {
    let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc")
    return (names ?? []).compactMap { pid_t($0) }.filter {
      Self.text("/proc/\($0)/environ").contains("\(root)/")
    }
  }

  /// The text of a file of /proc. `String(contentsOfFile:)` reads such a file only once, and may
  /// get the first 4 KiB.
  fileprivate static func text(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var (text, part): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 1 << 16))
    while case let count = read(file, &part, part.count), count > 0 { text += part[..<count] }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Runs a test in a sandbox of its own, which is removed afterwards, however the test ends.
public func withSandbox<Result>(_ body: (Sandbox) throws -> Result) throws -> Result {
  let sandbox = try Sandbox()
  defer { sandbox.remove() }
  return try body(sandbox)
}

/// The exit status and the output of a program that has ended.
public struct Outcome: Sendable {
  /// The exit status; 128 plus the signal's number for a program that a signal ended.
  public var status: Int32
  /// Standard output.
  public var output: String
  /// Standard error.
  public var errors: String
}

/// The mounts of this machine.
public enum MountTable {
  /// Whether there is a mount at the path.
  public static func isMounted(_ path: String) -> Bool {
    Sandbox.text("/proc/self/mountinfo").contains(" \(path) ")
  }

  /// The paths of the mounts of libfuse below a directory, in the order in which they were mounted;
  /// a path that has several is there as often.
  static func points(below directory: String) -> [String] {
    Sandbox.text("/proc/self/mountinfo").split(separator: "\n")
      .filter { $0.contains(" - fuse") }
      .compactMap { line in
        let fields = line.split(separator: " ", maxSplits: 5)
        return fields.count > 4 ? String(fields[4]) : nil
      }
      .filter { $0.hasPrefix(directory + "/") }
  }
}

/// Finds the programs that were built with the tests, and runs any program.
public enum Program {
  /// The path of the `prefsfs` that was built with the tests.
  public static let path = beside("prefsfs")

  /// Returns the path of a program that was built with the tests.
  public static func beside(_ name: String) -> String {
    let directory = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let candidate = directory.appendingPathComponent(name).path
    if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
    return package.appendingPathComponent(".build/debug/\(name)").path
  }

  /// Returns the path of a file of `scripts`.
  public static func script(_ name: String) -> String {
    package.appendingPathComponent("scripts/\(name)").path
  }

  /// Returns the path of a file of Tests/Suites.
  public static func suite(_ name: String) -> String {
    package.appendingPathComponent("Tests/Suites/\(name)").path
  }

  /// The directory of the repository.
  public static var package: URL {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
  }

  /// Runs a program to its end; the status is 127 where it cannot be started. The output goes
  /// through files, because a child that lives on in the background would keep a pipe open.
  @discardableResult
  public static func run(
    _ program: String, _ arguments: [String], environment: [String: String]
  ) -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.environment = environment
    let files = ["out", "err"].map { "/tmp/prefsfs-run-\(UUID().uuidString).\($0)" }
    defer { for file in files { unlink(file) } }
    for file in files { _ = FileManager.default.createFile(atPath: file, contents: nil) }
    process.standardOutput = FileHandle(forWritingAtPath: files[0])
    process.standardError = FileHandle(forWritingAtPath: files[1])
    process.standardInput = FileHandle.nullDevice
    do { try process.run() } catch { return Outcome(status: 127, output: "", errors: "\(error)") }
    process.waitUntilExit()
    let signal: Int32 = process.terminationReason == .uncaughtSignal ? 128 : 0
    let texts = files.map { FileManager.default.contents(atPath: $0) ?? Data() }
    return Outcome(
      status: signal + process.terminationStatus,
      output: String(decoding: texts[0], as: UTF8.self),
      errors: String(decoding: texts[1], as: UTF8.self))
  }
}
