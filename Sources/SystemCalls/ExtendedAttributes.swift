import CLinux
import Glibc

/// Extended attributes of files (xattr(7)). No state; any thread.
public enum ExtendedAttributes {
  /// Makes the attributes of an open file those of another: what is new there is removed, what the other
  /// has is set. An attribute that this process may not set although the other file has it is an error
  /// (EPERM), but for those of `trusted` and `security` that only the system gives (ENOTSUP, EPERM for
  /// a label that the new file has already).
  public static func replace(
    those new: borrowing Descriptor, by path: String
  ) throws(SystemError) {
    let file = new.number
    let wanted = try names(path) { listxattr(path, $0, $1) }
    for name in try names(path, { flistxattr(file, $0, $1) }) where !wanted.contains(name) {
      if fremovexattr(file, name) != 0, !isIgnorable(name) {
        throw SystemError("fremovexattr \(name)", path)
      }
    }
    for name in wanted {
      let value = try bytes(path, { getxattr(path, name, $0, $1) })
      let has = try? bytes(path, { fgetxattr(file, name, $0, $1) })
      if has == value { continue }
      if fsetxattr(file, name, value, value.count, 0) != 0, !isIgnorable(name) {
        throw SystemError("fsetxattr \(name)", path)
      }
    }
  }

  /// Whether the attribute just refused is one that only the system gives.
  private static func isIgnorable(_ name: String) -> Bool {
    let reason = Errno.current
    if reason == .notSupported || reason == .noData { return true }
    return reason == .notPermitted && (name.hasPrefix("security.") || name.hasPrefix("trusted."))
  }

  private static func names(
    _ path: String, _ call: (UnsafeMutablePointer<CChar>?, Int) -> Int
  ) throws(SystemError) -> [String] {
    do throws(SystemError) {
      return try bytes(
        path,
        { buffer, room in
          call(buffer?.assumingMemoryBound(to: CChar.self), room)
        }
      ).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    } catch  where error.errno == .notSupported {
      return []
    }
  }

  /// What the call puts into a buffer that is large enough.
  private static func bytes(
    _ path: String, _ call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemError) -> [UInt8] {
    while true {
      let room = call(nil, 0)
      if room == 0 { return [] }
      var count = room
      let bytes = [UInt8](unsafeUninitializedCapacity: max(room, 1)) { buffer, filled in
        if room > 0 { count = call(buffer.baseAddress, room) }
        filled = max(count, 0)
      }
      if count >= 0 { return bytes }
      // It grew between the two calls.
      guard room > 0, Errno.current == Errno(rawValue: ERANGE) else {
        throw SystemError("getxattr", path)
      }
    }
  }
}
