// Reads the objects of a binary list, each at an offset that was checked.

extension BinaryReader {
  func integer(at offset: Int, exponent: Int) throws(FormatError) -> Value {
    guard exponent <= 4 else { throw failure(offset, "an integer of \(1 << exponent) bytes") }
    try require(offset, 1 + 1 << exponent)
    switch exponent {
    case 3: return .integer(WideInteger(Int64(bitPattern: number(at: offset + 1, size: 8))))
    case 4:
      let (high, low) = (number(at: offset + 1, size: 8), number(at: offset + 9, size: 8))
      if high == 0 { return .integer(WideInteger(low)) }
      guard high == .max, low >> 63 == 1 else {
        throw failure(offset, "an integer beyond 64 bits")
      }
      return .integer(WideInteger(Int64(bitPattern: low)))
    default: return .integer(WideInteger(number(at: offset + 1, size: 1 << exponent)))
    }
  }

  func real(at offset: Int, exponent: Int) throws(FormatError) -> Value {
    guard exponent == 2 || exponent == 3 else {
      throw failure(offset, "a real of \(1 << exponent) bytes")
    }
    try require(offset, 1 + 1 << exponent)
    let bits = number(at: offset + 1, size: 1 << exponent)
    return exponent == 3
      ? .real(Double(bitPattern: bits))
      : .single(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
  }

  func string(_ start: Int, _ count: Int, isASCII: Bool) throws(FormatError) -> String {
    let slice = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    let utf8 = slice.assumingMemoryBound(to: UInt8.self)
    if UTF8Validator.isASCII(utf8) { return String(valid: utf8, isASCII: true) }
    if isASCII { throw failure(start, "an ASCII string with other bytes") }
    var validator = UTF8Validator()
    guard validator.feed(utf8), validator.isComplete else {
      throw failure(start, "a string that is not UTF-8")
    }
    return String(valid: utf8, isASCII: false)
  }

  func utf16(_ start: Int, _ count: Int) throws(FormatError) -> String {
    let units = (0..<count).map { UInt16(number(at: start + 2 * $0, size: 2)) }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw failure(start, "a string that is not UTF-16")
    }
    return text
  }
}

extension BinaryReader {
  mutating func container(at offset: Int, depth: Int) throws(FormatError) -> Value {
    guard depth < limits.depth else {
      throw failure(offset, "nested deeper than \(limits.depth)")
    }
    deepest = max(deepest, depth + 1)
    if bytes[offset] >> 4 == 0xA {
      let (start, count) = try extent(at: offset, unit: referenceSize)
      try open(count, at: offset)
      defer { close(count) }
      return .array(try array(start, count, depth: depth + 1))
    }
    let (start, count) = try extent(at: offset, unit: 2 * referenceSize)
    try open(2 * count, at: offset)
    defer { close(2 * count) }
    return .dictionary(try dictionary(start, count, depth: depth + 1))
  }

  /// Reads the object that the reference at the position refers to.
  @inline(__always)
  private mutating func item(at position: Int, depth: Int) throws(FormatError) -> Value {
    try object(try reference(at: position), depth: depth)
  }

  @inline(__always)
  private func reference(at position: Int) throws(FormatError) -> Int {
    let reference = number(at: position, size: referenceSize)
    guard reference < UInt64(objectCount) else {
      throw failure(position, "a reference to object \(reference) of \(objectCount)")
    }
    return Int(reference)
  }

  /// Reads the string that the reference at the position refers to, as a key. An ASCII string, as
  /// nearly all keys are, is copied directly to the document's block of keys.
  @inline(__always)
  private mutating func key(at position: Int, depth: Int) throws(FormatError) -> Key {
    let reference = try reference(at: position)
    let offset = try offset(of: reference)
    guard bytes[offset] & 0xF0 == 0x50 else {
      guard case .string(let text) = try object(reference, depth: depth) else {
        throw failure(position, "a key that is not a string")
      }
      return Key(text)
    }
    return try plainKey(reference, at: offset)
  }

  private mutating func array(
    _ start: Int, _ count: Int, depth: Int
  ) throws(FormatError) -> [Value] {
    try [Value](capacity: count) { items throws(FormatError) in
      for index in 0..<count {
        items.append(try item(at: start + index * referenceSize, depth: depth))
      }
    }
  }

  private mutating func dictionary(
    _ start: Int, _ count: Int, depth: Int
  ) throws(FormatError) -> ValueDictionary {
    try ValueDictionary(count: count) { index throws(FormatError) in
      let position = start + index * referenceSize
      let key = try key(at: position, depth: depth)
      return (key, try item(at: position + count * referenceSize, depth: depth))
    }
  }
}
