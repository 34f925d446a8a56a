import Glibc
import SystemCalls

/// Whether only the user and root could have made a file or directory what it is.
enum EffectTrust {
  /// Returns why somebody else could have changed the file; nil if nobody could. It looks at the
  /// file, if there is one, at each directory above it, and at each link on the way. Cost: some
  /// lstat(2) for each part of the path. It waits for disks.
  static func objection(to path: String) -> String? {
    let real = Files.canonicalPath(path)
    for end in Set([path, real]) {
      if let objection = objectionToFile(end) { return objection }
      if let objection = objection(above: end) { return objection }
    }
    return nil
  }

  /// Returns the same for a directory that files are made in: nobody else may write there, sticky
  /// or not.
  static func objection(toDirectory path: String) -> String? {
    let real = Files.canonicalPath(path)
    return objectionToFile(real) ?? objection(above: real)
  }

  private static func objectionToFile(_ path: String) -> String? {
    guard let status = (try? Files.linkStatus(path)) ?? nil else { return nil }
    if let objection = objectionToOwner(of: path, status) { return objection }
    let isLink = status.st_mode & S_IFMT == S_IFLNK
    return isLink || status.st_mode & 0o022 == 0 ? nil : "others can write to \(path)"
  }

  private static func objection(above path: String) -> String? {
    var directory = path
    while directory != "/", directory != "." {
      directory = Files.parent(of: directory)
      guard let status = (try? Files.linkStatus(directory)) ?? nil else { continue }
      if let objection = objectionToOwner(of: directory, status) { return objection }
      let isSafe = status.st_mode & S_IFMT == S_IFLNK || status.st_mode & mode_t(S_ISVTX) != 0
      if !isSafe, status.st_mode & 0o022 != 0 { return "others can write to \(directory)" }
    }
    return nil
  }

  private static func objectionToOwner(of path: String, _ status: stat) -> String? {
    let isOwn = status.st_uid == geteuid() || status.st_uid == 0
    return isOwn ? nil : "\(path) belongs to neither this user nor root"
  }
}
