/// A binary list in memory: where its objects are, and how to decode those that contain no others.
///
/// Every offset is checked before it is used. The bytes must stay valid as long as the list is in
/// use.
struct BinaryList {
  /// What the trailer says, without the bytes.
  struct Layout {
    /// The size of an entry of the offset table, in bytes.
    let offsetSize: Int
    /// The size of a reference to an object, in bytes.
    let referenceSize: Int
    let offsetTable: Int
    let objectCount: Int
    /// The number of the object that is the root.
    let top: Int
  }

  let bytes: UnsafeRawBufferPointer
  let layout: Layout

  /// The list with bytes whose trailer has been read already.
  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer, _ layout: Layout) {
    (self.bytes, self.layout) = (bytes, layout)
  }

  /// Reads the header and the trailer; throws for bytes that have no valid ones.
  init(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
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
    let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
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
    layout = Layout(
      offsetSize: offsetSize, referenceSize: referenceSize, offsetTable: Int(table),
      objectCount: Int(count), top: Int(top))
  }

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
    let position = layout.offsetTable &+ reference &* layout.offsetSize
    let start = number(at: position, size: layout.offsetSize)
    guard start >= 8, start < UInt64(layout.offsetTable) else {
      throw failure(position, "object \(reference) lies outside of the list")
    }
    return Int(start)
  }

  /// Returns the number of the object to which the reference at the position refers.
  @inline(__always)
  func reference(at position: Int) throws(FormatError) -> Int {
    let reference = number(at: position, size: layout.referenceSize)
    guard reference < UInt64(layout.objectCount) else {
      throw failure(position, "a reference to object \(reference) of \(layout.objectCount)")
    }
    return Int(reference)
  }

  /// Throws if the `size` bytes of the object at the offset do not end before the offset table.
  @inline(__always)
  func require(_ offset: Int, _ size: Int) throws(FormatError) {
    guard size <= layout.offsetTable - offset else {
      throw failure(offset, "the object does not fit")
    }
  }

  /// Returns where the contents of the object begin, and how many units of `unit` bytes they have.
  /// Throws if they do not end before the offset table.
  @inline(__always)
  func extent(at offset: Int, unit: Int) throws(FormatError) -> (start: Int, count: Int) {
    let count = Int(bytes[offset] & 15)
    guard count < 15 else { return try longExtent(at: offset, unit: unit) }
    try require(offset, 1 + count * unit)
    return (offset + 1, count)
  }

  @inline(never)
  private func longExtent(at offset: Int, unit: Int) throws(FormatError) -> (start: Int, count: Int)
  {
    let marker = offset + 1
    guard marker < layout.offsetTable, bytes[marker] >> 4 == 1 else {
      throw failure(marker, "expected a count")
    }
    let size = 1 << Int(bytes[marker] & 15)
    try require(marker, 1 + size)
    let start = marker + 1 + size
    // As in Foundation, the last 64 bits count.
    let count = number(at: start - min(size, 8), size: min(size, 8))
    guard count <= UInt64(layout.offsetTable - start) / UInt64(unit) else {
      throw failure(offset, "an object of \(count) items does not fit")
    }
    return (start, Int(count))
  }

  /// Returns the bytes of the ASCII string at the offset; nil where it has other bytes too.
  @inline(__always)
  func ascii(at offset: Int) throws(FormatError) -> UnsafeBufferPointer<UInt8>? {
    let (start, count) = try extent(at: offset, unit: 1)
    let text = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
      .assumingMemoryBound(to: UInt8.self)
    return UTF8Validator.isASCII(text) ? text : nil
  }
}

// MARK: - Values

extension BinaryList {
  /// Returns the boolean, number or date at the offset.
  func scalar(at offset: Int) throws(FormatError) -> Value {
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

  /// Returns the string, data or UID at the offset, and by its length in bytes how much it adds to
  /// `BinaryReader.weight`.
  @inline(never)
  func decode(at offset: Int) throws(FormatError) -> (value: Value, weight: Int) {
    let marker = bytes[offset]
    switch marker >> 4 {
    case 0x4:
      let (start, count) = try extent(at: offset, unit: 1)
      let data = [UInt8](UnsafeRawBufferPointer(rebasing: bytes[start..<start + count]))
      return (.data(data), count / 64)
    case 0x5, 0x7:
      let (start, count) = try extent(at: offset, unit: 1)
      return (.string(string(start, count, isASCII: marker >> 4 == 5)), count / 64)
    case 0x6:
      let (start, count) = try extent(at: offset, unit: 2)
      return (.string(utf16(start, count)), count / 32)
    case 0x8:
      let size = Int(marker & 15) + 1
      try require(offset, 1 + size)
      let (low, end) = (min(size, 8), offset + 1 + size)
      guard bytes[offset + 1..<end - low].allSatisfy({ $0 == 0 }) else {
        throw failure(offset, "a UID beyond 64 bits")
      }
      return (.uid(number(at: end - low, size: low)), 0)
    default: throw unknown(offset)
    }
  }

  private func unknown(_ offset: Int) -> FormatError {
    failure(offset, "unknown object type 0x\(String(bytes[offset], radix: 16))")
  }

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
      ? .real(Double(bitPattern: bits))
      : .single(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
  }

  /// Returns an ASCII string, or a UTF-8 string if not `isASCII`. As in Foundation, a byte of an
  /// ASCII string that is not ASCII is the Latin-1 character; what is not UTF-8 is U+FFFD.
  func string(_ start: Int, _ count: Int, isASCII: Bool) -> String {
    let slice = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
    let utf8 = slice.assumingMemoryBound(to: UInt8.self)
    if UTF8Validator.isASCII(utf8) { return String(valid: utf8, isASCII: true) }
    if isASCII { return String(String.UnicodeScalarView(utf8.map { Unicode.Scalar($0) })) }
    return String(decoding: utf8, as: UTF8.self)
  }

  /// Returns a string of UTF-16. As in Foundation, half of a surrogate pair is U+FFFD.
  private func utf16(_ start: Int, _ count: Int) -> String {
    String(
      decoding: (0..<count).map { UInt16(number(at: start + 2 * $0, size: 2)) }, as: UTF16.self)
  }
}

extension BinaryList {
  /// Returns the objects of strings that read as a text with U+FFFD, by that text: those that are
  /// not Unicode, such as UTF-16 with half of a surrogate pair. Two that read alike are left out.
  /// Bytes that are no binary list have none. Cost: O(size).
  static func oddStrings(in bytes: [UInt8]) -> [Key: [UInt8]] {
    bytes.withUnsafeBytes { buffer in
      guard let list = try? BinaryList(buffer) else { return [:] }
      var odd: [Key: [UInt8]] = [:]
      var ambiguous: Set<Key> = []
      for number in 0..<list.layout.objectCount {
        guard let (text, object) = list.oddString(number) else { continue }
        if let known = odd.updateValue(object, forKey: text), known != object {
          ambiguous.insert(text)
        }
      }
      return odd.filter { !ambiguous.contains($0.key) }
    }
  }

  private func oddString(_ number: Int) -> (text: Key, object: [UInt8])? {
    guard let offset = try? offset(of: number), [6, 7].contains(bytes[offset] >> 4) else {
      return nil
    }
    let unit = bytes[offset] >> 4 == 6 ? 2 : 1
    guard let (start, count) = try? extent(at: offset, unit: unit),
      case .string(let text)? = try? decode(at: offset).value,
      text.unicodeScalars.contains("\u{FFFD}")
    else { return nil }
    return (Key(text), Array(bytes[offset..<start + count * unit]))
  }
}
