import Glibc
import SystemCalls

/// Checks the directories of a command line: the mount point and SOURCE.
enum MountPoint {
  /// Why a directory cannot be used, as a sentence for people.
  struct Unusable: Error, CustomStringConvertible {
    let description: String
  }

  /// Returns the real path of a directory that can be mounted on. Clears a mount whose driver has
  /// died there (ENOTCONN) first.
  static func prepare(_ path: String) throws(Unusable) -> String {
    if MountInformation.isDead(path) {
      Unmount.lazily(path)
      if MountInformation.isDead(path) {
        throw Unusable(
          description: "\(path): a stale mount; clear it with fusermount3 -u -z \(path)")
      }
    }
    guard Files.isDirectory(path), let real = Files.realPath(path) else {
      throw Unusable(description: "\(path): no such directory; make it first (mkdir -p)")
    }
    return real
  }

  /// Throws if SOURCE is not a directory.
  static func checkSource(_ path: String) throws(Unusable) {
    guard Files.isDirectory(path) else {
      throw Unusable(description: "\(path): no such directory; SOURCE is a directory of lists")
    }
  }

  /// Throws if a mount at `point` would hide one of the directories. The driver would then read its
  /// lists through its own mount, and wait for itself.
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
}
