// The objects of a binary list, each at an offset that was checked.

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
      ? .real(Double(bitPattern: bits)) : .real(Double(Float(bitPattern: UInt32(bits))))
  }

  func string(_ start: Int, _ count: Int, isASCII: Bool) throws(FormatError) -> String {
    let slice = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    let utf8 = slice.assumingMemoryBound(to: UInt8.self)
    if UTF8Validator.isASCII(utf8) { return String(valid: utf8) }
    if isASCII { throw failure(start, "an ASCII string with other bytes") }
    var validator = UTF8Validator()
    guard validator.feed(utf8), validator.isComplete else {
      throw failure(start, "a string that is not UTF-8")
    }
    return String(valid: utf8)
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
  mutating func container(
    at offset: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    if bytes[offset] >> 4 == 0xA {
      let (start, count) = try extent(at: offset, unit: referenceSize)
      return .array(try array(start, count, depth: depth, size: &size))
    }
    let (start, count) = try extent(at: offset, unit: 2 * referenceSize)
    return .dictionary(try dictionary(start, count, depth: depth, size: &size))
  }

  private mutating func item(
    at position: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    let reference = number(at: position, size: referenceSize)
    guard reference < UInt64(objectCount) else {
      throw failure(position, "a reference to object \(reference) of \(objectCount)")
    }
    var own = Size()
    let value = try object(Int(reference), depth: depth + 1, size: &own)
    size.weight += own.weight
    size.height = max(size.height, own.height + 1)
    guard size.weight <= limits.count else {
      throw failure(position, "more than \(limits.count) values")
    }
    return value
  }

  private mutating func array(
    _ start: Int, _ count: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> [Value] {
    var items: [Value] = []
    items.reserveCapacity(count)
    for index in 0..<count {
      items.append(try item(at: start + index * referenceSize, depth: depth, size: &size))
    }
    return items
  }

  private mutating func dictionary(
    _ start: Int, _ count: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> ValueDictionary {
    var pairs: [ValueDictionary.Element] = []
    pairs.reserveCapacity(count)
    for index in 0..<count {
      let keyPosition = start + index * referenceSize
      let key = try item(at: keyPosition, depth: depth, size: &size)
      guard case .string(let text) = key else {
        throw failure(keyPosition, "a key that is no string")
      }
      let valuePosition = start + (count + index) * referenceSize
      pairs.append((Key(text), try item(at: valuePosition, depth: depth, size: &size)))
    }
    return ValueDictionary(pairs)
  }
}
