import PropertyList
import Synchronization

/// A write into the bytes of a string or of data, as pwrite(2) and ftruncate(2) make it: bytes at an offset,
/// and how many there are afterwards. What a long text that comes in pieces costs in the journal, in messages
/// and in memory is the pieces, not the text times the pieces.
///
/// Only the end of a value can move: a splice that changes the length reaches to the end. So a row of splices
/// that is applied again to what it made, from any of them on, makes the same value.
public struct Splice: Equatable, Sendable {
  /// Bytes of the value before.
  public let base: Int
  /// Where the bytes go.
  public let offset: Int
  /// What goes there.
  public let bytes: [UInt8]
  /// Bytes of the value afterwards.
  public let count: Int
  /// Whether the value's text is its bytes alone; else one newline follows them.
  public let isBare: Bool

  /// nil where the numbers fit no value: they may come from a journal or another process.
  public init?(base: Int, offset: Int, bytes: [UInt8], count: Int, isBare: Bool) {
    let (end, overflow) = offset.addingReportingOverflow(bytes.count)
    guard !overflow, (0...base).contains(offset), end <= count, count == base || end == count,
      count <= Self.largest
    else { return nil }
    (self.base, self.offset, self.bytes) = (base, offset, bytes)
    (self.count, self.isBare) = (count, isBare)
  }

  /// Bytes of the largest value that a splice makes.
  public static let largest = 1 << 30

  /// Where the bytes end.
  var end: Int { offset + bytes.count }
}

/// Bytes that grow at their end in place, whoever holds an earlier state of them. A value that was made by
/// splices is kept so until its list is rewritten.
///
/// A copy is cheap and stays as it is. Appending to the latest state costs what is appended, on average;
/// any other write copies the bytes. Any thread may read and write.
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

  /// All of them, in memory of their own. Cost: O(count).
  var array: [UInt8] { storage.bytes.withLock { Array($0[..<count]) } }

  /// Reads them in place.
  func withBytes<Result>(_ body: (ArraySlice<UInt8>) -> Result) -> Result {
    storage.bytes.withLock { body($0[..<count]) }
  }

  /// The bytes with the splice, whose base they must be.
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
