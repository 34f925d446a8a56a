/// A keyed hash of 128 bits (SipHash-2-4-128): without the key nobody can tell from it what was
/// hashed, or find two inputs with the same hash.
public struct Digest: Hashable, Sendable {
  let low, high: UInt64

  /// The 16 bytes.
  package var bytes: [UInt8] {
    [low, high].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  /// Creates a digest from its 16 bytes; nil for another number of bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    low = Self.word(bytes, 0)
    high = Self.word(bytes, 8)
  }

  /// The little-endian number at the offset. Missing bytes are zero.
  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<8 where offset + index < bytes.count {
      word |= UInt64(bytes[offset + index]) << (8 * index)
    }
    return word
  }

  /// Hashes the bytes.
  /// - Parameter key: 16 bytes.
  package init(of bytes: [UInt8], key: Digest) {
    var state = State(key)
    let whole = bytes.count / 8 * 8
    for offset in stride(from: 0, to: whole, by: 8) { state.absorb(Self.word(bytes, offset)) }
    let length = UInt64(truncatingIfNeeded: bytes.count) << 56
    state.absorb(Self.word(Array(bytes[whole...]), 0) | length)
    state.v2 ^= 0xEE
    low = state.finish()
    state.v1 ^= 0xDD
    high = state.finish()
  }

  private struct State {
    var v0, v1, v2, v3: UInt64

    init(_ key: Digest) {
      v0 = 0x736F_6D65_7073_6575 ^ key.low
      v1 = 0x646F_7261_6E64_6F6D ^ key.high ^ 0xEE
      v2 = 0x6C79_6765_6E65_7261 ^ key.low
      v3 = 0x7465_6462_7974_6573 ^ key.high
    }

    private static func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 {
      word << count | word >> (64 - count)
    }

    private mutating func mix() {
      v0 &+= v1
      v1 = Self.rotated(v1, 13) ^ v0
      v0 = Self.rotated(v0, 32)
      v2 &+= v3
      v3 = Self.rotated(v3, 16) ^ v2
      v0 &+= v3
      v3 = Self.rotated(v3, 21) ^ v0
      v2 &+= v1
      v1 = Self.rotated(v1, 17) ^ v2
      v2 = Self.rotated(v2, 32)
    }

    mutating func absorb(_ word: UInt64) {
      v3 ^= word
      mix()
      mix()
      v0 ^= word
    }

    mutating func finish() -> UInt64 {
      for _ in 0..<4 { mix() }
      return v0 ^ v1 ^ v2 ^ v3
    }
  }
}
