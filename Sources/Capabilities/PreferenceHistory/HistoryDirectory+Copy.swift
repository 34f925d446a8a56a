import Glibc
import PreferenceModel
import SystemCalls

// A machine that uses a home for the first time goes on with the history of another one.

extension HistoryDirectory {
  /// How far a history is.
  package struct Extent: Equatable, Sendable {
    /// The number of its newest file.
    package let file: UInt64
    /// The bytes of that file.
    package let size: Int64
    /// When that was changed last.
    package let changed: Timestamp
  }

  /// How far the history is; nil if there is none.
  package func extent() throws(SystemError) -> Extent? {
    guard let last = try numbers().last, let status = try Files.linkStatus(file(last)) else {
      return nil
    }
    return Extent(
      file: last, size: Int64(status.st_size), changed: Timestamp(status.st_mtim))
  }

  /// Copies the files of another history into this one, which has none, durably. The owner of the
  /// other one may go on. Throws `.notSupported` where its newest file is of a later version.
  package func copyFiles(of other: HistoryDirectory) throws(SystemError) {
    _ = try HistoryWriter(other)
    try Files.makeDirectories(path, mode: 0o700)
    let numbers = try other.numbers()
    for number in numbers {
      let (old, new) = (other.file(number), file(number))
      // Only the newest one is appended to; another one takes the place of the others.
      if number != numbers.last, link(old, new) == 0 { continue }
      try Self.copy(old, to: new)
    }
    try Files.synchronizeDirectory(path)
  }

  /// Copies a file with its time, by which it is removed some day. One that is gone is left out.
  private static func copy(_ old: String, to new: String) throws(SystemError) {
    guard let status = try Files.linkStatus(old),
      let bytes = try Files.contents(old, limit: 1 << 30)
    else { return }
    let file = try Descriptor(opening: new, O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(bytes)
    try file.setModified(Timestamp(status.st_mtim))
    try file.synchronize()
  }
}
