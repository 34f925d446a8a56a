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
  /// What became of each object; scalars, and short strings that are no keys, stay `unread`.
  private var states: [State]
  /// The objects that are referred to several times, by their numbers, and those of them that are keys.
  private var shared: [Int: Shared] = [:]
  private var sharedKeys: [Int: Key] = [:]
  private var maker = KeyMaker()
  /// How many values there are so far when everything that is shared is unfolded. Strings and data
  /// count by their bytes, too, so that no small list can stand for a huge value.
  var weight = 0
  /// How many keys and values the containers have that are being read.
  private var promised = 0
  /// How many containers are inside each other at most, of what was read since `large` set it.
  var deepest = 0

  /// An object is kept when it is met for the second time: most are met once, and what is kept costs
  /// a reference. So an object is read twice at most.
  private enum State: UInt8 { case unread, beingRead, read, shared }

  /// An object that is referred to several times.
  private struct Shared {
    var value: Value
    var weight: Int
    /// How many levels of containers it has.
    var height: Int
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

  /// A big-endian number that lies before the trailer, which makes a load of eight bytes safe.
  @inline(__always)
  func number(at offset: Int, size: Int) -> UInt64 {
    let eight = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    return UInt64(bigEndian: eight) >> UInt64(64 &- 8 &* size)
  }

  /// Where the object with the number begins.
  @inline(__always)
  func offset(of reference: Int) throws(FormatError) -> Int {
    let position = offsetTable &+ reference &* offsetSize
    let start = number(at: position, size: offsetSize)
    guard start >= 8, start < UInt64(offsetTable) else {
      throw failure(position, "object \(reference) lies outside of the list")
    }
    return Int(start)
  }

  /// There are so many values more.
  @inline(__always)
  private mutating func count(_ more: Int, at offset: Int) throws(FormatError) {
    weight += more
    guard weight <= limits.count else { throw failure(offset, "more than \(limits.count) values") }
  }

  /// A container of so many keys and values is read next, for which room is made.
  mutating func open(_ count: Int, at offset: Int) throws(FormatError) {
    promised += count
    guard promised <= limits.count else {
      throw failure(offset, "more than \(limits.count) values")
    }
  }

  /// It was read.
  mutating func close(_ count: Int) { promised -= count }

  /// The key that the string of ASCII at the offset is.
  mutating func plainKey(_ reference: Int, at offset: Int) throws(FormatError) -> Key {
    let (start, length) = try extent(at: offset, unit: 1)
    try count(1 + length / 64, at: offset)
    let isMet = states[reference] != .unread
    if isMet, let key = sharedKeys[reference] { return key }
    let text = UnsafeRawBufferPointer(rebasing: bytes[start..<start + length])
      .assumingMemoryBound(to: UInt8.self)
    guard UTF8Validator.isASCII(text) else {
      throw failure(start, "an ASCII string with other bytes")
    }
    let key = maker.key(text)
    if isMet { sharedKeys[reference] = key } else { states[reference] = .read }
    return key
  }

  /// The object with the number.
  mutating func object(_ reference: Int, depth: Int) throws(FormatError) -> Value {
    let offset = try offset(of: reference)
    try count(1, at: offset)
    // To read a scalar or a short string again is cheaper than to keep it.
    let marker = bytes[offset]
    if marker < 0x40 { return try scalar(at: offset) }
    if marker & 0xF0 == 0x50, marker != 0x5F {
      let count = Int(marker & 15)
      try require(offset, 1 + count)
      return .string(try string(offset + 1, count, isASCII: true))
    }
    return try large(reference, at: offset, depth: depth)
  }

  private mutating func large(
    _ reference: Int, at offset: Int, depth: Int
  ) throws(FormatError) -> Value {
    let state = states[reference]
    if state == .shared, let known = shared[reference] {
      try count(known.weight, at: offset)
      guard depth + known.height <= limits.depth else {
        throw failure(offset, "nested deeper than \(limits.depth)")
      }
      deepest = max(deepest, depth + known.height)
      return known.value
    }
    guard state != .beingRead else { throw failure(offset, "an object that contains itself") }
    states[reference] = .beingRead
    let (outerWeight, outerDeepest) = (weight, deepest)
    deepest = depth
    // Containers go another way than the rest: each that is inside of another takes less of the stack.
    let kind = bytes[offset] >> 4
    let value =
      kind == 0xA || kind == 0xD
      ? try container(at: offset, depth: depth) : try decode(at: offset)
    if state == .unread {
      states[reference] = .read
    } else {
      states[reference] = .shared
      shared[reference] = Shared(
        value: value, weight: weight - outerWeight, height: deepest - depth)
    }
    deepest = max(deepest, outerDeepest)
    return value
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

  @inline(never)
  private mutating func decode(at offset: Int) throws(FormatError) -> Value {
    let marker = bytes[offset]
    switch marker >> 4 {
    case 0x4:
      let (start, count) = try extent(at: offset, unit: 1)
      weight += count / 64
      return .data([UInt8](UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])))
    case 0x5, 0x7:
      let (start, count) = try extent(at: offset, unit: 1)
      weight += count / 64
      return .string(try string(start, count, isASCII: marker >> 4 == 5))
    case 0x6:
      let (start, count) = try extent(at: offset, unit: 2)
      weight += count / 32
      return .string(try utf16(start, count))
    case 0x8 where marker & 15 < 8:
      let size = Int(marker & 15) + 1
      try require(offset, 1 + size)
      return .uid(number(at: offset + 1, size: size))
    default: throw unknown(offset)
    }
  }

  private func unknown(_ offset: Int) -> FormatError {
    failure(offset, "unknown object type 0x\(String(bytes[offset], radix: 16))")
  }

  @inline(__always)
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
