import CLinux
import Glibc

/// The mount table as proc(5) shows it. Unlike stat(2), reading it makes no request to the driver
/// of a mount.
public enum MountInformation {
  /// One mount of the mount table.
  public struct Mount: Equatable, Sendable {
    /// The `st_dev` of the files in it.
    public let device: dev_t
    /// The path of the mount point.
    public let path: String
    /// The type of the file system, e.g. `fuse.prefsfs`.
    public let kind: String
    /// The user and the group of the process that mounted it (FUSE); nil if it is not said.
    public let user, group: uid_t?
  }

  /// The mount at a path, which must be absolute and without links. Where several mounts lie on one
  /// point, it is the last.
  public static func mount(at path: String) -> Mount? {
    all.last { $0.path.utf8.elementsEqual(path.utf8) }
  }

  /// The first mount of a file system, with its present mount point, which changes when a directory
  /// above it is renamed; nil where it is not mounted.
  public static func mount(on device: dev_t) -> Mount? { all.first { $0.device == device } }

  /// The mount that an absolute path lies in, by its text: the path is not accessed, and links on
  /// it are not followed. Of two at one place, the later one counts.
  /// - Parameter mounts: the mount table, for a caller that asks of many paths.
  public static func mount(above path: String, _ mounts: [Mount] = all) -> Mount? {
    let above = mounts.filter { mount in
      path == mount.path || mount.path == "/" || path.hasPrefix(mount.path + "/")
    }
    return above.max { $0.path.utf8.count <= $1.path.utf8.count }
  }

  /// Whether a path lies in a file system that depends on another machine or process, and so may
  /// hang. It judges by the text of the path and the mount table, and does not access the path.
  /// - Parameter mounts: the mount table, for a caller that asks of many paths.
  public static func mayHang(_ path: String, _ mounts: [Mount] = all) -> Bool {
    let kind = mount(above: path, mounts)?.kind ?? ""
    return ["fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs"].contains { kind.hasPrefix($0) }
  }

  /// Whether a mount whose connection to its driver has ended is at the path (ENOTCONN). Asks with
  /// statvfs(3), which the kernel answers from no cache: stat(2) of such a mount's root still
  /// succeeds while its attributes are cached. A mount whose driver hangs never answers.
  public static func isDead(_ path: String) -> Bool {
    do {
      _ = try Files.space(path)
      return false
    } catch {
      return error.errno == .notConnected
    }
  }

  /// All mounts of this process's mount namespace, in the order of the table.
  public static var all: [Mount] {
    let table = (try? Files.contents("/proc/self/mountinfo", limit: 1 << 24)) ?? []
    return table.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count > 4 else { return nil }
      let numbers = fields[2].split(separator: UInt8(ascii: ":")).compactMap {
        UInt32(String(decoding: $0, as: UTF8.self))
      }
      guard numbers.count == 2 else { return nil }
      // The type, the source and the options follow the first lone hyphen after optional fields.
      let hyphen = fields.dropFirst(6).firstIndex { $0.elementsEqual("-".utf8) } ?? fields.endIndex
      let rest = fields.dropFirst(hyphen + 1).map { $0 }
      let options = rest.count > 2 ? String(decoding: rest[2], as: UTF8.self) : ""
      return Mount(
        device: gnu_dev_makedev(numbers[0], numbers[1]), path: unescaped(fields[4]),
        kind: rest.isEmpty ? "" : String(decoding: rest[0], as: UTF8.self),
        user: number("user_id", in: options), group: number("group_id", in: options))
    }
  }

  /// The mount points that fstab(5) names, without slashes at their ends.
  public static var planned: [String] {
    planned(in: (try? Files.contents("/etc/fstab", limit: 1 << 20)) ?? [])
  }

  /// The mount points in lines of fstab(5).
  static func planned(in bytes: [UInt8]) -> [String] {
    bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
      let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      guard fields.count > 2, fields[0].first != UInt8(ascii: "#"),
        fields[1].first == UInt8(ascii: "/")
      else { return nil }
      let point = unescaped(fields[1])
      return point.lastIndex { $0 != "/" }.map { String(point[...$0]) } ?? "/"
    }
  }

  /// Whether a unit of systemd is there that mounts something at the path; one that is empty, or a
  /// link to /dev/null, is masked. (What it makes of fstab(5) is in `planned`.)
  /// - Parameter directories: those of units, the one that counts first.
  public static func hasUnit(
    _ path: String, in directories: [String] = ["/etc/systemd/system", "/run/systemd/system"]
  ) -> Bool {
    let name = unitName(path)
    let unit = directories.compactMap { try? Files.status("\($0)/\(name)") }.first
    return unit.map { $0.st_mode & S_IFMT == S_IFREG && $0.st_size > 0 } ?? false
  }

  /// The name of a unit that mounts something at a path, e.g. `home-ada.mount` (systemd.unit(5)).
  static func unitName(_ path: String) -> String {
    var name = ""
    for byte in path.utf8.drop(while: { $0 == UInt8(ascii: "/") }) {
      switch byte {
      case UInt8(ascii: "/"): name += "-"
      case _ where byte < 0x80 && Character(UnicodeScalar(byte)).isLetter,
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "_"):
        name.unicodeScalars.append(UnicodeScalar(byte))
      case UInt8(ascii: ".") where !name.isEmpty: name += "."
      default: name += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return name + ".mount"
  }

  private static func number(_ name: String, in options: String) -> uid_t? {
    options.split(separator: ",").lazy.compactMap { option -> uid_t? in
      option.hasPrefix(name + "=") ? uid_t(option.dropFirst(name.utf8.count + 1)) : nil
    }.first
  }

  /// Decodes a path: the table has blanks, tabs, newlines and backslashes as a backslash and three
  /// octal digits.
  private static func unescaped(_ field: ArraySlice<UInt8>) -> String {
    var bytes: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), rest.count >= 3,
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
