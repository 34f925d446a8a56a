/// A keyed hash of 128 bits (SipHash-2-4-128): without the key nobody can tell from it what was
/// hashed, or find two inputs with the same hash.
public struct Digest: Hashable, Sendable {
  let low, high: UInt64
}

extension Digest {
  /// The 16 bytes.
  package var bytes: [UInt8] {
    [low, high].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
  }

  /// Creates a digest from its 16 bytes; nil for another number of bytes.
  package init?(_ bytes: [UInt8]) {
    if bytes.count != 16 { return nil }
    self.init(low: Self.word(bytes, 0), high: Self.word(bytes, 8))
  }

  /// The little-endian number at the offset. Missing bytes are zero.
  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    bytes[offset...].prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Hashes the bytes.
  /// - Parameter key: 16 bytes.
  package init(of bytes: [UInt8], key: Digest) {
    var v0 = 0x736F_6D65_7073_6575 ^ key.low
    var v1 = 0x646F_7261_6E64_6F6D ^ key.high ^ 0xEE
    var v2 = 0x6C79_6765_6E65_7261 ^ key.low
    var v3 = 0x7465_6462_7974_6573 ^ key.high
    func turn(_ word: inout UInt64, _ count: UInt64) { word = word << count | word >> (64 - count) }
    func mix(_ times: Int) {
      for _ in 0..<times {
        v0 &+= v1
        v2 &+= v3
        turn(&v1, 13)
        turn(&v3, 16)
        v1 ^= v0
        v3 ^= v2
        turn(&v0, 32)
        v2 &+= v1
        v0 &+= v3
        turn(&v1, 17)
        turn(&v3, 21)
        v1 ^= v2
        v3 ^= v0
        turn(&v2, 32)
      }
    }
    // The last word has what is left, and the number of bytes.
    let length = UInt64(truncatingIfNeeded: bytes.count) << 56
    for offset in stride(from: 0, through: bytes.count, by: 8) {
      let word = Self.word(bytes, offset) | (bytes.count - offset < 8 ? length : 0)
      v3 ^= word
      mix(2)
      v0 ^= word
    }
    func finish() -> UInt64 {
      mix(4)
      return v0 ^ v1 ^ v2 ^ v3
    }
    v2 ^= 0xEE
    let low = finish()
    v1 ^= 0xDD
    self.init(low: low, high: finish())
  }
}
