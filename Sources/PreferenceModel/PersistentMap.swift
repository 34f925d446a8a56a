import PropertyList

/// A dictionary whose copies share their contents. A change costs O(log n) while a copy is held,
/// and happens in place where none is.
///
/// It is a hash array mapped trie: nodes of up to 32 slots, and five bits of the key's hash for
/// each level. Keys with equal hashes lie in one node below the last level, in no order.
package struct PersistentMap<Element: Sendable>: Sendable {
  fileprivate final class Leaf: Sendable {
    let key: Key
    let element: Element

    init(_ key: Key, _ element: Element) { (self.key, self.element) = (key, element) }
  }

  fileprivate enum Slot: Sendable {
    case leaf(Leaf)
    case node(Node)
  }

  fileprivate struct Node: Sendable {
    /// Which of the 32 slots are occupied; not used below the last level.
    var bitmap: UInt32 = 0
    var slots: [Slot] = []
  }

  private var root = Node()

  /// The number of keys.
  package private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The element of a key.
  subscript(key: Key) -> Element? { isEmpty ? nil : root.find(key) }

  /// Sets the element of a key. Cost: O(log n).
  mutating func set(_ element: Element, for key: Key) {
    if root.insert(Leaf(key, element), level: 0) { count += 1 }
  }

  /// Calls the body for every key and its element, in no order.
  func forEach(_ body: (Key, Element) -> Void) { root.forEach(body) }
}

extension PersistentMap.Node {
  private static var bits: UInt32 { 5 }
  private static var lastLevel: UInt32 { UInt32(UInt32.bitWidth) / bits }

  /// The bit of the hash's slot on that level, and the slot's index among the occupied ones.
  private func place(of hash: UInt32, level: UInt32) -> (bit: UInt32, index: Int) {
    let bit = UInt32(1) << (hash >> (level * Self.bits) & 31)
    return (bit, (bitmap & (bit - 1)).nonzeroBitCount)
  }

  fileprivate func find(_ key: Key) -> Element? {
    var node = self
    for level in 0...Self.lastLevel {
      let (bit, index) = node.place(of: key.hash, level: level)
      guard node.bitmap & bit != 0 else { return nil }
      switch node.slots[index] {
      case .leaf(let leaf): return leaf.key == key ? leaf.element : nil
      case .node(let next): node = next
      }
    }
    for case .leaf(let leaf) in node.slots where leaf.key == key { return leaf.element }
    return nil
  }

  /// - Returns: whether the key is new.
  fileprivate mutating func insert(_ leaf: PersistentMap.Leaf, level: UInt32) -> Bool {
    guard level <= Self.lastLevel else { return insertLast(leaf) }
    let (bit, index) = place(of: leaf.key.hash, level: level)
    guard bitmap & bit != 0 else {
      bitmap |= bit
      slots.insert(.leaf(leaf), at: index)
      return true
    }
    switch slots[index] {
    case .leaf(let old) where old.key == leaf.key:
      slots[index] = .leaf(leaf)
      return false
    case .leaf(let old):
      var node = PersistentMap.Node()
      _ = node.insert(old, level: level + 1)
      _ = node.insert(leaf, level: level + 1)
      slots[index] = .node(node)
      return true
    case .node(var node):
      // While the slot holds no second reference to the node, the node is changed in place and not
      // copied.
      slots[index] = .leaf(leaf)
      defer { slots[index] = .node(node) }
      return node.insert(leaf, level: level + 1)
    }
  }

  private mutating func insertLast(_ leaf: PersistentMap.Leaf) -> Bool {
    let index = slots.firstIndex { slot in
      if case .leaf(let old) = slot { old.key == leaf.key } else { false }
    }
    if let index { slots[index] = .leaf(leaf) } else { slots.append(.leaf(leaf)) }
    return index == nil
  }

  fileprivate func forEach(_ body: (Key, Element) -> Void) {
    for slot in slots {
      switch slot {
      case .leaf(let leaf): body(leaf.key, leaf.element)
      case .node(let node): node.forEach(body)
      }
    }
  }
}
