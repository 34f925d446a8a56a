import Foundation
import Testing

/// A mount of the sandbox's store by the real `prefsfs`, which runs in the foreground as a child
/// process.
public final class Mount: @unchecked Sendable {
  // Process is not Sendable; only the test's thread uses it.
  private let process: Process
  private let sandbox: Sandbox
  private let logFile: String
  private let point: String

  /// Mounts at `point`, or at `$M` where that is nil, and returns when the mount answers. Throws a
  /// `Failure` if the program ends before that, or after 10 s.
  public init(_ sandbox: Sandbox, _ arguments: [String] = [], at point: String? = nil) throws {
    self.sandbox = sandbox
    self.point = point ?? sandbox.mountPoint
    logFile = "\(sandbox.root)/log-\(UUID().uuidString)"
    _ = FileManager.default.createFile(atPath: logFile, contents: nil)
    process = Process()
    process.executableURL = URL(fileURLWithPath: Program.path)
    process.arguments = [self.point, "-f"] + arguments
    process.environment = sandbox.environment
    process.standardError = FileHandle(forWritingAtPath: logFile)
    process.standardOutput = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let end = Date().addingTimeInterval(10)
    while !isAnswering {
      guard process.isRunning, Date() < end else {
        process.terminate()
        throw Failure(description: "not mounted: \(log)")
      }
      usleep(2000)
    }
  }

  /// The error of a mount that did not come up.
  public struct Failure: Error, CustomStringConvertible {
    /// A sentence with what the program wrote to standard error.
    public let description: String
  }

  private var isAnswering: Bool {
    var status = stat()
    return MountTable.isMounted(point) && stat(point, &status) == 0
  }

  /// What the program has written to standard error.
  public var log: String { (try? String(contentsOfFile: logFile, encoding: .utf8)) ?? "" }

  /// What the mount has logged, and the owner of its store.
  public var allLogs: String { log + sandbox.backgroundLog }

  /// The process that was started: the guard.
  public var guardian: pid_t { process.processIdentifier }

  /// The driver's process: the guard's child. A successor of the driver has a different one.
  public var pid: pid_t {
    let path = "/proc/\(guardian)/task/\(guardian)/children"
    let children = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return children.split(separator: " ").last.flatMap { pid_t($0) } ?? 0
  }

  /// The path of a file in the mount.
  public func path(_ name: String) -> String { "\(point)/\(name)" }

  /// The names of the requests that the driver has received, oldest first. It takes a mount with
  /// `-d`: libfuse then prints a line for each request.
  public var requests: [String] {
    log.split(separator: "\n").compactMap { line in
      guard let start = line.range(of: "opcode: ") else { return nil }
      return String(line[start.upperBound...].prefix { $0 != " " })
    }
  }

  /// Unmounts as a user does, and waits until the program has ended. After a minute the test fails,
  /// and the program is killed: a file of the mount is in use by a process that hangs.
  public func unmount() {
    if MountTable.isMounted(point) {
      sandbox.shell("fusermount3 -u \(point) || fusermount3 -u -z \(point)")
    }
    let end = Date().addingTimeInterval(60)
    while process.isRunning, Date() < end { usleep(2000) }
    guard process.isRunning else { return }
    Issue.record("the mount goes on after its unmount: \(log)")
    kill()
  }

  /// Kills the driver and its guard with SIGKILL.
  public func kill() {
    // A guard that is stopped starts no successor.
    Foundation.kill(guardian, SIGSTOP)
    Foundation.kill(pid, SIGKILL)
    Foundation.kill(guardian, SIGKILL)
    process.waitUntilExit()
  }

  /// Kills driver, guard and the owner of the store with SIGKILL, and unmounts the mount that they
  /// leave behind.
  public func crash() {
    kill()
    sandbox.killOwner()
    sandbox.shell("fusermount3 -u -z \(point)")
  }

  /// Sends the program a signal, waits for its end and returns its exit status.
  public func end(with signal: Int32) -> Int32 {
    Foundation.kill(guardian, signal)
    process.waitUntilExit()
    return process.terminationStatus
  }
}

/// Runs a test in a sandbox with a mount at `$M`; `prepare` runs before the mount is made. Both are
/// gone afterwards, however the test ends.
public func withMount<Result>(
  _ arguments: [String] = [], prepare: (Sandbox) throws -> Void = { _ in },
  _ body: (Sandbox, Mount) throws -> Result
) throws -> Result {
  try withSandbox { sandbox in
    try prepare(sandbox)
    let mount = try Mount(sandbox, arguments)
    defer { mount.unmount() }
    return try body(sandbox, mount)
  }
}
