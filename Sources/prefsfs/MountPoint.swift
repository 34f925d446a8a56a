import Glibc
import SystemCalls

/// The directory that is mounted on.
enum MountPoint {
  /// Why it cannot be.
  struct Unusable: Error, CustomStringConvertible {
    let description: String
  }

  /// The real path of a directory that can be mounted on. A mount whose driver has died there
  /// (ENOTCONN) is cleared first.
  static func prepare(_ path: String) throws(Unusable) -> String {
    if isStale(path) {
      clear(path)
      if isStale(path) {
        throw Unusable(
          description: "\(path): a stale mount; clear it with fusermount3 -u -z \(path)")
      }
    }
    guard Files.isDirectory(path), let real = Files.realPath(path) else {
      throw Unusable(description: "\(path): no such directory; make it first (mkdir -p)")
    }
    return real
  }

  /// Throws where SOURCE is no directory.
  static func checkSource(_ path: String) throws(Unusable) {
    guard Files.isDirectory(path) else {
      throw Unusable(description: "\(path): no such directory; SOURCE is a directory of lists")
    }
  }

  /// Throws where a mount would hide the lists from the driver, who would then ask himself.
  static func check(_ point: String, holds directories: [String]) throws(Unusable) {
    for directory in directories {
      let path = Files.canonicalPath(directory)
      guard path != point, !path.hasPrefix(point == "/" ? "/" : point + "/") else {
        throw Unusable(
          description: "\(point): a mount there would hide \(path), which it shows; mount elsewhere"
        )
      }
    }
  }

  /// Asks with statvfs(3), which the kernel answers from no cache: stat(2) of a dead mount's root
  /// still succeeds while its attributes are cached.
  private static func isStale(_ path: String) -> Bool {
    do {
      _ = try Files.space(path)
      return false
    } catch {
      return error.errno == .notConnected
    }
  }

  /// fusermount3 is set-uid root: a plain user can clear his own mounts.
  private static func clear(_ path: String) {
    do {
      _ = try Child.run("fusermount3", ["-u", "-z", path])
    } catch {
      // The caller looks again and says so.
    }
  }
}
