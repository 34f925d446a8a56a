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
    left.string.withBytes { left in
      right.string.withBytes { right in
        guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else {
          return left.count < right.count
        }
        let order = memcmp(leftBase, rightBase, min(left.count, right.count))
        return order != 0 ? order < 0 : left.count < right.count
      }
    }
  }

  public func hash(into hasher: inout Hasher) {
    string.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}

extension Key {
  /// A hash of the bytes that is quick to compute, a few nanoseconds for a usual key. Only with a seed that
  /// nobody else knows is it one for tables of other people's keys.
  public func quickHash(seed: UInt64) -> UInt64 {
    string.withBytes { bytes in
      let bytes = UnsafeRawBufferPointer(bytes)
      var hash = seed ^ UInt64(truncatingIfNeeded: bytes.count)
      var index = 0
      while index &+ 8 <= bytes.count {
        hash = Self.mixed(hash ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        index &+= 8
      }
      var rest: UInt64 = 0
      while index < bytes.count {
        rest = rest << 8 | UInt64(bytes[index])
        index &+= 1
      }
      return Self.mixed(hash ^ rest)
    }
  }

  /// Every bit of the number has a part in the upper bits of the result, and those in the lower.
  @inline(__always)
  private static func mixed(_ number: UInt64) -> UInt64 {
    let product = number &* 0x9E37_79B9_7F4A_7C15
    return product ^ (product >> 32)
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
