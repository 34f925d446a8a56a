import Glibc
import PreferenceModel
import StoreAccess
import Synchronization
import SystemCalls

/// The lock by which a process owns a store: flock(2) on the file `lock` in the state directory.
/// The lock ends with the process, however that ends.
///
/// Threads: any thread may call. Locks: `descriptor`, for a moment, with no other lock of the store.
final class StoreLock: Sendable {
  private let layout: StoreLayout
  /// nil if another process took the lock in a new state directory.
  private let descriptor: Mutex<SharedDescriptor?>

  /// Takes the lock: see `acquire`.
  init(_ layout: StoreLayout) throws(SystemError) {
    self.layout = layout
    descriptor = Mutex(SharedDescriptor(try Self.acquire(layout)))
  }

  /// Takes the lock, and makes the state directory where it is missing. Throws EAGAIN, with the
  /// number of the process in the sentence, where another process holds it.
  private static func acquire(_ layout: StoreLayout) throws(SystemError) -> Descriptor {
    try Files.makeDirectories(layout.stateDirectory, mode: 0o700)
    let path = layout.stateDirectory + "/lock"
    let lock = try Descriptor(opening: path, O_RDWR | O_CREAT)
    guard try acquire(lock) else {
      let owner = String(decoding: try lock.readToEnd(limit: 64), as: UTF8.self)
      throw SystemError(
        "lock",
        "the store \(layout.userDirectory) is owned by process \(owner), which does not answer; "
          + "is it stopped? (kill -CONT \(owner))",
        .wouldBlock)
    }
    do throws(SystemError) {
      try layout.noteOwner()
      try lock.truncate(to: 0)
      try lock.write(Array("\(getpid())".utf8))
    } catch  where error.errno == .noSpace {
      // A store whose disk is full can still be read.
    }
    return lock
  }

  /// Takes the lock, or tries it again after a millisecond: a process that asks whether the store
  /// is owned (`isOwned`) has the lock for a moment.
  private static func acquire(_ lock: borrowing Descriptor) throws(SystemError) -> Bool {
    if try lock.lockExclusively(waiting: false) { return true }
    Instant.sleep(milliseconds: 1)
    return try lock.lockExclusively(waiting: false)
  }

  /// Whether a process owns the store that has this state directory.
  static func isOwned(_ stateDirectory: String) -> Bool {
    let path = stateDirectory + "/lock"
    // Without O_NONBLOCK the opening of a pipe would wait for a writer.
    guard let lock = try? Descriptor(opening: path, O_RDONLY | O_NONBLOCK),
      let isFree = try? lock.lockExclusively(waiting: false)
    else { return false }
    return !isFree
  }

  /// Releases the lock, so that another process can own the store.
  func unlock() { descriptor.withLock { $0?.value.unlock() } }

  /// Takes the lock in a new state directory.
  /// - Returns: why another process owns the store too; nil if it does not.
  func reacquire() throws(SystemError) -> SystemError? {
    do throws(SystemError) {
      let taken = SharedDescriptor(try Self.acquire(layout))
      descriptor.withLock { $0 = taken }
      return nil
    } catch  where error.errno == .wouldBlock {
      descriptor.withLock { $0 = nil }
      return error
    }
  }

  /// Whether the file whose lock this process holds still has its name. Also true where this
  /// process has lost the lock to another one: it does not ask for it again.
  var isInPlace: Bool {
    descriptor.withLock { lock in
      guard let lock else { return true }
      guard let own = try? lock.value.status(),
        let there = try? Files.linkStatus(layout.stateDirectory + "/lock")
      else { return false }
      return own.st_ino == there.st_ino && own.st_dev == there.st_dev
    }
  }
}
