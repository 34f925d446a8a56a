/// Puts values together for the readers that see a document as a stream of events.
///
/// All values of all open containers lie on one stack; closing a container takes its part off.
/// Cost: O(1) an event, and one copy of each value.
struct ValueBuilder {
  enum Container { case array, dictionary }

  private struct Frame {
    var container: Container
    var firstValue: Int
    var firstKey: Int
  }

  private var values: [Value] = []
  private var keys: [Key] = []
  private var frames: [Frame] = []
  private var count = 0
  private let limits: Limits
  /// Whether `{CF$UID: n}` is a UID, as XML spells it.
  private let findsUIDs: Bool

  init(limits: Limits, findsUIDs: Bool = false) {
    self.limits = limits
    self.findsUIDs = findsUIDs
  }

  /// The container that is open, innermost first.
  var open: Container? { frames.last?.container }

  /// The number of open containers.
  var depth: Int { frames.count }

  /// Whether a key waits for its value.
  var hasPendingKey: Bool {
    guard let frame = frames.last, frame.container == .dictionary else { return false }
    return keys.count - frame.firstKey > values.count - frame.firstValue
  }

  /// The finished value, once every container is closed.
  var root: Value? { frames.isEmpty ? values.first : nil }

  /// Opens a container. Throws a reason when the limit on depth is reached.
  mutating func begin(_ container: Container) throws(BuilderError) {
    guard frames.count < limits.depth else {
      throw BuilderError("nested deeper than \(limits.depth)")
    }
    frames.append(Frame(container: container, firstValue: values.count, firstKey: keys.count))
  }

  /// A key of the open dictionary.
  mutating func add(key: Key) { keys.append(key) }

  /// The last key again as a string value (`{ key; }` in old-style text).
  mutating func repeatKeyAsValue() throws(BuilderError) {
    if let key = keys.last { try add(.string(key.string)) }
  }

  /// A value of the open container, or the root.
  mutating func add(_ value: Value) throws(BuilderError) {
    count += 1
    guard count <= limits.count else { throw BuilderError("more than \(limits.count) values") }
    values.append(value)
  }

  /// Closes the open container. Of a key that stands twice the last value counts, as in
  /// CoreFoundation, unless `unique` is asked for.
  mutating func end(uniqueKeys unique: Bool = false) throws(BuilderError) {
    guard let frame = frames.popLast() else { return }
    switch frame.container {
    case .array:
      let items = Array(values[frame.firstValue...])
      values.removeLast(items.count)
      try add(.array(items))
    case .dictionary:
      let dictionary = try dictionary(values.count - frame.firstValue, unique: unique)
      try add((findsUIDs ? dictionary.asUID : nil) ?? .dictionary(dictionary))
    }
  }

  /// Moves the last pairs off the stacks, from the end: nothing is retained.
  private mutating func dictionary(
    _ count: Int, unique: Bool
  ) throws(BuilderError) -> ValueDictionary {
    let pairs = [ValueDictionary.Element](unsafeUninitializedCapacity: count) { pairs, filled in
      for position in (0..<count).reversed() {
        pairs.initializeElement(at: position, to: (keys.removeLast(), values.removeLast()))
      }
      filled = count
    }
    if let dictionary = ValueDictionary(unique: pairs) { return dictionary }
    if unique { throw BuilderError("a key that stands twice") }
    return ValueDictionary(pairs)
  }
}

/// A reason without a place; the reader that asked adds the place.
struct BuilderError: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

extension ValueDictionary {
  static var uidKey: Key { "CF$UID" }

  /// The UID that a dictionary in XML stands for.
  var asUID: Value? {
    guard count == 1, case .integer(let number)? = self[Self.uidKey] else { return nil }
    return number.unsigned.map { .uid($0) }
  }
}
