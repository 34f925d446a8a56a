/// Puts values together for the readers that see a document as a stream of events.
///
/// The elements of all open arrays lie on one stack, the items of all open dictionaries on another; closing
/// a container takes its part off, and the outermost dictionary is the stack itself. Cost: O(1) an event.
struct ValueBuilder {
  enum Container { case array, dictionary }

  /// A container while another inside of it is open.
  private struct Frame {
    var container: Container
    /// Where its part of a stack begins.
    var start: Int
    /// Whose value is the open container.
    var key: Key?
  }

  /// The elements of the open arrays, or the root.
  private var values: [Value] = []
  /// The items of the open dictionaries.
  private var items: [ValueDictionary.Item] = []
  /// Of their keys, those included that wait for a value; made while the bytes are at hand.
  private var hashes: [UInt64] = []
  private var maker = KeyMaker()
  /// The open container, innermost; where its part of a stack begins; and its key that waits for a value.
  private(set) var open: Container?
  private var start = 0
  private var key: Key?
  private var outerFrames: [Frame] = []
  private var count = 0
  private let limits: Limits
  /// Whether `{CF$UID: n}` is a UID, as XML spells it.
  private let findsUIDs: Bool

  /// - Parameter size: of the document, where it is known: there will be room for usual items.
  init(limits: Limits, size: Int = 0, findsUIDs: Bool = false) {
    self.limits = limits
    self.findsUIDs = findsUIDs
    if size > 0 { values.reserveCapacity(16) }
    items.reserveCapacity(size / 64)
    hashes.reserveCapacity(size / 64)
  }

  /// The number of open containers.
  var depth: Int { open == nil ? 0 : outerFrames.count + 1 }

  /// Whether a key waits for its value.
  var hasPendingKey: Bool { key != nil }

  /// The finished value, once every container is closed.
  var root: Value? { open == nil ? values.first : nil }

  /// Opens a container. Throws a reason when the limit on depth is reached.
  mutating func begin(_ container: Container) throws(BuilderError) {
    guard depth < limits.depth else {
      throw BuilderError("nested deeper than \(limits.depth)")
    }
    if let open { outerFrames.append(Frame(container: open, start: start, key: key)) }
    (open, key) = (container, nil)
    start = container == .array ? values.count : items.count
  }

  /// A key of the open dictionary: bytes that are UTF-8.
  mutating func add(key bytes: UnsafeBufferPointer<UInt8>) {
    key = maker.key(bytes)
    hashes.append(KeyHash.of(bytes))
  }

  /// The last key again as a string value (`{ key; }` in old-style text).
  mutating func repeatKeyAsValue() throws(BuilderError) {
    if let key { try add(.string(key.string)) }
  }

  /// A value of the open container, or the root.
  mutating func add(_ value: consuming Value) throws(BuilderError) {
    count += 1
    guard count <= limits.count else { throw BuilderError("more than \(limits.count) values") }
    if let key = key.take() {
      items.append(ValueDictionary.Item(key: key, value: value))
    } else {
      values.append(value)
    }
  }

  /// Closes the open container. Of a key that stands twice the last value counts, as in
  /// CoreFoundation, unless `unique` is asked for.
  mutating func end(uniqueKeys unique: Bool = false) throws(BuilderError) {
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
  ) throws(BuilderError) -> ValueDictionary {
    let items = items.removingLast(count)
    var known: [UInt64]?
    if count > ValueDictionary.few {
      known = hashes.removingLast(count)
    } else {
      hashes.removeLast(count)
    }
    guard unique else { return ValueDictionary(items, hashes: known) }
    if let dictionary = ValueDictionary(unique: items, hashes: known) { return dictionary }
    throw BuilderError("a key that stands twice")
  }
}

extension Array {
  /// Moves the last elements into an array of their own; all of them, where there is little room left
  /// over, without touching one.
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

/// A reason without a place; the reader that asked adds the place.
struct BuilderError: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

extension ValueDictionary {
  private static var uidKey: Key { "CF$UID" }

  /// How XML spells a UID.
  static func uid(_ number: UInt64) -> ValueDictionary {
    [uidKey: .integer(WideInteger(number))]
  }

  /// The UID that a dictionary in XML stands for.
  var asUID: Value? {
    guard count == 1, case .integer(let number)? = self[Self.uidKey] else { return nil }
    return number.unsigned.map { .uid($0) }
  }
}
