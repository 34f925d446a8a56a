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
    let raw = UnsafeRawBufferPointer(self)
    var index = start
    while index + 8 <= count {
      let eight = raw.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
      var stops = (eight ^ first.repeated).zeroBytes | (eight ^ second.repeated).zeroBytes
      if !controls { stops |= (eight & 0xE0E0_E0E0_E0E0_E0E0).zeroBytes }
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

  /// How many newlines there are before the index.
  func newlines(before end: Int) -> Int {
    let raw = UnsafeRawBufferPointer(self)
    var (index, lines) = (0, 0)
    while index + 8 <= end {
      let eight = raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      lines += (eight ^ UInt8(ascii: "\n").repeated).zeroBytes.nonzeroBitCount
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
  @inline(__always) fileprivate var repeated: UInt64 { UInt64(self) &* 0x0101_0101_0101_0101 }
}

extension UInt64 {
  /// The highest bit of every byte that is 0, and no other.
  @inline(__always) fileprivate var zeroBytes: UInt64 {
    let low: UInt64 = 0x7F7F_7F7F_7F7F_7F7F
    return ~(((self & low) &+ low) | self | low)
  }
}
