import Glibc
import SystemCalls

/// Why a mount was refused, as far as this process can tell: libfuse says only that it was.
struct MountObstacle: Sendable {
  /// The program that mounts for users who may not, as it is installed.
  enum Helper: Sendable {
    case missing
    /// It has no set-uid bit of root's, or its file system ignores that.
    case powerless(path: String)
    case working
  }

  /// Why /dev/fuse cannot be opened; nil if it can.
  var device: Errno?
  /// Whether this process may mount (CAP_SYS_ADMIN).
  var mayMount = false
  /// Whether no program that it starts gets more rights (PR_SET_NO_NEW_PRIVS).
  var isConfined = false
  var helper = Helper.working
  /// Whether no program here can get the right to mount, as in a container.
  var isBounded = false

  /// What is in the way, and what helps; nil if it is not known.
  var sentence: String? {
    if let device {
      return device == .noSuchFile || device.rawValue == ENODEV
        ? "there is no /dev/fuse; load the module (modprobe fuse), or give the container the device "
          + "(--device /dev/fuse)" : "/dev/fuse cannot be opened: \(device)"
    }
    if mayMount { return nil }
    if isBounded {
      return "no program may mount here (CAP_SYS_ADMIN is not in the bounding set), as in a "
        + "container; start it with --cap-add SYS_ADMIN --device /dev/fuse, or mount outside of it"
    }
    if isConfined {
      return
        "no program that this process starts may mount (no new privileges: NoNewPrivileges= of "
        + "its unit, or setpriv); mount from another session or unit"
    }
    switch helper {
    case .missing: return "fusermount3 is missing; install it (package fuse3)"
    case .powerless(let path): return "\(path) is not set-uid root (chmod u+s), so it may not mount"
    case .working: return nil
    }
  }
}

extension MountObstacle {
  /// What is so for this process now.
  static var present: MountObstacle {
    var obstacle = MountObstacle()
    let device = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    if device < 0 { obstacle.device = Errno.current } else { close(device) }
    let status = try? Files.contents("/proc/self/status", limit: 1 << 16)
    let fields = Self.fields(of: String(decoding: status ?? [], as: UTF8.self))
    obstacle.mayMount = holdsAdministration(fields["CapEff"])
    obstacle.isBounded = !holdsAdministration(fields["CapBnd"])
    obstacle.isConfined = fields["NoNewPrivs"] == "1"
    obstacle.helper = installedHelper
    return obstacle
  }

  /// Whether CAP_SYS_ADMIN, number 21, is in a set of capabilities.
  private static func holdsAdministration(_ set: String?) -> Bool {
    let set = set.flatMap { UInt64($0, radix: 16) } ?? 0
    return set >> 21 & 1 == 1
  }

  /// The fields of proc_pid_status(5).
  static func fields(of text: String) -> [String: String] {
    var fields: [String: String] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      fields[String(parts[0])] = String(parts[1].drop { $0 == "\t" || $0 == " " })
    }
    return fields
  }

  /// The fusermount3 that libfuse starts: the usual one, or one in PATH.
  private static var installedHelper: Helper {
    let directories = (Environment.variable("PATH") ?? "/bin").split(separator: ":").map(
      String.init)
    for directory in ["/usr/bin"] + directories {
      let path = "\(directory)/fusermount3"
      guard let status = try? Files.status(path) else { continue }
      // ST_NOSUID of statvfs(3).
      let isIgnored = ((try? Files.space(path))?.f_flag ?? 0) & 2 != 0
      return status.st_uid == 0 && status.st_mode & S_ISUID != 0 && !isIgnored
        ? .working : .powerless(path: path)
    }
    return .missing
  }
}
