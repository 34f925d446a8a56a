/// Reads binary property lists (`bplist00`).
///
/// A container, data or long string that is referred to several times is read at most twice, and
/// its value is shared. Objects that contain themselves, offsets outside of the list, and lists
/// that would unfold to more than `Limits.count` values are refused.
///
/// Cost: O(size). Where the objects of a damaged list overlap, `Limits.count` bounds the cost.
struct BinaryReader {
  let list: BinaryList
  let limits: Limits
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
    try bytes.withUnsafeBufferPointer { bytes throws(FormatError) in
      var reader = try BinaryReader(UnsafeRawBufferPointer(bytes), limits: limits)
      return try reader.object(reader.list.layout.top, depth: 0)
    }
  }

  /// Whether the bytes have the header and the trailer of a binary list of their size. Cost: O(1)
  /// if not, else O(objects); much less than reading the list.
  static func hasTrailer(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { buffer in
      (try? BinaryList(buffer)) != nil
    }
  }

  /// Creates a reader of a list that has a valid header and trailer; throws for other bytes. The
  /// bytes must stay valid as long as the reader is in use.
  init(_ bytes: UnsafeRawBufferPointer, limits: Limits) throws(FormatError) {
    list = try BinaryList(bytes)
    self.limits = limits
    states = Array(repeating: .unread, count: list.layout.objectCount)
  }

  /// Counts `more` values. Throws if there are too many.
  @inline(__always)
  mutating func count(_ more: Int, at offset: Int) throws(FormatError) {
    weight += more
    guard weight <= limits.count else {
      throw list.failure(offset, "more than \(limits.count) values")
    }
  }

  /// Begins to read a container of `count` keys and values. Throws if the containers that are being
  /// read have too many together, before memory is allocated for this one.
  mutating func open(_ count: Int, at offset: Int) throws(FormatError) {
    promised += count
    guard promised <= limits.count else {
      throw list.failure(offset, "more than \(limits.count) values")
    }
  }

  /// Notes that the root is being read, which no object in it may contain.
  mutating func beginRoot() throws(FormatError) {
    states[list.layout.top] = .beingRead
    try count(1, at: 0)
  }

  /// Ends what `open` began.
  mutating func close(_ count: Int) { promised -= count }

  /// Returns the ASCII string with the number, which is at the offset, as a key.
  mutating func plainKey(
    _ reference: Int, at offset: Int, _ text: UnsafeBufferPointer<UInt8>
  ) throws(FormatError) -> Key {
    try count(1 + text.count / 64, at: offset)
    let isMet = states[reference] != .unread
    if isMet, let key = sharedKeys[reference] { return key }
    let key = maker.key(text)
    if isMet { sharedKeys[reference] = key } else { states[reference] = .read }
    return key
  }

  /// Returns the object with the number.
  /// - Parameter depth: how many containers it is inside of.
  mutating func object(_ reference: Int, depth: Int) throws(FormatError) -> Value {
    let offset = try list.offset(of: reference)
    try count(1, at: offset)
    // Reading a scalar or a short string again is cheaper than keeping it.
    let marker = list.bytes[offset]
    if marker < 0x40 { return try list.scalar(at: offset) }
    if marker & 0xF0 == 0x50, marker != 0x5F {
      let count = Int(marker & 15)
      try list.require(offset, 1 + count)
      return .string(list.string(offset + 1, count, isASCII: true))
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
        throw list.failure(offset, "nested deeper than \(limits.depth)")
      }
      deepest = max(deepest, depth + known.height)
      return known.value
    }
    guard state != .beingRead else {
      throw list.failure(offset, "an object that contains itself")
    }
    states[reference] = .beingRead
    let (outerWeight, outerDeepest) = (weight, deepest)
    deepest = depth
    // Containers are read by a function of their own, so that each level uses less of the stack.
    let kind = list.bytes[offset] >> 4
    let value: Value
    do throws(FormatError) {
      value =
        kind == 0xA || kind == 0xD
        ? try container(at: offset, depth: depth) : try leaf(at: offset)
    } catch {
      // The reader may go on with another pair (`readPair`).
      states[reference] = state
      throw error
    }
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

  private mutating func leaf(at offset: Int) throws(FormatError) -> Value {
    let (value, more) = try list.decode(at: offset)
    weight += more
    return value
  }
}

// MARK: - Containers

extension BinaryReader {
  mutating func container(at offset: Int, depth: Int) throws(FormatError) -> Value {
    guard depth < limits.depth else {
      throw list.failure(offset, "nested deeper than \(limits.depth)")
    }
    deepest = max(deepest, depth + 1)
    if list.bytes[offset] >> 4 == 0xA {
      let (start, count) = try list.extent(at: offset, unit: list.layout.referenceSize)
      try open(count, at: offset)
      defer { close(count) }
      return .array(try array(start, count, depth: depth + 1))
    }
    let (start, count) = try list.extent(at: offset, unit: 2 * list.layout.referenceSize)
    try open(2 * count, at: offset)
    defer { close(2 * count) }
    return .dictionary(try dictionary(start, count, depth: depth + 1))
  }

  /// Reads the object that the reference at the position refers to.
  @inline(__always)
  mutating func item(at position: Int, depth: Int) throws(FormatError) -> Value {
    try object(try list.reference(at: position), depth: depth)
  }

  /// Reads the string that the reference at the position refers to, as a key. An ASCII string, as
  /// nearly all keys are, is copied directly to the document's block of keys.
  @inline(__always)
  mutating func key(at position: Int, depth: Int) throws(FormatError) -> Key {
    let reference = try list.reference(at: position)
    let offset = try list.offset(of: reference)
    guard list.bytes[offset] & 0xF0 == 0x50, let text = try list.ascii(at: offset) else {
      guard case .string(let text) = try object(reference, depth: depth) else {
        throw list.failure(position, "a key that is not a string")
      }
      return Key(text)
    }
    return try plainKey(reference, at: offset, text)
  }

  private mutating func array(
    _ start: Int, _ count: Int, depth: Int
  ) throws(FormatError) -> [Value] {
    let size = list.layout.referenceSize
    return try [Value](capacity: count) { items throws(FormatError) in
      for index in 0..<count {
        items.append(try item(at: start + index * size, depth: depth))
      }
    }
  }

  private mutating func dictionary(
    _ start: Int, _ count: Int, depth: Int
  ) throws(FormatError) -> ValueDictionary {
    let size = list.layout.referenceSize
    return try ValueDictionary(firstOf: count) { index throws(FormatError) in
      let position = start + index * size
      let key = try key(at: position, depth: depth)
      return (key, try item(at: position + count * size, depth: depth))
    }
  }
}

// MARK: - Pair by pair

extension BinaryReader {
  /// Begins to read the root, if it is a dictionary, for `readPair`. Throws for another one.
  mutating func readRoot() throws(FormatError) -> (start: Int, count: Int) {
    let offset = try list.offset(of: list.layout.top)
    guard list.bytes[offset] >> 4 == 0xD else {
      throw list.failure(offset, "expected a dictionary")
    }
    let root = try list.extent(at: offset, unit: 2 * list.layout.referenceSize)
    try open(2 * root.count, at: offset)
    try beginRoot()
    return root
  }

  /// Reads one pair of the root. Where that throws, the other pairs can still be read; what was read
  /// counts towards the limits nevertheless.
  /// - Parameter name: becomes the key, if that can be read.
  mutating func readPair(
    _ position: Int, of root: (start: Int, count: Int), _ name: inout Key?
  ) throws(FormatError) -> (key: Key, value: Value) {
    let size = list.layout.referenceSize
    let place = root.start + position * size
    let key = try key(at: place, depth: 1)
    name = key
    return (key, try item(at: place + root.count * size, depth: 1))
  }
}
