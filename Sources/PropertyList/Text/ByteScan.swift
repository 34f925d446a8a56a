// Looking at many bytes at once: a list is mostly runs of plain text.

extension UnsafeBufferPointer<UInt8> {
  /// The end of the blanks that stand from `start` on.
  @inline(__always)
  func endOfBlanks(from start: Int) -> Int {
    var index = start
    while index < count, self[index].isBlank { index += 1 }
    return index
  }

  /// The end of the run from `start` on that holds neither of the bytes and, unless they are
  /// allowed, no control characters (below 0x20).
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

  /// Whether the test holds for all bytes, eight at a time; blanks fill up eight where there are fewer.
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
    // The last eight overlap those before.
    return test(eight(at: count &- 8))
  }

  /// How many newlines there are before the index.
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
  /// Eight times the byte.
  @inline(__always) var repeated: UInt64 { UInt64(self) &* 0x0101_0101_0101_0101 }
}

extension UInt64 {
  /// The highest bit of every byte that is the other, and no other bit.
  @inline(__always) func bytes(equal byte: UInt8) -> UInt64 { (self ^ byte.repeated).zeroBytes }

  /// The highest bit of every byte below 0x20.
  @inline(__always) var controls: UInt64 { (self & UInt8(0xE0).repeated).zeroBytes }

  /// The highest bit of the first byte that is the other, if any is; bits of later bytes mean nothing.
  @inline(__always) func firstByte(equal byte: UInt8) -> UInt64 {
    let difference = self ^ byte.repeated
    return (difference &- UInt8(1).repeated) & ~difference & UInt8(0x80).repeated
  }

  /// The highest bit of the first byte below 0x20, if any is; bits of later bytes mean nothing.
  @inline(__always) var firstControl: UInt64 {
    (self &- UInt8(0x20).repeated) & ~self & UInt8(0x80).repeated
  }

  /// The highest bit of every byte that is 0, and no other.
  @inline(__always) var zeroBytes: UInt64 {
    let low: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    return ~(((self & low) &+ low) | self | low)
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// The eight bytes at the index, the first of them lowest.
  @inline(__always)
  func eight(at index: Int) -> UInt64 {
    UnsafeRawBufferPointer(self).loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
  }
}

extension UInt64 {
  /// Whether the eight bytes begin with the text, which is no longer; a comparison with a constant.
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
