import Glibc
import SystemCalls

extension Descriptor {
  /// Takes the lock under which the lists of one directory are rewritten, by one process at a time:
  /// flock(2) on a file. Only processes that may write to the directory can open the file, so that
  /// no other can hold up rewrites.
  ///
  /// It is never waited for: this throws EAGAIN while another process has it. The lock ends with
  /// `unlock`, or with the process, however that ends; the file stays. It is made if there is none,
  /// with mode 0600, and read and write permission for the group, or for others, where the
  /// directory lets them write.
  static func listLock(_ path: String, directory: String) throws(SystemError) -> Descriptor {
    let rights = try Files.status(directory)?.st_mode ?? 0
    let mode: mode_t = 0o600 | (rights & 0o020 == 0 ? 0 : 0o060) | (rights & 0o002 == 0 ? 0 : 0o006)
    let lock = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: mode)
    let status = try lock.status()
    if status.st_mode & 0o777 != mode, status.st_uid == geteuid() { try lock.changeMode(mode) }
    guard try lock.lockExclusively(waiting: false) else {
      throw SystemError("lock", path, .wouldBlock)
    }
    return lock
  }
}
