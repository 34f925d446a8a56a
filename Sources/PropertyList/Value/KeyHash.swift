// How keys are hashed in our own tables.

extension Key {
  /// A hash of the bytes that is quick to compute, a few nanoseconds for a usual key. Every bit of it
  /// depends on every byte. With a seed that nobody else knows nobody can choose keys that collide.
  public func quickHash(seed: UInt64) -> UInt64 {
    withBytes { KeyHash.of($0, seed: seed) }
  }
}

/// Folded 128-bit products of sixteen bytes at a time. Both factors hold bits of the seed, so that no
/// key makes one of them zero or cancels what another did without knowing the seed.
enum KeyHash {
  /// Of this process; whoever writes a list must not choose which keys collide.
  private static let seed = UInt64.random(in: .min ... .max)

  /// The hash that the dictionaries of this process use.
  @inline(__always)
  static func of(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 { of(bytes, seed: seed) }

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

  /// The last sixteen bytes, or of a shorter key all.
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
