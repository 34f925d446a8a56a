/// Reads binary property lists (`bplist00`).
///
/// An object that is referred to several times is read once and shared; objects that contain
/// themselves, offsets outside of the list, and lists that would unfold to more than
/// `Limits.count` values are refused. Cost: O(size).
struct BinaryReader {
  private let bytes: UnsafeRawBufferPointer
  private let limits: Limits
  private let offsetSize: Int
  private let referenceSize: Int
  private let offsetTable: Int
  private let objectCount: Int
  private let top: Int
  /// What was read already, and how many values it unfolds to; 0 while it is being read.
  private var values: [Value?]
  private var weights: [Int]
  /// How many levels of containers each object that was read has.
  private var heights: [Int]

  /// How large a value is when everything that is shared is unfolded. Strings and data count by
  /// their bytes, too, so that no small list can stand for a huge value.
  private struct Size {
    var weight = 1
    var height = 0
  }

  /// Reads the whole list.
  static func read(_ bytes: [UInt8], limits: Limits = .standard) throws(FormatError) -> Value {
    var outcome: Result<Value, FormatError>?
    bytes.withUnsafeBytes { buffer in
      do throws(FormatError) {
        var reader = try BinaryReader(buffer, limits: limits)
        outcome = .success(try reader.object(reader.top, depth: 0))
      } catch {
        outcome = .failure(error)
      }
    }
    guard let outcome else { throw FormatError(.binary, "empty") }
    return try outcome.get()
  }

  /// Whether bytes end in a trailer that fits their size: a quick look before a whole read.
  static func hasTrailer(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { buffer in
      (try? BinaryReader(buffer, limits: .standard)) != nil
    }
  }

  private init(_ bytes: UnsafeRawBufferPointer, limits: Limits) throws(FormatError) {
    func failure(_ offset: Int, _ reason: String) -> FormatError {
      FormatError(.binary, offset: offset, reason)
    }
    guard bytes.count >= 8 + 1 + 32, bytes.starts(with: "bplist0".utf8) else {
      throw failure(0, "expected a header 'bplist0', an object and a trailer")
    }
    let trailer = bytes.count - 32
    func number(_ offset: Int) -> UInt64 {
      (0..<8).reduce(0) { $0 << 8 | UInt64(bytes[trailer + offset + $1]) }
    }
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    let (count, top, table) = (number(8), number(16), number(24))
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
      throw failure(trailer + 6, "sizes of offsets and references must be 1 to 8")
    }
    guard count >= 1, count <= UInt64(trailer), top < count else {
      throw failure(trailer + 8, "expected 1 to \(trailer) objects and a top object among them")
    }
    guard table >= 9, table <= UInt64(trailer),
      UInt64(trailer) - table >= count * UInt64(offsetSize)
    else { throw failure(trailer + 24, "the offset table does not fit") }
    self.bytes = bytes
    self.limits = limits
    self.top = Int(top)
    offsetTable = Int(table)
    objectCount = Int(count)
    values = Array(repeating: nil, count: objectCount)
    weights = Array(repeating: -1, count: objectCount)
    heights = Array(repeating: 0, count: objectCount)
  }

  private func failure(_ offset: Int, _ reason: String) -> FormatError {
    FormatError(.binary, offset: offset, reason)
  }

  /// A big-endian number that lies inside of the list.
  @inline(__always)
  private func number(at offset: Int, size: Int) -> UInt64 {
    var result: UInt64 = 0
    for index in offset..<offset + size { result = result << 8 | UInt64(bytes[index]) }
    return result
  }

  private mutating func object(_ reference: Int, depth: Int) throws(FormatError) -> Value {
    if let value = values[reference] {
      guard depth + heights[reference] <= limits.depth else {
        throw failure(offsetTable, "nested deeper than \(limits.depth)")
      }
      return value
    }
    let position = offsetTable + reference * offsetSize
    let start = number(at: position, size: offsetSize)
    guard start >= 8, start < UInt64(offsetTable) else {
      throw failure(position, "object \(reference) lies outside of the list")
    }
    let offset = Int(start)
    guard weights[reference] != 0 else { throw failure(offset, "an object that contains itself") }
    guard depth <= limits.depth else { throw failure(offset, "nested deeper than \(limits.depth)") }
    weights[reference] = 0
    var size = Size()
    let value = try decode(at: offset, depth: depth, size: &size)
    values[reference] = value
    weights[reference] = size.weight
    heights[reference] = size.height
    return value
  }

  private mutating func decode(
    at offset: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    let marker = bytes[offset]
    let low = Int(marker & 15)
    switch marker >> 4 {
    case 0x0 where low == 8 || low == 9: return .boolean(low == 9)
    case 0x1: return try integer(at: offset, exponent: low)
    case 0x2: return try real(at: offset, exponent: low)
    case 0x3 where low == 3:
      try require(offset, 9)
      let seconds = Double(bitPattern: number(at: offset + 1, size: 8))
      return .date(AbsoluteTime(seconds: seconds))
    case 0x4:
      let (start, count) = try extent(at: offset, unit: 1)
      size.weight += count / 64
      return .data([UInt8](bytes[start..<start + count]))
    case 0x5, 0x7:
      let (start, count) = try extent(at: offset, unit: 1)
      size.weight += count / 64
      return .string(try string(start, count, isASCII: marker >> 4 == 5))
    case 0x6:
      let (start, count) = try extent(at: offset, unit: 2)
      return .string(try utf16(start, count))
    case 0x8 where low < 8:
      try require(offset, low + 2)
      return .uid(number(at: offset + 1, size: low + 1))
    case 0xA:
      let (start, count) = try extent(at: offset, unit: referenceSize)
      return .array(try array(start, count, depth: depth, size: &size))
    case 0xD:
      let (start, count) = try extent(at: offset, unit: 2 * referenceSize)
      return .dictionary(try dictionary(start, count, depth: depth, size: &size))
    default: throw failure(offset, "unknown object type 0x\(String(marker, radix: 16))")
    }
  }

  private func require(_ offset: Int, _ size: Int) throws(FormatError) {
    guard size <= offsetTable - offset else { throw failure(offset, "the object does not fit") }
  }

  /// Where the object's contents begin, and how many units there are; checked against the list.
  private func extent(at offset: Int, unit: Int) throws(FormatError) -> (start: Int, count: Int) {
    var start = offset + 1
    var count = UInt64(bytes[offset] & 15)
    if count == 15 {
      guard start < offsetTable, bytes[start] >> 4 == 1, bytes[start] & 15 <= 3 else {
        throw failure(start, "expected a count")
      }
      let size = 1 << Int(bytes[start] & 15)
      try require(start, 1 + size)
      count = number(at: start + 1, size: size)
      start += 1 + size
    }
    guard count <= UInt64(offsetTable - start) / UInt64(unit) else {
      throw failure(offset, "an object of \(count) items does not fit")
    }
    return (start, Int(count))
  }
}

// MARK: - Scalars

extension BinaryReader {
  private func integer(at offset: Int, exponent: Int) throws(FormatError) -> Value {
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

  private func real(at offset: Int, exponent: Int) throws(FormatError) -> Value {
    guard exponent == 2 || exponent == 3 else {
      throw failure(offset, "a real of \(1 << exponent) bytes")
    }
    try require(offset, 1 + 1 << exponent)
    let bits = number(at: offset + 1, size: 1 << exponent)
    return exponent == 3
      ? .real(Double(bitPattern: bits)) : .real(Double(Float(bitPattern: UInt32(bits))))
  }

  private func string(_ start: Int, _ count: Int, isASCII: Bool) throws(FormatError) -> String {
    let slice = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    if isASCII, slice.contains(where: { $0 >= 0x80 }) {
      throw failure(start, "an ASCII string with other bytes")
    }
    guard let text = String(validating: slice, as: UTF8.self) else {
      throw failure(start, "a string that is not UTF-8")
    }
    return text
  }

  private func utf16(_ start: Int, _ count: Int) throws(FormatError) -> String {
    let units = (0..<count).lazy.map { index in
      UInt16(bytes[start + 2 * index]) << 8 | UInt16(bytes[start + 2 * index + 1])
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw failure(start, "a string that is not UTF-16")
    }
    return text
  }
}

// MARK: - Containers

extension BinaryReader {
  private mutating func item(
    at position: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    let reference = number(at: position, size: referenceSize)
    guard reference < UInt64(objectCount) else {
      throw failure(position, "a reference to object \(reference) of \(objectCount)")
    }
    let value = try object(Int(reference), depth: depth + 1)
    size.weight += weights[Int(reference)]
    size.height = max(size.height, heights[Int(reference)] + 1)
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
  ) throws(FormatError) -> [Key: Value] {
    var items = [Key: Value](minimumCapacity: count)
    for index in 0..<count {
      let keyPosition = start + index * referenceSize
      let key = try item(at: keyPosition, depth: depth, size: &size)
      guard case .string(let text) = key else {
        throw failure(keyPosition, "a key that is no string")
      }
      let valuePosition = start + (count + index) * referenceSize
      items[Key(text)] = try item(at: valuePosition, depth: depth, size: &size)
    }
    return items
  }
}
