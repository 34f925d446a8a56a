// Scans eight bytes at a time, because a list is mostly runs of plain text.

extension UnsafeBufferPointer<UInt8> {
  /// Returns the end of the run of blanks that begins at `start`.
  @inline(__always)
  func endOfBlanks(from start: Int) -> Int {
    var index = start
    while index < count, self[index].isBlank { index += 1 }
    return index
  }

  /// Returns the end of the run from `start` on that contains neither of the two bytes.
  /// - Parameter controls: whether the run may contain control characters (below 0x20).
  func endOfRun(from start: Int, without first: UInt8, _ second: UInt8, controls: Bool) -> Int {
    var index = start
    while index + 8 <= count {
      let eight = eight(at: index)
      var stops = eight.firstByte(equal: first) | eight.firstByte(equal: second)
      if !controls { stops |= eight.firstControl }
      if stops != 0 { return index + stops.trailingZeroBitCount / 8 }
      index += 8
    }
    while index < count {
      let byte = self[index]
      if byte == first || byte == second || (!controls && byte < 0x20) { break }
      index += 1
    }
    return index
  }

  /// Whether the test is true for all bytes. The test gets eight bytes at a time; fewer than eight
  /// bytes are filled up with blanks.
  @inline(__always)
  func isEveryEight(_ test: (UInt64) -> Bool) -> Bool {
    guard count >= 8 else {
      var rest = UInt8(ascii: " ").repeated
      withUnsafeMutableBytes(of: &rest) { $0.copyMemory(from: UnsafeRawBufferPointer(self)) }
      return test(rest)
    }
    var index = 0
    while index &+ 8 < count {
      guard test(eight(at: index)) else { return false }
      index &+= 8
    }
    // The last eight bytes can overlap the eight before.
    return test(eight(at: count &- 8))
  }

  /// Returns the number of newlines before the index `end`.
  func newlines(before end: Int) -> Int {
    var (index, lines) = (0, 0)
    while index + 8 <= end {
      lines += eight(at: index).bytes(equal: UInt8(ascii: "\n")).nonzeroBitCount
      index += 8
    }
    while index < end {
      lines += self[index] == UInt8(ascii: "\n") ? 1 : 0
      index += 1
    }
    return lines
  }
}

extension UInt8 {
  /// A number whose eight bytes are all this byte.
  @inline(__always) var repeated: UInt64 { UInt64(self) &* 0x0101_0101_0101_0101 }
}

extension UInt64 {
  /// The highest bit of every byte that equals `byte`, and no other bit.
  @inline(__always) func bytes(equal byte: UInt8) -> UInt64 { (self ^ byte.repeated).zeroBytes }

  /// The highest bit of every byte below 0x20, and no other bit.
  @inline(__always) var controls: UInt64 { (self & UInt8(0xE0).repeated).zeroBytes }

  /// The highest bit of the first byte that equals `byte`; 0 if none does. The bits of later bytes
  /// have no meaning.
  @inline(__always) func firstByte(equal byte: UInt8) -> UInt64 {
    let difference = self ^ byte.repeated
    return (difference &- UInt8(1).repeated) & ~difference & UInt8(0x80).repeated
  }

  /// The highest bit of the first byte below 0x20; 0 if there is none. The bits of later bytes have
  /// no meaning.
  @inline(__always) var firstControl: UInt64 {
    (self &- UInt8(0x20).repeated) & ~self & UInt8(0x80).repeated
  }

  /// The highest bit of every byte that is 0, and no other bit.
  @inline(__always) var zeroBytes: UInt64 {
    let low: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    return ~(((self & low) &+ low) | self | low)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Returns the eight bytes at the index as a number, the first of them lowest.
  @inline(__always)
  func eight(at index: Int) -> UInt64 {
    UnsafeRawBufferPointer(self).loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
  }
}

extension UInt64 {
  /// Whether the eight bytes begin with the text, which must have 1 to 8 bytes. The compiler turns
  /// this into a comparison with a constant.
  @inline(__always)
  func begins(with text: StaticString) -> Bool {
    var (word, index) = (UInt64(0), 0)
    while index < text.utf8CodeUnitCount {
      word |= UInt64(text.utf8Start[index]) << UInt64(8 &* index)
      index &+= 1
    }
    return (self ^ word) << UInt64(64 &- 8 &* text.utf8CodeUnitCount) == 0
  }
}
