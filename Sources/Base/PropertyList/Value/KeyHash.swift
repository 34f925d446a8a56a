// The hash of keys in this project's own tables.

/// A hash of bytes: it multiplies sixteen bytes at a time and folds the 128-bit product. Both
/// factors contain bits of the seed. Without the seed, no key can be made that turns a factor into
/// zero or cancels an earlier step.
enum KeyHash {
  /// The random seed of this process. Lists come from outside, and their author must not be able to
  /// choose keys that collide.
  private static let seed = UInt64.random(in: .min ... .max)

  /// Returns the hash that the tables of this process use.
  @inline(__always)
  static func of(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt32 {
    UInt32(truncatingIfNeeded: of(bytes, seed: seed))
  }

  /// Returns a hash every bit of which depends on every byte. Cost: O(bytes).
  static func of(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
    let other = ~seed &* 0x9E37_79B9_7F4A_7C15
    var state = seed
    var index = 0
    while index &+ 16 < bytes.count {
      state = folded(bytes.eight(at: index) ^ other, bytes.eight(at: index &+ 8) ^ state)
      index &+= 16
    }
    let (first, last) = ends(of: bytes)
    return folded(other ^ UInt64(bytes.count), folded(first ^ other, last ^ state))
  }

  /// Returns different numbers for different numbers. Every bit depends on most bits.
  @inline(__always)
  static func mixed(_ number: UInt64) -> UInt64 {
    let product = (number ^ number >> 32) &* 0x9E37_79B9_7F4A_7C15
    return product ^ product >> 32
  }

  /// Returns the last sixteen bytes, or all bytes of a shorter key.
  @inline(__always)
  private static func ends(of bytes: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64) {
    let count = bytes.count
    if count >= 16 { return (bytes.eight(at: count &- 16), bytes.eight(at: count &- 8)) }
    if count >= 8 { return (bytes.eight(at: 0), bytes.eight(at: count &- 8)) }
    if count >= 4 {
      let raw = UnsafeRawBufferPointer(bytes)
      return (
        UInt64(raw.loadUnaligned(fromByteOffset: 0, as: UInt32.self)),
        UInt64(raw.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      )
    }
    guard count > 0 else { return (0, 0) }
    return (UInt64(bytes[0]) << 8 | UInt64(bytes[count / 2]), UInt64(bytes[count &- 1]))
  }

  @inline(__always)
  private static func folded(_ one: UInt64, _ two: UInt64) -> UInt64 {
    let product = one.multipliedFullWidth(by: two)
    return product.high ^ product.low
  }
}
