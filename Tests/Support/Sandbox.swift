import Foundation
import Testing

/// A directory of its own for one test: HOME, the XDG directories, the machine's preferences and
/// a mount point. Nothing of the user's is touched; `withSandbox` removes it all.
public final class Sandbox: Sendable {
  /// The sandbox's directory.
  public let root: String

  init() throws {
    var template = Array("/tmp/prefsfs-test-XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else { throw POSIXError(.EIO) }
    root = String(cString: path)
    for directory in ["config/ByHost", "state", "system/managed", "mount", "mount2", "home"] {
      try FileManager.default.createDirectory(
        atPath: "\(root)/\(directory)", withIntermediateDirectories: true)
    }
  }

  /// The user's lists.
  public var config: String { root + "/config" }
  /// The store's journal and metadata.
  public var state: String { root + "/state" }
  /// The machine's lists.
  public var system: String { root + "/system" }
  /// Where tests mount.
  public var mountPoint: String { root + "/mount" }

  /// Where a test's second mount is.
  public var secondMountPoint: String { root + "/mount2" }

  /// The environment of programs in the sandbox.
  public var environment: [String: String] {
    var environment = ProcessInfo.processInfo.environment
    environment["HOME"] = root + "/home"
    environment["XDG_CONFIG_HOME"] = config
    environment["XDG_STATE_HOME"] = state
    environment["XDG_RUNTIME_DIR"] = root + "/run"
    environment["PREFSFS_SYSTEM_DIR"] = system
    environment["LC_ALL"] = "C.UTF-8"
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
    // `defaults` is ours.
    let directory = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
    environment["PATH"] = "\(directory):\(environment["PATH"] ?? "/usr/bin:/bin")"
    return environment
  }

  /// Runs a shell command line in the sandbox: `$M` and `$M2` are the mount points, `$C` the lists'
  /// directory, `$PREFSFS`, `$PREFSD`, `$PROBE` and `$SAMPLE` our programs, and `defaults` is ours.
  @discardableResult
  public func shell(_ command: String) -> Outcome {
    Program.run("/bin/bash", ["-c", command], environment: shellEnvironment)
  }

  /// Starts such a command line; the caller waits for its end, or kills it.
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

  /// Ends a process that was started; SIGTERM may be blocked in what a test starts.
  public func end(_ process: Process) {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// inotifywait(1) on paths of the sandbox, its lines in the file `events`; ready when it returns.
  public func watch(_ paths: [String], in directory: String? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/inotifywait")
    process.currentDirectoryURL = URL(fileURLWithPath: directory ?? root)
    process.arguments =
      ["-m", "--format", "%e %w%f", "-e", "modify,close_write,create,delete"] + paths
    for (name, set) in [("events", true), ("notes", false)] {
      _ = FileManager.default.createFile(atPath: "\(root)/\(name)", contents: nil)
      let file = FileHandle(forWritingAtPath: "\(root)/\(name)")
      if set { process.standardOutput = file } else { process.standardError = file }
    }
    try process.run()
    waitUntil("grep -q established $C/../notes")
    return process
  }

  /// Waits at most 5 s for the command to succeed, and records an issue when it does not.
  public func waitUntil(_ command: String, sourceLocation: SourceLocation = #_sourceLocation) {
    for _ in 0..<100 {
      if shell(command).status == 0 { return }
      usleep(50000)
    }
    Issue.record("never true: \(command)", sourceLocation: sourceLocation)
  }

  /// Writes a list with Python's plistlib; `python` is the dictionary's expression.
  public func makeList(_ file: String, _ python: String, format: String = "BINARY") {
    let program = """
      import plistlib, datetime, sys
      plistlib.dump(\(python), open(sys.argv[1], 'wb'), fmt=plistlib.FMT_\(format))
      """
    let outcome = Program.run("/usr/bin/python3", ["-c", program, file], environment: environment)
    precondition(outcome.status == 0, outcome.errors)
  }

  /// What Python's plistlib reads from a list: an expression over the dictionary `d`.
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
    for point in [mountPoint, secondMountPoint] where MountTable.isMounted(point) {
      Program.run("/bin/sh", ["-c", "fusermount3 -u -z '\(point)'"], environment: environment)
    }
    // An owner that a client started waits for others; nobody comes here any more.
    shell(
      "for p in $(cat \(state)/prefsfs/*/lock); do "
        + "[ $(cat /proc/$p/comm) = prefsd ] && kill $p; done; true")
    try? FileManager.default.removeItem(atPath: root)
  }
}

/// Runs a test in a sandbox that is gone afterwards, however the test ends.
public func withSandbox<Result>(_ body: (Sandbox) throws -> Result) throws -> Result {
  let sandbox = try Sandbox()
  defer { sandbox.remove() }
  return try body(sandbox)
}

/// How a program ended.
public struct Outcome: Sendable {
  /// The exit status; 128 and the signal's number for one that was killed.
  public var status: Int32
  /// Standard output.
  public var output: String
  /// Standard error.
  public var errors: String
}

/// What is mounted on this machine.
public enum MountTable {
  /// Whether there is a mount at the path.
  public static func isMounted(_ path: String) -> Bool {
    let table = (try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)) ?? ""
    return table.contains(" \(path) ")
  }
}

/// Programs of other people, and ours.
public enum Program {
  /// The `prefsfs` that was built with the tests.
  public static let path = beside("prefsfs")

  /// A program that was built with the tests.
  public static func beside(_ name: String) -> String {
    let directory = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let candidate = directory.appendingPathComponent(name).path
    if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
    return package.appendingPathComponent(".build/debug/\(name)").path
  }

  /// A file of Tests/Suites.
  public static func suite(_ name: String) -> String {
    package.appendingPathComponent("Tests/Suites/\(name)").path
  }

  private static var package: URL {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
  }

  /// Runs a program to its end. Output goes through files, so that a child that lives on in the
  /// background cannot keep a pipe open.
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
