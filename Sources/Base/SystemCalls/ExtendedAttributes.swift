import CLinux
import Glibc

/// Extended attributes of files (xattr(7)). It has no state; any thread may use it.
public enum ExtendedAttributes {
  /// Gives an open file the extended attributes of another file: removes those that only the open
  /// file has, and sets those of the other.
  ///
  /// Throws where an attribute cannot be read, removed or set. Some refusals to remove or set one
  /// are ignored: the file system does not support the attribute (ENOTSUP), it is gone already
  /// (ENODATA), or only the system sets it (EPERM for `security.` and `trusted.`).
  /// - Parameters:
  ///   - new: the file that is changed.
  ///   - path: the file whose attributes it gets.
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

  /// Returns the value of an extended attribute of a file.
  public static func value(of name: String, _ path: String) throws(SystemError) -> [UInt8] {
    try bytes(path) { getxattr(path, name, $0, $1) }
  }

  /// Whether the refusal in `errno`, to set or remove this attribute, is ignored.
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

  /// Returns what the call puts into a buffer that is large enough. Without a buffer the call
  /// returns the size that is needed.
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
      // ERANGE: the value grew between the two calls.
      guard room > 0, Errno.current == Errno(rawValue: ERANGE) else {
        throw SystemError("getxattr", path)
      }
    }
  }
}
