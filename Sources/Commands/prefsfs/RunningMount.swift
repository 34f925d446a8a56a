import FUSEDriver
import Glibc
import PropertyList
import SystemCalls

/// What a command asks of a mount that runs: its state, or an upgrade.
struct RunningMount {
  private let point: String
  private let log: Log

  init(_ point: String, _ log: Log) { (self.point, self.log) = (point, log) }

  /// Carries out `--status` or `--upgrade`.
  func run(_ options: Options) -> ExitStatus {
    do {
      if options.showsList { return try list(asJSON: options.isJSON) }
      if options.showsStatus {
        print(String(decoding: try status(), as: UTF8.self), terminator: "")
        return .success
      }
      if point.isEmpty { return try upgradeAll() }
      return try upgrade()
    } catch {
      log("\(error)")
      return options.showsStatus ? (error as? Failure)?.status ?? .failure : .failure
    }
  }

  /// What went wrong, as a sentence for people.
  private struct Failure: Error, CustomStringConvertible {
    let description: String
    /// The exit status of `--status`.
    var status = ExitStatus.failure
  }

  /// The state of the mount. Throws a `Failure` within 2 s where there is none.
  private func status() throws -> [UInt8] {
    guard let mount = mount(at: point), mount.kind == "fuse.prefsfs" else {
      throw Failure(description: "\(point): no prefsfs is mounted there", status: .notMounted)
    }
    switch StatusQuestion(mount).answer() {
    case .status(let bytes): return bytes
    case .refused(let status, let reason):
      throw Failure(description: "\(point): \(reason)", status: status)
    }
  }

  /// The mount at a path, which may be a link to it. No part of the mount is looked at: it may not
  /// answer.
  private func mount(at point: String) -> MountInformation.Mount? {
    var path = point
    for _ in 0..<8 {
      while path.count > 1, path.hasSuffix("/") { path.removeLast() }
      while path.hasSuffix("/."), path != "/." { path.removeLast(2) }
      if path == "." || path.isEmpty { path = Self.workingDirectory ?? path }
      // A parent of a directory in a mount is in no cache of ours: the kernel is asked.
      if path == ".." || path.hasSuffix("/..") { path = Files.realPath(path) ?? path }
      let name = path.split(separator: "/").last.map(String.init) ?? ""
      guard let parent = Files.realPath(path.contains("/") ? Files.parent(of: path) : ".") else {
        return nil
      }
      let whole = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
      if let mount = MountInformation.mount(at: whole) { return mount }
      guard let target = Files.linkTarget(whole) else { return nil }
      path = target.hasPrefix("/") ? target : "\(parent)/\(target)"
    }
    return nil
  }

  /// The working directory, as the kernel knows it: no file system is asked.
  private static var workingDirectory: String? {
    guard let path = getcwd(nil, 0) else { return nil }
    defer { free(path) }
    return String(cString: path)
  }

  /// Prints a line for each mount of prefsfs on the machine: mount point, user, driver, owner.
  private func list(asJSON: Bool) throws -> ExitStatus {
    let mounts = MountInformation.all.filter { $0.kind == "fuse.prefsfs" }
    let questions = mounts.map(StatusQuestion.init)
    for (mount, question) in zip(mounts, questions) {
      let line = MountLine(mount, question.answer())
      print(asJSON ? line.json : line.text)
    }
    return .success
  }

  /// The process that serves the mount, and may have ended since it has said so.
  private func process() throws -> pid_t {
    guard case .dictionary(let status) = try Document.read(try status(), limits: .standard).value,
      case .integer(let number)? = status["process"], let process = Int32("\(number)"), process > 1
    else { throw noProcess }
    return process
  }

  private var noProcess: Failure {
    Failure(description: "\(point): its state has no process of a mount")
  }

  /// Whether the name of the process is that of a driver. The number comes from an extended
  /// attribute, which any directory can have. The user is not compared: kill(2) does that.
  private static func isDriver(_ process: pid_t) -> Bool {
    let comm = try? Files.contents("/proc/\(process)/comm", limit: 64)
    return comm.map { String(decoding: $0, as: UTF8.self) } == "prefsfs\n"
  }

  /// Asks for the upgrade of one mount, and waits until a new driver serves it.
  private func upgrade() throws -> ExitStatus {
    let before = try process()
    guard Self.isDriver(before) else { throw noProcess }
    guard kill(before, SIGUSR2) == 0 else { throw SystemError("kill", "\(before)") }
    let end = Instant.now.advanced(milliseconds: 30_000)
    while try isServed(by: before) {
      guard .now < end else {
        throw Failure(
          description: "\(point): not upgraded; the log of the mount says why, and it goes on")
      }
      Instant.sleep(milliseconds: 10)
    }
    return .success
  }

  /// Whether the driver serves the mount still, or its successor has not begun to answer.
  private func isServed(by before: pid_t) throws -> Bool {
    do {
      return try process() == before
    } catch let failure as Failure where failure.status == .mountSilent {
      return true
    }
  }

  /// Asks every mount and every `prefsd` of this user for an upgrade; root those of all users. It
  /// asks those alone that run the program at this program's path, or `prefsd` beside it: nothing
  /// has changed for another installation, and any program may call itself `prefsd`.
  private func upgradeAll() throws -> ExitStatus {
    let own = ProcessFacts(ofThread: getpid()).program
    let programs = ["prefs-guard": own, "prefsd": Files.parent(of: own) + "/prefsd"]
    for name in try Files.names(in: "/proc", withDirectories: true) ?? [] {
      guard let process = pid_t(name),
        let comm = try? Files.contents("/proc/\(name)/comm", limit: 64),
        let program = programs[String(decoding: comm.dropLast(), as: UTF8.self)],
        ProcessFacts(ofThread: process).program == program
      else { continue }
      _ = kill(process, SIGUSR2)
    }
    return .success
  }
}
