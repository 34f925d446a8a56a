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
    for directory in ["config/ByHost", "state", "system/managed", "mount", "home"] {
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

  /// Runs a shell command line in the sandbox, the mount point being `$M`, the lists' directory `$C`.
  @discardableResult
  public func shell(_ command: String) -> Outcome {
    var environment = environment
    environment["M"] = mountPoint
    environment["C"] = config
    environment["PREFSFS"] = Program.path
    return Program.run("/bin/bash", ["-c", command], environment: environment)
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
    if MountTable.isMounted(mountPoint) {
      Program.run("/bin/sh", ["-c", "fusermount3 -u -z '\(mountPoint)'"], environment: environment)
    }
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
  public static let path: String = {
    let beside = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    let candidate = beside.appendingPathComponent("prefsfs").path
    if FileManager.default.isExecutableFile(atPath: candidate) { return candidate }
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    return package.appendingPathComponent(".build/debug/prefsfs").path
  }()

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
