/// CRC-32C (Castagnoli), eight bytes at a time.
package enum Checksum {
  /// Table k gives what a byte contributes to the sum when k more bytes of the eight follow it.
  private static let tables: [UInt32] = {
    let first = (0..<256).map { (index: Int) -> UInt32 in
      var value = UInt32(index)
      for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0x82F6_3B78 : value >> 1 }
      return value
    }
    var all = first
    for level in 1..<8 {
      for index in 0..<256 {
        let previous = all[(level - 1) * 256 + index]
        all.append((previous >> 8) ^ first[Int(previous & 0xFF)])
      }
    }
    return all
  }()

  /// The checksum of the bytes.
  package static func crc32c(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.withUnsafeBytes(crc32c)
  }

  /// The checksum of the bytes.
  package static func crc32c(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    tables.withUnsafeBufferPointer { ~sum(bytes, $0) }
  }

  private static func sum(
    _ bytes: UnsafeRawBufferPointer, _ tables: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    var sum: UInt32 = ~0
    var index = 0
    while index + 8 <= bytes.count {
      let eight = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
      let mixed = eight ^ UInt64(sum)
      sum = 0
      for place in 0..<8 {
        let byte = Int(truncatingIfNeeded: mixed >> UInt64(8 * place)) & 0xFF
        sum ^= tables[(7 - place) * 256 + byte]
      }
      index += 8
    }
    for byte in bytes[index...] {
      let mixed = UInt8(truncatingIfNeeded: sum) ^ byte
      sum = (sum >> 8) ^ tables[Int(mixed)]
    }
    return sum
  }
}
