/// FNV-1a, 64 bits: the same in every run, for names and inode numbers; no
/// protection against somebody who looks for collisions.
public enum StableHash {
  /// The hash of the bytes.
  public static func of(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  /// The hash as 16 hexadecimal digits.
  public static func text(of bytes: some Sequence<UInt8>) -> String {
    let digits = String(of(bytes), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
