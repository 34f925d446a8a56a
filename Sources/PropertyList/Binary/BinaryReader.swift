/// Reads binary property lists (`bplist00`).
///
/// A container, data or long string that is referred to several times is read at most twice, and
/// its value is shared. Objects that contain themselves, offsets outside of the list, and lists
/// that would unfold to more than `Limits.count` values are refused.
///
/// Cost: O(size). Where the objects of a damaged list overlap, `Limits.count` bounds the cost.
struct BinaryReader {
  let bytes: UnsafeRawBufferPointer
  let limits: Limits
  /// The size of an entry of the offset table, in bytes.
  let offsetSize: Int
  /// The size of a reference to an object, in bytes.
  let referenceSize: Int
  /// The offset of the offset table.
  let offsetTable: Int
  let objectCount: Int
  /// The number of the object that is the root.
  let top: Int
  /// The state of each object. Scalars, and short strings that are not keys, stay `unread`.
  private var states: [State]
  /// The objects that were met at least twice, by number.
  private var shared: [Int: Shared] = [:]
  /// The ASCII keys that were met at least twice, by number.
  private var sharedKeys: [Int: Key] = [:]
  private var maker = KeyMaker()
  /// The number of values so far, with shared objects counted each time. Strings and data also
  /// count by their length, so that a small list cannot stand for a huge value.
  var weight = 0
  /// The number of keys and values in the containers that are being read.
  private var promised = 0
  /// The deepest level of containers that was read since `large` last set it.
  var deepest = 0

  /// Whether an object was read. An object is kept when it is met for the second time, because most
  /// are met once and keeping one costs a reference count. So an object is read at most twice.
  private enum State: UInt8 { case unread, beingRead, read, shared }

  /// A kept object, which is referred to several times.
  private struct Shared {
    var value: Value
    /// How much it adds to `BinaryReader.weight`.
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

  /// Whether the bytes have the header and the trailer of a binary list of their size. Cost: O(1)
  /// if not, else O(objects); much less than reading the list.
  static func hasTrailer(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { buffer in
      (try? BinaryReader(buffer, limits: .standard)) != nil
    }
  }

  /// Creates a reader of a list that has a valid header and trailer; throws for other bytes. The
  /// bytes must stay valid as long as the reader is in use.
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

  /// Returns an error at the offset.
  func failure(_ offset: Int, _ reason: String) -> FormatError {
    FormatError(.binary, offset: offset, reason)
  }

  /// Returns a big-endian number of `size` bytes, which must be before the trailer. The trailer is
  /// what makes a load of eight bytes safe.
  @inline(__always)
  func number(at offset: Int, size: Int) -> UInt64 {
    let eight = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    return UInt64(bigEndian: eight) >> UInt64(64 &- 8 &* size)
  }

  /// Returns the offset where the object with the number begins.
  @inline(__always)
  func offset(of reference: Int) throws(FormatError) -> Int {
    let position = offsetTable &+ reference &* offsetSize
    let start = number(at: position, size: offsetSize)
    guard start >= 8, start < UInt64(offsetTable) else {
      throw failure(position, "object \(reference) lies outside of the list")
    }
    return Int(start)
  }

  /// Counts `more` values. Throws if there are too many.
  @inline(__always)
  private mutating func count(_ more: Int, at offset: Int) throws(FormatError) {
    weight += more
    guard weight <= limits.count else { throw failure(offset, "more than \(limits.count) values") }
  }

  /// Begins to read a container of `count` keys and values. Throws if the containers that are being
  /// read have too many together, before memory is allocated for this one.
  mutating func open(_ count: Int, at offset: Int) throws(FormatError) {
    promised += count
    guard promised <= limits.count else {
      throw failure(offset, "more than \(limits.count) values")
    }
  }

  /// Ends what `open` began.
  mutating func close(_ count: Int) { promised -= count }

  /// Returns the ASCII string with the number, which is at the offset, as a key.
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

  /// Returns the object with the number.
  /// - Parameter depth: how many containers it is inside of.
  mutating func object(_ reference: Int, depth: Int) throws(FormatError) -> Value {
    let offset = try offset(of: reference)
    try count(1, at: offset)
    // Reading a scalar or a short string again is cheaper than keeping it.
    let marker = bytes[offset]
    if marker < 0x40 { return try scalar(at: offset) }
    if marker & 0xF0 == 0x50, marker != 0x5F {
      let count = Int(marker & 15)
      try require(offset, 1 + count)
      return .string(try string(offset + 1, count, isASCII: true))
    }
    return try large(reference, at: offset, depth: depth)
  }

  /// Returns a container, data, a UID or a string that is long or not ASCII.
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
    // Containers are read by a function of their own, so that each level uses less of the stack.
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

  /// Throws if the `size` bytes of the object at the offset do not end before the offset table.
  @inline(__always)
  func require(_ offset: Int, _ size: Int) throws(FormatError) {
    guard size <= offsetTable - offset else { throw failure(offset, "the object does not fit") }
  }

  /// Returns where the contents of the object begin, and how many units of `unit` bytes they have.
  /// Throws if they do not end before the offset table.
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
