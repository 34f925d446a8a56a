import Glibc
import PreferenceModel
import SystemCalls

/// The mounts that changes wait for, noted in a file of the store's state directory. Where an owner
/// ends without a word, the next one knows by it which mounts may go on showing what their kernels
/// have cached.
///
/// The file has the number of an author in each line. It is written in place and not made durable:
/// where it is missing or torn, mounts that are not in it are not waited for until they come back.
///
/// An owner that only reads notes its mounts in a file of the runtime directory, which the next owner
/// that writes takes over.
struct MountNote: Sendable {
  private let path: String?
  private let ofReader: String?
  private var written: Set<Author> = []

  /// More is not read: the file is not one of ours.
  private static let largest = 1 << 16

  /// - Parameters:
  ///   - path: the file; nil if nothing is noted.
  ///   - ofReader: the file of an owner before that only read; nil if there was none.
  init(_ path: String?, ofReader: String? = nil) { (self.path, self.ofReader) = (path, ofReader) }

  /// The mounts that the owners before have noted. The file of one that only read is removed.
  mutating func read() -> Set<Author> {
    written = Self.mounts(path)
    defer { if let ofReader { try? Files.remove(ofReader) } }
    return written.union(Self.mounts(ofReader))
  }

  private static func mounts(_ path: String?) -> Set<Author> {
    guard let path, let found = try? Files.regularContents(path, limit: largest) else { return [] }
    let numbers = found.split(separator: UInt8(ascii: "\n")).compactMap {
      UInt64(String(decoding: $0, as: UTF8.self))
    }
    return Set(numbers.map { Author(number: $0) })
  }

  /// Notes these mounts, unless they are those that were noted last.
  mutating func write(_ mounts: Set<Author>) {
    guard let path, mounts != written else { return }
    written = mounts
    let text = mounts.map { "\($0.number)\n" }.joined()
    try? Descriptor(opening: path, O_WRONLY | O_CREAT | O_TRUNC).write(Array(text.utf8))
  }
}
