import Glibc

/// The key of a dictionary and of a preference: a string that is equal to another when their
/// UTF-8 bytes are.
///
/// Swift's `String` compares by canonical equivalence, so that a composed and a decomposed "é"
/// would be one key; in a property list and as file names they are two.
public struct Key: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
  /// The key as text.
  public let string: String

  /// A key of any text, the empty one included.
  public init(_ string: String) { self.string = string }

  /// A key of any text.
  public init(stringLiteral value: String) { string = value }

  public static func == (left: Key, right: Key) -> Bool {
    left.isIdentical(to: right) || left.string.hasSameBytes(as: right.string)
  }

  /// Whether both are the same words in memory, as two copies of a string are, and two short strings of
  /// the same bytes: then they are equal. Others may be too.
  @inline(__always)
  private func isIdentical(to other: Key) -> Bool {
    let (one, two) = (
      unsafeBitCast(string, to: (UInt64, UInt64).self),
      unsafeBitCast(other.string, to: (UInt64, UInt64).self)
    )
    return one == two
  }

  /// The order of the UTF-8 bytes, as memcmp(3) has it.
  public static func < (left: Key, right: Key) -> Bool {
    left.string.withBytes { left in right.string.withBytes { left.isLess(than: $0) } }
  }

  public func hash(into hasher: inout Hasher) {
    string.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
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
    withBytes { left in
      other.withBytes { right in
        guard left.count == right.count else { return false }
        guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else {
          return true
        }
        return memcmp(leftBase, rightBase, left.count) == 0
      }
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
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
