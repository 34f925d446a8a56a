import PropertyList
import Synchronization

/// A write into the bytes of a string or of data, as pwrite(2) and ftruncate(2) make it: bytes at
/// an offset, and how many bytes there are afterwards. With splices, a long text that comes in
/// pieces costs the journal, messages and memory only the pieces, and not the whole text for each
/// piece.
///
/// Only the end of a value can move: a splice that changes the length reaches to the end. Therefore
/// a sequence of splices that is applied again to its own result, starting with any of them, makes
/// the same value.
public struct Splice: Equatable, Sendable {
  /// How many bytes the value has before.
  public let base: Int
  /// Where the bytes go: an offset in bytes.
  public let offset: Int
  /// The bytes that are written.
  public let bytes: [UInt8]
  /// How many bytes the value has afterwards.
  public let count: Int
  /// Whether the value's text is its bytes alone. Otherwise one newline follows them.
  public let isBare: Bool

  /// Returns nil where the numbers fit no value: they may come from a journal or another process.
  public init?(base: Int, offset: Int, bytes: [UInt8], count: Int, isBare: Bool) {
    let (end, overflow) = offset.addingReportingOverflow(bytes.count)
    guard !overflow, (0...base).contains(offset), end <= count, count == base || end == count,
      count <= Self.largest
    else { return nil }
    (self.base, self.offset, self.bytes) = (base, offset, bytes)
    (self.count, self.isBare) = (count, isBare)
  }

  /// How many bytes the largest value has that a splice can make.
  public static let largest = 1 << 30

  /// The offset behind the bytes that are written.
  var end: Int { offset + bytes.count }
}

/// Bytes that grow at their end in place, while copies keep earlier states. A value that splices
/// made is kept in this form until its list is rewritten.
///
/// A copy is cheap and does not change. Appending to the latest state costs what is appended, on
/// average; any other write copies the bytes. Any thread may read and write. The states share one
/// lock.
struct SharedBytes: Sendable {
  private final class Storage: Sendable {
    let bytes: Mutex<[UInt8]>

    init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes) }
  }

  private let storage: Storage
  let count: Int

  init(_ bytes: [UInt8]) {
    storage = Storage(bytes)
    count = bytes.count
  }

  private init(_ storage: Storage, count: Int) { (self.storage, self.count) = (storage, count) }

  /// A copy of all bytes. Cost: O(count).
  var array: [UInt8] { storage.bytes.withLock { Array($0[..<count]) } }

  /// Calls the body with the bytes in place, under the lock.
  func withBytes<Result>(_ body: (ArraySlice<UInt8>) -> Result) -> Result {
    storage.bytes.withLock { body($0[..<count]) }
  }

  /// The bytes after the splice, whose base must be their number.
  func applying(_ splice: Splice) -> SharedBytes {
    if splice.offset == count {
      let isLatest = storage.bytes.withLock { bytes in
        guard bytes.count == count else { return false }
        bytes += splice.bytes
        return true
      }
      if isLatest { return SharedBytes(storage, count: splice.count) }
    }
    var copy = array
    if splice.end == splice.count { copy.removeSubrange(splice.offset...) }
    copy.replaceSubrange(
      splice.offset..<Swift.min(copy.count, splice.end), with: splice.bytes)
    return SharedBytes(copy)
  }
}
