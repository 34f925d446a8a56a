import Glibc
import SystemCalls

/// Whether only the user and root could have made a file or directory what it is.
enum EffectTrust {
  /// Returns why somebody else could have changed what is at the path; nil if nobody could. It looks
  /// at the end of the path, if there is something, at each link on the way, and at each directory
  /// above any of them. A sticky directory is no objection, unless it is the end. Cost: some
  /// lstat(2) for each part of the path. It waits for disks.
  static func objection(to path: String) -> String? {
    let ends = Files.links(on: path) + [Files.canonicalPath(path)]
    return ends.lazy.compactMap(objection(onWayTo:)).first
  }

  /// As above, of a path on which only the end may be a link.
  private static func objection(onWayTo end: String) -> String? {
    var part = end
    while true {
      if let status = (try? Files.linkStatus(part)) ?? nil {
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
          return "\(part) belongs to neither this user nor root"
        }
        let isSticky = part != end && status.st_mode & mode_t(S_ISVTX) != 0
        if status.st_mode & S_IFMT != S_IFLNK, !isSticky, status.st_mode & 0o022 != 0 {
          return "others can write to \(part)"
        }
      }
      if part == "/" || part == "." { return nil }
      part = Files.parent(of: part)
    }
  }
}
