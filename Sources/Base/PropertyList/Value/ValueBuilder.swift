/// Builds a value for the parsers that see a document as a stream of events.
///
/// The elements of all open arrays are on one stack, and the items of all open dictionaries on
/// another. Closing a container removes its part of the stack; the outermost dictionary uses the
/// storage of the stack itself. Cost: O(1) for each event.
struct ValueBuilder {
  enum Container { case array, dictionary }

  /// An open container that has another open container inside.
  private struct Frame {
    var container: Container
    /// Where its part of a stack begins.
    var start: Int
    /// In a dictionary, the key whose value is the container inside.
    var key: Key?
  }

  /// The elements of the open arrays, or the root.
  private var values: [Value] = []
  /// The items of the open dictionaries.
  private var items: [ValueDictionary.Item] = []
  private var maker = KeyMaker()
  /// The innermost open container.
  private(set) var open: Container?
  /// Where the part of the innermost open container begins on its stack.
  private var start = 0
  /// The key of the innermost open dictionary that waits for its value.
  private(set) var key: Key?
  private var outerFrames: [Frame] = []
  private var count = 0
  private let limits: Limits
  /// Whether a dictionary `{CF$UID: n}`, which is how XML spells a UID, becomes a UID.
  private let findsUIDs: Bool

  /// Creates a builder without a value.
  /// - Parameter size: the size of the document in bytes, or 0 if it is not known. The builder
  ///   reserves room for as many items as a document of the size usually has.
  init(limits: Limits, size: Int = 0, findsUIDs: Bool = false) {
    self.limits = limits
    self.findsUIDs = findsUIDs
    if size > 0 { values.reserveCapacity(16) }
    items.reserveCapacity(size / 64)
  }

  /// The number of open containers.
  var depth: Int { open == nil ? 0 : outerFrames.count + 1 }

  /// Whether a key comes next.
  var awaitsKey: Bool { open == .dictionary && key == nil }

  /// Whether a key waits for its value.
  var hasPendingKey: Bool { key != nil }

  /// The finished value; nil while a container is open or before there is a value.
  var root: Value? { open == nil ? values.first : nil }

  /// Opens a container. Throws if it would be nested too deep.
  mutating func begin(_ container: Container) throws(FormatError) {
    guard depth < limits.depth else { throw failure("nested deeper than \(limits.depth)") }
    if let open { outerFrames.append(Frame(container: open, start: start, key: key)) }
    (open, key) = (container, nil)
    start = container == .array ? values.count : items.count
  }

  /// Adds a key to the open dictionary; its value comes next. The bytes must be valid UTF-8.
  mutating func add(key bytes: UnsafeBufferPointer<UInt8>) { key = maker.key(bytes) }

  /// Adds the last key again as its own value, a string: `{ key; }` in old-style text.
  mutating func repeatKeyAsValue() throws(FormatError) {
    if let key { try add(.string(key.string)) }
  }

  /// Adds a value to the open container or, if none is open, as the root. Throws if there are too
  /// many values.
  mutating func add(_ value: consuming Value) throws(FormatError) {
    count += 1
    guard count <= limits.count else { throw failure("more than \(limits.count) values") }
    if let key = key.take() {
      items.append(ValueDictionary.Item(key: key, value: value))
    } else {
      values.append(value)
    }
  }

  /// Closes the open container and adds it to the outer one.
  /// - Parameter unique: whether a dictionary with a duplicate key is an error. Otherwise the last
  ///   value of the key counts, as in CoreFoundation.
  mutating func end(uniqueKeys unique: Bool = false) throws(FormatError) {
    guard let open else { return }
    let value: Value
    switch open {
    case .array: value = .array(values.removingLast(values.count - start))
    case .dictionary:
      let dictionary = try dictionary(items.count - start, unique: unique)
      value = (findsUIDs ? dictionary.asUID : nil) ?? .dictionary(dictionary)
    }
    let frame = outerFrames.popLast()
    (self.open, start, key) = (frame?.container, frame?.start ?? 0, frame?.key)
    try add(value)
  }

  private mutating func dictionary(
    _ count: Int, unique: Bool
  ) throws(FormatError) -> ValueDictionary {
    let items = items.removingLast(count)
    guard unique else { return ValueDictionary(items) }
    if let dictionary = ValueDictionary(unique: items) { return dictionary }
    throw failure("a duplicate key")
  }

  /// An error with a reason. Its format stands for none: `TextParser` puts its own there, and adds the
  /// position.
  private func failure(_ reason: String) -> FormatError { FormatError(.json, reason) }
}

extension Array {
  /// Removes the last elements and returns them as an array. If these are all elements and at least
  /// half of the capacity is in use, it returns the storage itself and moves no element.
  fileprivate mutating func removingLast(_ number: Int) -> [Element] {
    if number == count, capacity <= 2 * count {
      defer { self = [] }
      return self
    }
    return [Element](unsafeUninitializedCapacity: number) { elements, filled in
      for position in (0..<number).reversed() {
        elements.initializeElement(at: position, to: removeLast())
      }
      filled = number
    }
  }
}

extension ValueDictionary {
  private static var uidKey: Key { "CF$UID" }

  /// The dictionary that stands for the UID in XML.
  static func uid(_ number: UInt64) -> ValueDictionary {
    [uidKey: .integer(WideInteger(number))]
  }

  /// The UID that this dictionary stands for in XML; nil if it is an ordinary dictionary.
  var asUID: Value? {
    guard count == 1, case .integer(let number)? = self[Self.uidKey] else { return nil }
    return number.unsigned.map { .uid($0) }
  }
}
