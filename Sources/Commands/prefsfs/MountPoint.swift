import Glibc
import SystemCalls

/// Checks the directories of a command line: the mount point and SOURCE.
enum MountPoint {
  /// Why a directory cannot be used, as a sentence for people.
  struct Unusable: Error, CustomStringConvertible {
    let description: String
  }

  /// Returns the real path of a directory that can be mounted on. Clears mounts whose drivers have
  /// died there (ENOTCONN) first, of which several may lie on each other.
  /// - Parameter covers: whether it may be a mount of this program already.
  static func prepare(_ path: String, covers: Bool) throws(Unusable) -> String {
    while MountInformation.isDead(path) {
      guard Unmount.lazily(path) else {
        throw Unusable(
          description: "\(path): a stale mount; clear it with fusermount3 -u -z \(path)")
      }
    }
    try requireDirectory(path, "make it first (mkdir -p)")
    guard let real = Files.realPath(path) else {
      throw Unusable(description: "\(path): no such directory; make it first (mkdir -p)")
    }
    if !covers, MountInformation.mount(at: real)?.kind == "fuse.prefsfs" {
      throw Unusable(
        description: "\(path): prefsfs is already mounted there; fusermount3 -u \(path) ends that, "
          + "and -o nonempty mounts over it")
    }
    return real
  }

  /// Whether a mount at the directory hides files.
  static func hidesFiles(_ point: String) -> Bool {
    let names = (try? Files.names(in: point, withDirectories: true)) ?? []
    return names.contains { $0 != "." && $0 != ".." }
  }

  /// Throws if the path is no directory, with the reason; with the advice where nothing is there.
  private static func requireDirectory(_ path: String, _ advice: String) throws(Unusable) {
    let found: stat?
    do throws(SystemError) { found = try Files.status(path) } catch {
      throw Unusable(description: "\(path): \(error)")
    }
    guard let found else {
      throw Unusable(description: "\(path): no such directory; \(advice)")
    }
    guard found.st_mode & S_IFMT == S_IFDIR else {
      throw Unusable(description: "\(path): it is not a directory")
    }
  }

  /// Throws if SOURCE is not a directory.
  static func checkSource(_ path: String) throws(Unusable) {
    try requireDirectory(path, "SOURCE is a directory of lists")
  }

  /// Throws if lists would lie in a mount of this program, whose files are preferences: no list could
  /// be replaced there, and two such mounts would wait for each other.
  static func requireLists(_ directory: String) throws(Unusable) {
    let path = Files.canonicalPath(directory)
    let above = MountInformation.all.filter { mount in
      path == mount.path || path.hasPrefix(mount.path == "/" ? "/" : mount.path + "/")
    }
    // Of two at one place, the later one counts.
    guard above.max(by: { $0.path.utf8.count <= $1.path.utf8.count })?.kind == "fuse.prefsfs" else {
      return
    }
    throw Unusable(
      description: "\(path): it lies in a mount of prefsfs; name a directory of lists elsewhere")
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
