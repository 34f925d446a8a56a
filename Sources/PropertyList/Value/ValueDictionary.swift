/// Values by key: a dictionary of a property list, and the contents of a domain.
///
/// Two are equal when they hold the same values for the same keys. The keys stand in the order in which
/// they came, as long as none is removed: a list that was written in order is read in order, and
/// written again without being sorted.
///
/// Cost: a look-up, a change and a removal O(1), one hash, and a comparison with each key where there are
/// only a few; copies share their contents until one of them changes. Swift's `Dictionary` of the
/// same keys and values takes three to four times as long to fill, because of its hash and because its
/// items lie in the order of their hashes.
public struct ValueDictionary: Sendable {
  /// One key and its value.
  public typealias Element = (key: Key, value: Value)

  /// As it is kept: an array of tuples is slower to let go.
  struct Item {
    let key: Key
    var value: Value
  }

  private var items: [Item]
  /// Of the items, where there are more than a few.
  private var index = KeyIndex.none

  /// So many keys are compared one by one sooner than hashed.
  static let few = 8

  /// No keys.
  public init() { items = [] }

  /// No keys, and room for some.
  private init(minimumCapacity count: Int) {
    items = []
    items.reserveCapacity(count)
    if count > Self.few { index = KeyIndex(capacity: count) }
  }

  /// The pairs of a document; of a key that stands twice the last value counts. Cost: O(pairs).
  public init(_ pairs: some Sequence<Element>) {
    self.init(pairs.map { Item(key: $0.key, value: $0.value) }, hashes: nil)
  }

  /// As many pairs as are said, one after the other; of a key that stands twice the last value counts.
  @inline(__always)
  init<Failure>(
    count: Int, _ pair: (_ position: Int) throws(Failure) -> Element
  ) throws(Failure) {
    let isHashed = count > Self.few
    var hashes: [UInt64] = []
    if isHashed { hashes.reserveCapacity(count) }
    let items = try [Item](capacity: count) { items throws(Failure) in
      for position in 0..<count {
        let (key, value) = try pair(position)
        if isHashed { hashes.append(key.hash) }
        items.append(Item(key: key, value: value))
      }
    }
    self.init(items, hashes: isHashed ? hashes : nil)
  }

  /// - Parameter hashes: those of the keys, where there are more than a few and who made the keys had
  ///   their bytes at hand; nil where they are still to be made.
  init(_ items: [Item], hashes: [UInt64]?) {
    self = Self(unique: items, hashes: hashes) ?? Self(lastOf: items)
  }

  private init(lastOf items: [Item]) {
    self.init(minimumCapacity: items.count)
    for item in items { self[item.key] = item.value }
  }

  /// nil where a key stands twice.
  init?(unique items: [Item], hashes: [UInt64]?) {
    self.items = items
    if items.count > Self.few {
      guard fillIndex(hashes ?? items.map(\.key.hash)) else { return nil }
    } else {
      for position in items.indices
      where (0..<position).contains(where: { items[$0].key == items[position].key }) {
        return nil
      }
    }
  }

  /// Makes the index anew.
  /// - Returns: false where a key stands twice; the index is then of no use.
  private mutating func fillIndex(_ hashes: [UInt64], capacity: Int = 0) -> Bool {
    var index = KeyIndex(capacity: Swift.max(hashes.count, capacity))
    for (position, hash) in hashes.enumerated() {
      let probe = index.probe(hash) { items[$0].key == items[position].key }
      guard case .free(let slot) = probe else { return false }
      index.fill(slot, hash, position: position)
    }
    self.index = index
    return true
  }

  private func position(of key: Key) -> Int? {
    if items.count <= Self.few { return items.firstIndex { $0.key == key } }
    guard case .found(let position) = index.probe(key.hash, { items[$0].key == key }) else {
      return nil
    }
    return position
  }
}

extension Key {
  /// The hash that dictionaries use.
  @inline(__always)
  var hash: UInt64 { withBytes { KeyHash.of($0) } }
}

// MARK: - As a dictionary

extension ValueDictionary {
  /// The key's value; nil where there is no such key. Setting nil removes the key; the last one takes its
  /// place in the order.
  public subscript(key: Key) -> Value? {
    get { position(of: key).map { items[$0].value } }
    set {
      if let newValue { updateValue(newValue, forKey: key) } else { removeValue(forKey: key) }
    }
  }

  /// Gives the key the value.
  /// - Returns: the value that it had.
  @discardableResult
  public mutating func updateValue(_ value: Value, forKey key: Key) -> Value? {
    if let position = position(of: key) {
      let old = items[position].value
      items[position].value = value
      return old
    }
    items.append(Item(key: key, value: value))
    if items.count > Self.few { indexLast() }
    return nil
  }

  private mutating func indexLast() {
    guard items.count <= index.capacity, items.count > Self.few + 1 else {
      _ = fillIndex(items.map(\.key.hash), capacity: 2 * items.count)
      return
    }
    let hash = items[items.count - 1].key.hash
    if case .free(let slot) = index.probe(hash, { _ in false }) {
      index.fill(slot, hash, position: items.count - 1)
    }
  }

  /// Removes the key.
  /// - Returns: the value that it had.
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    guard let position = position(of: key) else { return nil }
    let last = items.count - 1
    if items.count > Self.few {
      index.remove(key.hash, position: position) { items[$0].key.hash }
      if position != last { index.move(items[last].key.hash, from: last, to: position) }
    }
    items.swapAt(position, last)
    return items.removeLast().value
  }

  /// The keys, in order. Cost: O(keys).
  public var keys: [Key] { items.map(\.key) }

  /// The values in the order of their keys. Cost: O(keys).
  public var values: [Value] { items.map(\.value) }

  /// The same keys with other values.
  public func mapValues<Failure>(
    _ transform: (Value) throws(Failure) -> Value
  ) throws(Failure) -> ValueDictionary {
    var result = self
    for position in items.indices {
      result.items[position].value = try transform(items[position].value)
    }
    return result
  }

  /// Both; of a key that both have, the other's value.
  public func merging(_ other: ValueDictionary) -> ValueDictionary {
    var result = self
    for (key, value) in other { result[key] = value }
    return result
  }
}

extension ValueDictionary: RandomAccessCollection {
  /// 0.
  public var startIndex: Int { 0 }
  /// The number of keys.
  public var endIndex: Int { items.count }
  /// The item at a place in the order.
  public subscript(position: Int) -> Element { (items[position].key, items[position].value) }
}

extension ValueDictionary: ExpressibleByDictionaryLiteral {
  /// A dictionary in source code; of a key that stands twice the last one counts.
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self.init(elements.map { (key: $0, value: $1) })
  }
}

extension ValueDictionary: Equatable {
  public static func == (left: ValueDictionary, right: ValueDictionary) -> Bool {
    guard left.count == right.count else { return false }
    if left.items.hasSameStorage(as: right.items) { return true }
    return left.items.indices.allSatisfy { position in
      let item = left.items[position]
      // Equal ones mostly have their keys in one order.
      return right.items[position].key == item.key
        ? right.items[position].value == item.value : right[item.key] == item.value
    }
  }
}

extension Array {
  /// Whether both are copies of one, neither changed since.
  fileprivate func hasSameStorage(as other: [Element]) -> Bool {
    withUnsafeBufferPointer { one in
      other.withUnsafeBufferPointer { $0.baseAddress == one.baseAddress && $0.count == one.count }
    }
  }
}

// MARK: - Order

extension ValueDictionary {
  /// Brings the keys into the order of their UTF-8 bytes. Cost: O(keys) where they stand so already, else
  /// O(n log n); little more than O(n) where few stand elsewhere.
  public mutating func sort() {
    guard !isSorted else { return }
    items = Self.sorted(items)
    if items.count > Self.few { _ = fillIndex(items.map(\.key.hash)) }
  }

  /// The items in the order of their keys' UTF-8 bytes. Cost: as that of `sort`.
  var sortedItems: [Item] { isSorted ? items : Self.sorted(items) }

  private var isSorted: Bool {
    items.indices.dropFirst().allSatisfy { items[$0 - 1].key < items[$0].key }
  }

  private static func sorted(_ items: [Item]) -> [Item] { order(of: items).map { items[$0] } }

  /// Sorts numbers, not the items, and compares in one buffer that holds the bytes of all keys:
  /// half of a list's writing time went into counting references while items changed places.
  private static func order(of items: [Item]) -> [Int] {
    var bytes: [UInt8] = []
    var ends: [Int] = [0]
    bytes.reserveCapacity(items.reduce(0) { $0 + $1.key.utf8Count })
    ends.reserveCapacity(items.count + 1)
    for item in items {
      item.key.withBytes { bytes.append(contentsOf: $0) }
      ends.append(bytes.count)
    }
    var order = Array(items.indices)
    bytes.withUnsafeBufferPointer { bytes in
      ends.withUnsafeBufferPointer { ends in
        order.sort { left, right in
          UnsafeBufferPointer(rebasing: bytes[ends[left]..<ends[left + 1]]).isLess(
            than: UnsafeBufferPointer(rebasing: bytes[ends[right]..<ends[right + 1]]))
        }
      }
    }
    return order
  }
}
