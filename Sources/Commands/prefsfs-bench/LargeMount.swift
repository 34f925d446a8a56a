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

  /// Bytes of memory that the driver has, without what is mapped from files.
  func memory() throws -> Double { Self.memory(of: try driver()) }

  /// The same of the driver and of the owner of the store together.
  func memoryWithOwner() throws -> Double { try memory() + Self.memory(of: try owner()) }

  private static func memory(of process: pid_t) -> Double {
    ["RssAnon:", "RssShmem:"].map { MemoryBench.status($0, of: "\(process)") * 1024 }.reduce(0, +)
  }

  /// The process that owns the store.
  func owner() throws -> pid_t {
    let lock = Surroundings(store: lists).stateDirectory + "/lock"
    guard
      let owner = pid_t(String(decoding: try Files.contents(lock, limit: 64) ?? [], as: UTF8.self))
    else { throw SystemError("read", lock, .noData) }
    return owner
  }

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
