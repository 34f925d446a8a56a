/// Reads binary property lists (`bplist00`).
///
/// An object that is referred to several times is read once and shared; objects that contain
/// themselves, offsets outside of the list, and lists that would unfold to more than
/// `Limits.count` values are refused. Cost: O(size).
struct BinaryReader {
  let bytes: UnsafeRawBufferPointer
  let limits: Limits
  let offsetSize: Int
  let referenceSize: Int
  let offsetTable: Int
  let objectCount: Int
  let top: Int
  /// What became of each object that can be large; the scalars and short strings stay `unread`.
  var states: [State]
  /// The objects that are referred to several times.
  var shared: [Shared] = []

  /// How large a value is when everything that is shared is unfolded. Strings and data count by
  /// their bytes, too, so that no small list can stand for a huge value.
  struct Size {
    var weight = 1
    var height = 0
  }

  /// An object is kept when it is met for the second time: most are met once, and what is kept costs
  /// a reference. So an object is read twice at most.
  enum State: Equatable {
    case unread, beingRead, read
    case shared(UInt32)
  }

  /// An object that is referred to several times, and its size.
  struct Shared {
    var value: Value
    var size: Size
  }

  /// Reads the whole list.
  static func read(_ bytes: [UInt8], limits: Limits = .standard) throws(FormatError) -> Value {
    var outcome: Result<Value, FormatError>?
    bytes.withUnsafeBytes { buffer in
      do throws(FormatError) {
        var reader = try BinaryReader(buffer, limits: limits)
        var size = Size()
        outcome = .success(try reader.object(reader.top, depth: 0, size: &size))
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

  init(_ bytes: UnsafeRawBufferPointer, limits: Limits) throws(FormatError) {
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
    states = Array(repeating: .unread, count: objectCount)
  }

  func failure(_ offset: Int, _ reason: String) -> FormatError {
    FormatError(.binary, offset: offset, reason)
  }

  /// A big-endian number that lies inside of the list.
  @inline(__always)
  func number(at offset: Int, size: Int) -> UInt64 {
    switch size {
    case 1: return UInt64(bytes[offset])
    case 2:
      return UInt64(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self)))
    case 4:
      return UInt64(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    case 8: return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    default: return bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  /// Where the object with the number begins.
  @inline(__always)
  func offset(of reference: Int) throws(FormatError) -> Int {
    let position = offsetTable + reference * offsetSize
    let start = number(at: position, size: offsetSize)
    guard start >= 8, start < UInt64(offsetTable) else {
      throw failure(position, "object \(reference) lies outside of the list")
    }
    return Int(start)
  }

  /// The object with the number, and its size.
  mutating func object(
    _ reference: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    let offset = try offset(of: reference)
    // To read a scalar or a short string again is cheaper than to keep it.
    if bytes[offset] < 0x40 { return try scalar(at: offset) }
    if bytes[offset] >> 4 == 0x5, bytes[offset] & 15 != 15 {
      let (start, count) = try extent(at: offset, unit: 1)
      return .string(try string(start, count, isASCII: true))
    }
    let state = states[reference]
    if case .shared(let index) = state { return try known(Int(index), depth: depth, size: &size) }
    guard state != .beingRead else { throw failure(offset, "an object that contains itself") }
    states[reference] = .beingRead
    let value = try decode(at: offset, depth: depth, size: &size)
    if state == .unread {
      states[reference] = .read
    } else {
      states[reference] = .shared(UInt32(shared.count))
      shared.append(Shared(value: value, size: size))
    }
    return value
  }

  private func known(
    _ index: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    size = shared[index].size
    guard depth + size.height <= limits.depth else {
      throw failure(offsetTable, "nested deeper than \(limits.depth)")
    }
    return shared[index].value
  }

  private func scalar(at offset: Int) throws(FormatError) -> Value {
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
    default: throw unknown(offset)
    }
  }

  private mutating func decode(
    at offset: Int, depth: Int, size: inout Size
  ) throws(FormatError) -> Value {
    let marker = bytes[offset]
    let low = Int(marker & 15)
    switch marker >> 4 {
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
    case 0xA, 0xD:
      guard depth < limits.depth else {
        throw failure(offset, "nested deeper than \(limits.depth)")
      }
      size.height = 1
      return try container(at: offset, depth: depth, size: &size)
    default: throw unknown(offset)
    }
  }

  private func unknown(_ offset: Int) -> FormatError {
    failure(offset, "unknown object type 0x\(String(bytes[offset], radix: 16))")
  }

  func require(_ offset: Int, _ size: Int) throws(FormatError) {
    guard size <= offsetTable - offset else { throw failure(offset, "the object does not fit") }
  }

  /// Where the object's contents begin, and how many units there are; checked against the list.
  func extent(at offset: Int, unit: Int) throws(FormatError) -> (start: Int, count: Int) {
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
