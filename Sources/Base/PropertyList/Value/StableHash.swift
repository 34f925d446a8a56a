/// The 64-bit FNV-1a hash, for names and inode numbers. It is the same in every run, and so it does
/// not protect against input that is chosen to collide.
public enum StableHash {
  /// Returns the hash of the bytes.
  @inlinable
  public static func of(_ bytes: some Sequence<UInt8>) -> UInt64 {
    of(bytes, after: 0xCBF2_9CE4_8422_2325)
  }

  /// Returns the hash of the bytes behind others, of which `hash` is the hash.
  @inlinable
  public static func of(_ bytes: some Sequence<UInt8>, after hash: UInt64) -> UInt64 {
    var hash = hash
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
  }

  /// Returns the hash of the bytes as 16 hexadecimal digits.
  @inlinable
  public static func text(of bytes: some Sequence<UInt8>) -> String {
    let digits = String(of(bytes), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
