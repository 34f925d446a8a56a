/// A dictionary of values by key: a value of a property list, or the contents of a domain.
///
/// Two dictionaries are equal if they hold the same values for the same keys. The keys are in the
/// order in which they were added, until one is removed. So a list that was written in sorted order
/// is read in sorted order, and is written again without being sorted.
///
/// Cost: a look-up, a change and a removal are O(1); up to 8 keys are compared one by one. Copies
/// share their contents until one of them changes, which copies them: O(keys). Swift's `Dictionary`
/// of the same keys and values takes several times as long to fill, because of its hash and
/// because its items are in the order of their hashes.
public struct ValueDictionary: Sendable {
  /// One key and its value.
  public typealias Element = (key: Key, value: Value)

  /// One key and its value, as they are stored. An array of tuples takes longer to release.
  struct Item {
    let key: Key
    var value: Value
  }

  private var items: [Item]
  /// The positions of the keys in `items`; `none` if there are at most `few` keys.
  private var index = KeyIndex.none

  /// Up to this number of keys, comparing them one by one is quicker than hashing.
  static let few = 8

  /// Creates an empty dictionary.
  public init() { items = [] }

  /// Creates a dictionary of the pairs. If a key occurs twice, the last value counts. Cost:
  /// O(pairs).
  public init(_ pairs: some Sequence<Element>) {
    self.init(pairs.map { Item(key: $0.key, value: $0.value) })
  }

  /// Creates a dictionary of `count` pairs, each of which the closure returns for its position. If
  /// a key occurs twice, the first value counts, as in a binary list that Foundation reads.
  @inline(__always)
  init<Failure>(
    firstOf count: Int, _ pair: (_ position: Int) throws(Failure) -> Element
  ) throws(Failure) {
    let items = try [Item](capacity: count) { items throws(Failure) in
      for position in 0..<count {
        let (key, value) = try pair(position)
        items.append(Item(key: key, value: value))
      }
    }
    self = Self(unique: items) ?? Self(lastOf: items.reversed())
  }

  /// Creates a dictionary of the items. If a key occurs twice, the last value counts.
  init(_ items: [Item]) { self = Self(unique: items) ?? Self(lastOf: items) }

  private init(lastOf items: [Item]) {
    self.init()
    for item in items { self[item.key] = item.value }
  }

  /// Creates a dictionary of the items; nil if a key occurs twice.
  init?(unique items: [Item]) {
    self.items = items
    if items.count > Self.few {
      guard fillIndex() else { return nil }
    } else {
      for position in items.indices
      where (0..<position).contains(where: { items[$0].key == items[position].key }) {
        return nil
      }
    }
  }

  /// Builds the index of all keys.
  /// - Returns: false if a key occurs twice; the index is then unchanged.
  private mutating func fillIndex(capacity: Int = 0) -> Bool {
    let index = KeyIndex(
      count: items.count, capacity: capacity, hash: { items[$0].key.hash },
      isSame: { items[$0].key == items[$1].key })
    guard let index else { return false }
    self.index = index
    return true
  }

  private func position(of key: Key) -> Int? {
    if items.count <= Self.few { return items.firstIndex { $0.key == key } }
    return key.withBytes { bytes in
      guard case .found(let position) = index.probe(key.hash, { items[$0].key.holds(bytes) })
      else { return nil }
      return position
    }
  }
}

// MARK: - As a dictionary

extension ValueDictionary {
  /// The key's value; nil if the dictionary does not have the key. Setting nil removes the key, and
  /// the last key moves to its position.
  public subscript(key: Key) -> Value? {
    get {
      guard let position = position(of: key) else { return nil }
      return items[position].value
    }
    set {
      if let newValue { updateValue(newValue, forKey: key) } else { removeValue(forKey: key) }
    }
  }

  /// Sets the key to the value.
  /// - Returns: the previous value; nil if the dictionary did not have the key.
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

  /// Adds the last item to the index, which is built again if it is full or there was none.
  private mutating func indexLast() {
    guard items.count <= index.capacity, items.count > Self.few + 1 else {
      _ = fillIndex(capacity: 2 * items.count)
      return
    }
    let hash = items[items.count - 1].key.hash
    if case .free(let slot) = index.probe(hash, { _ in false }) {
      index.fill(slot, hash, position: items.count - 1)
    }
  }

  /// Removes the key. The last key moves to its position.
  /// - Returns: the previous value; nil if the dictionary did not have the key.
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

  /// The keys, in the order of the dictionary. Cost: O(keys).
  public var keys: [Key] { items.map(\.key) }

  /// The values, in the order of their keys. Cost: O(keys).
  public var values: [Value] { items.map(\.value) }

  /// Returns a dictionary of the same keys, each with its transformed value.
  public func mapValues<Failure>(
    _ transform: (Value) throws(Failure) -> Value
  ) throws(Failure) -> ValueDictionary {
    var result = self
    for position in items.indices {
      result.items[position].value = try transform(items[position].value)
    }
    return result
  }

  /// Returns a dictionary with the keys of both. If both have a key, the value of `other` counts.
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
  /// The key and the value at a position.
  public subscript(position: Int) -> Element { (items[position].key, items[position].value) }
}

extension ValueDictionary: ExpressibleByDictionaryLiteral {
  /// Creates a dictionary from a literal. If a key occurs twice, the last value counts.
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
      // Equal dictionaries mostly have their keys in the same order.
      return right.items[position].key == item.key
        ? right.items[position].value == item.value : right[item.key] == item.value
    }
  }
}

extension Array {
  /// Whether both arrays share their storage, as a copy and its unchanged original do.
  fileprivate func hasSameStorage(as other: [Element]) -> Bool {
    withUnsafeBufferPointer { one in
      other.withUnsafeBufferPointer { $0.baseAddress == one.baseAddress && $0.count == one.count }
    }
  }
}

// MARK: - Order

extension ValueDictionary {
  /// Sorts the keys by their UTF-8 bytes. Cost: O(keys) if they are sorted already, little more if
  /// only a few are out of order, else O(n log n).
  public mutating func sort() {
    guard !isSorted else { return }
    items = Self.sorted(items)
    if items.count > Self.few { _ = fillIndex() }
  }

  /// The items sorted by the UTF-8 bytes of their keys. Cost: as `sort`.
  var sortedItems: [Item] { isSorted ? items : Self.sorted(items) }

  private var isSorted: Bool {
    items.indices.dropFirst().allSatisfy { items[$0 - 1].key < items[$0].key }
  }

  private static func sorted(_ items: [Item]) -> [Item] { order(of: items).map { items[$0] } }

  /// Returns the positions of the items in sorted order.
  ///
  /// It sorts positions instead of items, and compares in one buffer that holds the bytes of all
  /// keys. Sorting the items would take much of the time to write a list, because every swap of two
  /// items counts references.
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
