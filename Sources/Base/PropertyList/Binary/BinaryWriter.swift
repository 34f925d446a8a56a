/// Writes binary property lists (`bplist00`).
///
/// Keys are sorted, so that equal values give equal bytes. Equal strings and keys are written once,
/// and so are booleans. Cost: O(size); O(n log n) for a dictionary that is not sorted.
struct BinaryWriter {
  private var sink: ByteSink
  /// The offset of each object.
  private var offsets: [Int] = []
  /// The object numbers of the strings that are written.
  private var strings: [Key: Int] = [:]
  /// The objects of strings that are written as they were: see `BinaryList.oddStrings`.
  private let kept: [Key: [UInt8]]
  /// The object numbers of the booleans, once they are written.
  private var booleans: (no: Int?, yes: Int?)
  /// The size of a reference to an object, in bytes.
  private let referenceSize: Int

  /// Returns the value as a list. Every value can be written.
  /// - Parameter kept: the objects of strings, by their text, that are written as they are.
  static func write(_ value: Value, keeping kept: [Key: [UInt8]] = [:]) -> [UInt8] {
    var writer = BinaryWriter(
      objects: value.objectCount, room: 64 + value.extent(of: 12), keeping: kept)
    let top = writer.add(value)
    writer.finish(top: top)
    return writer.sink.finish()
  }

  /// Returns a list with the values, and with pairs of another list as they are. Those come first in
  /// the file and last in the dictionary: what an owner adds behind the last object
  /// (a comment before the table of offsets) is never a part of an object whose end is not known.
  static func write(
    _ values: ValueDictionary, keeping kept: [Key: [UInt8]], _ others: KeptObjects
  ) -> [UInt8] {
    let value = Value.dictionary(values)
    var writer = BinaryWriter(
      objects: value.objectCount + others.objects.count,
      room: 64 + value.extent(of: 12) + others.size, keeping: kept)
    // The root, which the others may contain, is object 0.
    writer.offsets.append(0)
    for object in others.objects { writer.add(object, of: others.list) }
    writer.offsets[0] = writer.sink.count
    writer.addContents(values, and: others.pairs)
    writer.finish(top: 0)
    return writer.sink.finish()
  }

  /// Writes an object of another list. Offset 0 is outside of the objects.
  private mutating func add(_ object: KeptObjects.Object, of list: BinaryList) {
    guard !object.isOutside else { return offsets.append(0) }
    offsets.append(sink.count)
    let bytes = UnsafeRawBufferPointer(rebasing: list.bytes[object.bytes])
    sink.append(bytes.assumingMemoryBound(to: UInt8.self))
    var place = reserve(object.references.count)
    for reference in object.references { set(&place, reference) }
  }

  /// - Parameter objects: an upper bound for their number.
  private init(objects: Int, room: Int, keeping kept: [Key: [UInt8]]) {
    self.kept = kept
    referenceSize = UInt64(objects).byteCount
    sink = ByteSink(room: room)
    offsets.reserveCapacity(objects)
    sink.append("bplist00")
  }

  /// Begins a new object at the end of the document.
  /// - Returns: the number of the object.
  private mutating func begin() -> Int {
    offsets.append(sink.count)
    return offsets.count - 1
  }

  /// Writes a value, unless an equal string or boolean is written already.
  /// - Returns: the number of its object.
  private mutating func add(_ value: Value) -> Int {
    switch value {
    case .string(let text): return add(Key(text))
    case .boolean(let flag): return add(flag)
    case .array(let items): return add(items)
    case .dictionary(let items): return add(items)
    case .integer, .real, .single, .date, .data, .uid:
      let index = begin()
      addScalar(value)
      return index
    }
  }

  private mutating func add(_ flag: Bool) -> Int {
    if let known = flag ? booleans.yes : booleans.no { return known }
    let index = begin()
    sink.append(flag ? 9 : 8 as UInt8)
    if flag { booleans.yes = index } else { booleans.no = index }
    return index
  }

  private mutating func addScalar(_ value: Value) {
    switch value {
    case .integer(let number): add(number)
    case .real(let number): add(0x23, number)
    case .single(let number):
      sink.append(0x22 as UInt8)
      sink.append(bigEndian: UInt64(number.bitPattern), size: 4)
    case .date(let time): add(0x33, time.seconds)
    case .data(let data):
      addHead(0x40, count: data.count)
      data.withUnsafeBufferPointer { sink.append($0) }
    case .uid(let number):
      let size = number.byteCount
      sink.append(0x80 | UInt8(size - 1))
      sink.append(bigEndian: number, size: size)
    case .string, .boolean, .array, .dictionary: break
    }
  }

  private mutating func add(_ marker: UInt8, _ number: Double) {
    sink.append(marker)
    sink.append(bigEndian: number.bitPattern, size: 8)
  }

  /// Writes an integer. Integers of 1, 2 and 4 bytes are unsigned and those of 8 bytes are signed;
  /// a number that does not fit in 8 bytes takes 16.
  private mutating func add(_ number: WideInteger) {
    guard let unsigned = number.unsigned else {
      sink.append(0x13 as UInt8)
      return sink.append(bigEndian: UInt64(bitPattern: number.signed ?? 0), size: 8)
    }
    if unsigned >> 63 == 1 {
      sink.append(0x14 as UInt8)
      sink.append(bigEndian: 0, size: 8)
      return sink.append(bigEndian: unsigned, size: 8)
    }
    let size = unsigned.byteCount
    sink.append(0x10 | UInt8(size.trailingZeroBitCount))
    sink.append(bigEndian: unsigned, size: size)
  }

  private mutating func add(_ string: Key) -> Int {
    if let known = strings[string] { return known }
    let object = begin()
    strings[string] = object
    if string.withBytes({ addASCII($0) }) { return object }
    if let bytes = kept[string] {
      bytes.withUnsafeBufferPointer { sink.append($0) }
      return object
    }
    let units = string.string.utf16
    addHead(0x60, count: units.count)
    for unit in units { sink.append(bigEndian: UInt64(unit), size: 2) }
    return object
  }

  /// Writes a string of ASCII.
  /// - Returns: false if the bytes are not ASCII.
  private mutating func addASCII(_ utf8: UnsafeBufferPointer<UInt8>) -> Bool {
    guard UTF8Validator.isASCII(utf8) else { return false }
    addHead(0x50, count: utf8.count)
    sink.append(utf8)
    return true
  }

  private mutating func add(_ items: [Value]) -> Int {
    let object = begin()
    addHead(0xA0, count: items.count)
    var reference = reserve(items.count)
    for item in items { set(&reference, add(item)) }
    return object
  }

  private mutating func add(_ items: ValueDictionary) -> Int {
    let object = begin()
    addContents(items)
    return object
  }

  private mutating func addContents(
    _ items: ValueDictionary, and others: [(key: Int?, value: Int?)] = []
  ) {
    let count = items.count + others.count
    addHead(0xD0, count: count)
    var keyReference = reserve(2 * count)
    var valueReference = keyReference + count * referenceSize
    for item in items.sortedItems {
      set(&keyReference, add(item.key))
      set(&valueReference, add(item.value))
    }
    for pair in others {
      set(&keyReference, pair.key)
      set(&valueReference, pair.value)
    }
  }

  /// Reserves room for references, because the objects of a container follow it.
  /// - Returns: the offset of the first reference.
  private mutating func reserve(_ count: Int) -> Int {
    let start = sink.count
    sink.append(repeating: 0, count: count * referenceSize)
    return start
  }

  /// Writes a reference at the reserved offset, and moves the offset to the next one. nil is a
  /// reference to no object: the size is such that there are fewer than its largest number.
  private mutating func set(_ place: inout Int, _ reference: Int?) {
    sink.set(place, bigEndian: reference.map { UInt64($0) } ?? .max, size: referenceSize)
    place += referenceSize
  }

  /// Writes the marker of an object and the number of its items.
  private mutating func addHead(_ marker: UInt8, count: Int) {
    guard count >= 15 else { return sink.append(marker | UInt8(count)) }
    sink.append(marker | 15)
    add(WideInteger(Int64(count)))
  }

  /// Writes the offset table and the trailer.
  private mutating func finish(top: Int) {
    let table = sink.count
    let offsetSize = UInt64(table).byteCount
    for offset in offsets { sink.append(bigEndian: UInt64(offset), size: offsetSize) }
    sink.append(bigEndian: UInt64(offsetSize << 8 | referenceSize), size: 8)
    sink.append(bigEndian: UInt64(offsets.count), size: 8)
    sink.append(bigEndian: UInt64(top), size: 8)
    sink.append(bigEndian: UInt64(table), size: 8)
  }
}

extension Value {
  /// An upper bound for the number of objects in the list of the value.
  fileprivate var objectCount: Int {
    switch self {
    case .array(let items): items.reduce(1) { $0 + $1.objectCount }
    case .dictionary(let items): items.reduce(1) { $0 + 1 + $1.value.objectCount }
    case .string, .integer, .real, .single, .boolean, .date, .data, .uid: 1
    }
  }
}

extension UInt64 {
  /// The number of bytes that hold the number: 1, 2, 4 or 8.
  fileprivate var byteCount: Int {
    self < 1 << 8 ? 1 : self < 1 << 16 ? 2 : self < 1 << 32 ? 4 : 8
  }
}
