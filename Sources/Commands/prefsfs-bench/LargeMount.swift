import Glibc
import PropertyList
import StoreAccess
import SystemCalls

/// A mount that a measurement makes and ends.
struct LargeMount {
  private let program: String
  /// The directory of its lists.
  let lists: String
  let point: String

  /// - Parameters:
  ///   - program: the path of `prefsfs`.
  ///   - lists: the directory of the lists. The mount point lies beside it, and is made.
  init(_ program: String, _ lists: String, suffix: String = "mount") {
    (self.program, self.lists, point) = (program, lists, "\(lists).\(suffix)")
  }

  /// A second mount of the same lists.
  var another: LargeMount { LargeMount(program, lists, suffix: "mount2") }

  /// Mounts; returns when the mount answers.
  func mount() throws(SystemError) {
    try Files.makeDirectories(point, mode: 0o755)
    guard try Child.run(program, [lists, point]) == 0 else {
      throw SystemError("mount", point, .inputOutput)
    }
  }

  /// Unmounts, and waits for the end of the driver, which saves what it has. A mount that cannot be
  /// taken off stays.
  func unmount() {
    guard let driver = try? driver(), (try? Child.run("fusermount3", ["-u", point])) == 0
    else { return }
    while kill(driver, 0) == 0 { Instant.sleep(milliseconds: 1) }
  }

  /// Adds a figure: from the start of the program until a key has been read.
  /// - Parameter systems: the directories of the machine's lists, profiles and schemas, by subject.
  func addFirstRead(
    _ title: String, _ systems: KeyValuePairs<String, String>, _ report: Report, _ goal: Goal
  ) throws {
    try Files.makeDirectories(lists, mode: 0o700)
    let list = try Document.write(["K": 1], as: .xml)
    try Files.replace("\(lists)/com.example.bench.plist", with: list)
    let subjects = systems.map { name, system in
      Subject(name) {
        setenv("PREFSFS_SYSTEM_DIR", system, 1)
        defer { unmount() }
        return Bench.time(1) { _ in
          try? mount()
          _ = try? Files.contents("\(point)/com.example.bench/K", limit: 64)
        }
      }
    }
    report.add(title, .nanoseconds, Bench.samples(subjects), goals: [goal])
  }

  /// Bytes of memory that the driver has, without what is mapped from files.
  func memory() throws -> Double { Self.memory(of: try driver()) }

  /// The same of the driver and of the owner of the store together.
  func memoryWithOwner() throws -> Double { try memory() + Self.memory(of: owner()) }

  private static func memory(of process: pid_t) -> Double {
    ["RssAnon:", "RssShmem:"].map { MemoryBench.status($0, of: "\(process)") * 1024 }.reduce(0, +)
  }

  /// The process that owns the store.
  func owner() throws -> pid_t { try Bench.owner(Surroundings(store: lists)) }

  /// Kills the driver; returns when its successor answers.
  func killDriver() throws {
    kill(try driver(), SIGKILL)
    _ = try driver()
  }

  /// The process that serves the mount, as it says itself.
  private func driver() throws -> pid_t {
    let status = try ExtendedAttributes.value(of: "user.prefs.status", point)
    guard case .dictionary(let values) = try Document.read(status, limits: .standard).value,
      case .integer(let number)? = values["process"], let process = pid_t("\(number)")
    else { throw SystemError("getxattr", point, .noData) }
    return process
  }
}
