/// Writes binary property lists (`bplist00`).
///
/// Keys are sorted, so that equal values give equal bytes. Strings and keys that are equal are
/// written once, as are booleans. Cost: O(size), dictionaries O(n log n).
struct BinaryWriter {
  private var bytes: [UInt8] = Array("bplist00".utf8)
  private var offsets: [Int] = []
  private var strings: [Key: Int] = [:]
  private var booleans: [Bool: Int] = [:]
  private let referenceSize: Int

  /// The whole list. Every value can be written.
  static func write(_ value: Value) -> [UInt8] {
    var writer = BinaryWriter(referenceSize: UInt64(objectBound(value)).byteCount)
    let top = writer.add(value)
    writer.finish(top: top)
    return writer.bytes
  }

  private init(referenceSize: Int) { self.referenceSize = referenceSize }

  /// At least as many as there are objects.
  private static func objectBound(_ value: Value) -> Int {
    switch value {
    case .array(let items): items.reduce(1) { $0 + objectBound($1) }
    case .dictionary(let items): items.values.reduce(1 + items.count) { $0 + objectBound($1) }
    default: 1
    }
  }

  private mutating func begin() -> Int {
    offsets.append(bytes.count)
    return offsets.count - 1
  }

  private mutating func add(_ value: Value) -> Int {
    switch value {
    case .string(let text): return add(Key(text))
    case .boolean(let flag):
      if let known = booleans[flag] { return known }
      let index = begin()
      bytes.append(flag ? 9 : 8)
      booleans[flag] = index
      return index
    case .array(let items): return add(items)
    case .dictionary(let items): return add(items)
    case .integer, .real, .date, .data, .uid:
      let index = begin()
      addScalar(value)
      return index
    }
  }

  private mutating func addScalar(_ value: Value) {
    switch value {
    case .integer(let number): add(number)
    case .real(let number):
      bytes.append(0x23)
      append(number.bitPattern, size: 8)
    case .date(let time):
      bytes.append(0x33)
      append(time.seconds.bitPattern, size: 8)
    case .data(let data):
      addHead(0x40, count: data.count)
      bytes += data
    case .uid(let number):
      let size = number.byteCount
      bytes.append(0x80 | UInt8(size - 1))
      append(number, size: size)
    case .string, .boolean, .array, .dictionary: break
    }
  }

  /// 1, 2 and 4 bytes are unsigned, 8 signed; what 8 cannot hold takes 16.
  private mutating func add(_ number: WideInteger) {
    guard let unsigned = number.unsigned else {
      bytes.append(0x13)
      return append(UInt64(bitPattern: number.signed ?? 0), size: 8)
    }
    if unsigned >> 63 == 1 {
      bytes.append(0x14)
      append(0, size: 8)
      return append(unsigned, size: 8)
    }
    let size = unsigned.byteCount
    bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
    append(unsigned, size: size)
  }

  private mutating func add(_ string: Key) -> Int {
    if let known = strings[string] { return known }
    let index = begin()
    strings[string] = index
    let isASCII = string.string.withBytes { utf8 in
      guard UTF8Validator.isASCII(utf8) else { return false }
      addHead(0x50, count: utf8.count)
      bytes.append(contentsOf: utf8)
      return true
    }
    if !isASCII {
      let units = Array(string.string.utf16)
      addHead(0x60, count: units.count)
      for unit in units { append(UInt64(unit), size: 2) }
    }
    return index
  }

  private mutating func add(_ items: [Value]) -> Int {
    let index = begin()
    addHead(0xA0, count: items.count)
    let references = reserve(items.count)
    for (position, item) in items.enumerated() { set(references, position, add(item)) }
    return index
  }

  private mutating func add(_ items: ValueDictionary) -> Int {
    let index = begin()
    addHead(0xD0, count: items.count)
    let references = reserve(2 * items.count)
    for (position, item) in items.sortedItems.enumerated() {
      set(references, position, add(item.key))
      set(references, items.count + position, add(item.value))
    }
    return index
  }

  private mutating func reserve(_ count: Int) -> Int {
    let start = bytes.count
    bytes.append(contentsOf: repeatElement(0, count: count * referenceSize))
    return start
  }

  private mutating func set(_ start: Int, _ position: Int, _ reference: Int) {
    let end = start + (position + 1) * referenceSize
    for step in 0..<referenceSize {
      bytes[end - 1 - step] = UInt8(truncatingIfNeeded: reference >> (8 * step))
    }
  }

  private mutating func addHead(_ marker: UInt8, count: Int) {
    guard count >= 15 else { return bytes.append(marker | UInt8(count)) }
    bytes.append(marker | 15)
    add(WideInteger(Int64(count)))
  }

  private mutating func append(_ number: UInt64, size: Int) {
    let shifted = number << UInt64(64 - 8 * size)
    withUnsafeBytes(of: shifted.bigEndian) { bytes.append(contentsOf: $0.prefix(size)) }
  }

  private mutating func finish(top: Int) {
    let table = bytes.count
    let offsetSize = UInt64(table).byteCount
    for offset in offsets { append(UInt64(offset), size: offsetSize) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    append(UInt64(offsets.count), size: 8)
    append(UInt64(top), size: 8)
    append(UInt64(table), size: 8)
  }
}

extension UInt64 {
  /// 1, 2, 4 or 8: the bytes that hold the number.
  fileprivate var byteCount: Int {
    self < 1 << 8 ? 1 : self < 1 << 16 ? 2 : self < 1 << 32 ? 4 : 8
  }
}
