import Glibc

/// The key of a dictionary and of a preference: a string that is equal to another when their
/// UTF-8 bytes are.
///
/// Swift's `String` compares by canonical equivalence, so that a composed and a decomposed "é"
/// would be one key; in a property list and as file names they are two.
public struct Key: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
  private enum Storage {
    case string(String)
    /// Bytes of a document's block.
    case block(KeyBlock, start: UInt32, count: UInt32)
  }

  private let storage: Storage

  /// A key of any text, the empty one included.
  public init(_ string: String) { storage = .string(string) }

  /// A key of any text.
  public init(stringLiteral value: String) { storage = .string(value) }

  /// A key whose bytes stand in the block.
  init(_ block: KeyBlock, _ start: Int, _ count: Int) {
    storage = .block(block, start: UInt32(start), count: UInt32(count))
  }

  /// The key as text. Cost: a copy for a key of a list that is longer than 15 bytes.
  public var string: String {
    switch storage {
    case .string(let string): string
    case .block(let block, let start, let count):
      withExtendedLifetime(block) { String(valid: block.bytes(start, count)) }
    }
  }

  /// The UTF-8 bytes, for the time of the call. Cost: no copy.
  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    switch storage {
    case .string(let string): string.withBytes(body)
    case .block(let block, let start, let count):
      withExtendedLifetime(block) { body(block.bytes(start, count)) }
    }
  }

  /// The number of UTF-8 bytes.
  public var utf8Count: Int {
    switch storage {
    case .string(let string): string.utf8.count
    case .block(_, _, let count): Int(count)
    }
  }

  public static func == (left: Key, right: Key) -> Bool {
    left.isIdentical(to: right)
      || left.withBytes { left in right.withBytes { left.isEqual(to: $0) } }
  }

  /// Whether both are the same words in memory, as two copies of a key are, and two short strings of
  /// the same bytes: then they are equal. Others may be too.
  @inline(__always)
  private func isIdentical(to other: Key) -> Bool {
    typealias Words = (UInt64, UInt64, UInt8)
    return unsafeBitCast(self, to: Words.self) == unsafeBitCast(other, to: Words.self)
  }

  /// The order of the UTF-8 bytes, as memcmp(3) has it.
  public static func < (left: Key, right: Key) -> Bool {
    left.withBytes { left in right.withBytes { left.isLess(than: $0) } }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

extension Key: CustomStringConvertible {
  /// The key itself.
  public var description: String { string }
}

extension String {
  /// The UTF-8 bytes; without a copy for native strings, which all strings on Linux are.
  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
    return Array(utf8).withUnsafeBufferPointer(body)
  }

  /// Equality by UTF-8 bytes.
  func hasSameBytes(as other: String) -> Bool {
    withBytes { left in other.withBytes { left.isEqual(to: $0) } }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether both hold the same bytes.
  @inline(__always)
  func isEqual(to other: Self) -> Bool {
    guard count == other.count else { return false }
    guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
    return memcmp(base, otherBase, count) == 0
  }

  /// The order of the bytes, as memcmp(3) has it; a beginning stands before the whole.
  @inline(__always)
  func isLess(than other: Self) -> Bool {
    guard let base = baseAddress, let otherBase = other.baseAddress else {
      return count < other.count
    }
    let order = memcmp(base, otherBase, Swift.min(count, other.count))
    return order != 0 ? order < 0 : count < other.count
  }
}
