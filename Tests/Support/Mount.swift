import Foundation

/// A real mount of the sandbox's store, in the foreground of a child process.
public final class Mount: @unchecked Sendable {
  // Process is not Sendable; only the test's thread uses it.
  private let process: Process
  private let sandbox: Sandbox
  private let logFile: String
  private let point: String

  /// Mounts, at `$M` unless it is said where, and waits until the mount is there.
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

  /// Why there is no mount.
  public struct Failure: Error, CustomStringConvertible {
    /// The program's own words.
    public let description: String
  }

  private var isAnswering: Bool {
    var status = stat()
    return MountTable.isMounted(point) && stat(point, &status) == 0
  }

  /// What the program has written to standard error.
  public var log: String { (try? String(contentsOfFile: logFile, encoding: .utf8)) ?? "" }

  /// The driver's process.
  public var pid: pid_t { process.processIdentifier }

  /// The path of a file in the mount.
  public func path(_ name: String) -> String { "\(point)/\(name)" }

  /// Requests that the driver has received, with `-d`: libfuse prints a line for each.
  public var requests: [String] {
    log.split(separator: "\n").compactMap { line in
      guard let start = line.range(of: "opcode: ") else { return nil }
      return String(line[start.upperBound...].prefix { $0 != " " })
    }
  }

  /// Unmounts as a user does, and waits for the end of the program.
  public func unmount() {
    if MountTable.isMounted(point) {
      sandbox.shell("fusermount3 -u \(point) || fusermount3 -u -z \(point)")
    }
    process.waitUntilExit()
  }

  /// kill -9, and the dead mount cleared.
  public func crash() {
    kill(pid, SIGKILL)
    process.waitUntilExit()
    sandbox.shell("fusermount3 -u -z \(point)")
  }

  /// Ends the program with a signal; its exit status.
  public func end(with signal: Int32) -> Int32 {
    kill(pid, signal)
    process.waitUntilExit()
    return process.terminationStatus
  }
}

/// Runs a test in a sandbox with a mount; both are gone afterwards, however the test ends.
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
