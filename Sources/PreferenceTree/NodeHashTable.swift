import PropertyList

/// Finds nodes by a hash: a table with open addressing, of 16 bytes a slot, of which at most three
/// quarters are in use.
///
/// The place of a node follows from the first bits of its hash. So a table that grows is read and
/// written from one end to the other, and does not look at the nodes: at a million of them that
/// takes some milliseconds. A `Dictionary` hashes its keys again, and its places are all over the
/// memory: requests waited for 0.4 s.
struct NodeHashTable {
  private struct Slot {
    var hash: UInt
    var node: Node
  }

  private var slots: [Slot?] = Array(repeating: nil, count: 1 << 3)
  /// How far a hash is shifted, so that it is the number of a slot.
  private var shift = UInt.bitWidth - 3

  /// How many nodes there are.
  private(set) var count = 0

  /// All nodes, in no order.
  var nodes: [Node] { slots.compactMap { $0?.node } }

  /// The hashes of all nodes, in no order. Cost: no look at the nodes.
  var hashes: [UInt] { slots.compactMap { $0?.hash } }

  /// The node with that hash; nil: there is none.
  /// - Parameter isIt: whether a node with that hash is the one that is looked for.
  func find(_ hash: UInt, _ isIt: (Node) -> Bool) -> Node? {
    slots[position(hash, isIt)]?.node
  }

  /// Adds a node, or puts it in the place of the one that `isIt` holds for.
  mutating func insert(_ node: Node, _ hash: UInt, _ isIt: (Node) -> Bool) {
    if (count + 1) * 4 > slots.count * 3 { grow() }
    let position = position(hash, isIt)
    if slots[position] == nil { count += 1 }
    slots[position] = Slot(hash: hash, node: node)
  }

  /// Removes the node, if it is there. The nodes behind it that collided move up.
  mutating func remove(_ hash: UInt, _ isIt: (Node) -> Bool) {
    var hole = position(hash, isIt)
    guard slots[hole] != nil else { return }
    count -= 1
    var next = hole
    while true {
      next = (next + 1) & mask
      guard let slot = slots[next] else { break }
      // A node may move up unless the slot where its probe begins lies behind the hole.
      guard (next - home(slot.hash)) & mask >= (next - hole) & mask else { continue }
      slots[hole] = slot
      hole = next
    }
    slots[hole] = nil
  }

  private var mask: Int { slots.count - 1 }

  /// The slot where the probe for the hash begins.
  private func home(_ hash: UInt) -> Int { Int(hash >> shift) }

  /// The slot that has the node, or the free one that it would get.
  private func position(_ hash: UInt, _ isIt: (Node) -> Bool) -> Int {
    var position = home(hash)
    // A node is touched only if its hash agrees: to copy a reference is to count it in the node.
    while let other = slots[position]?.hash {
      if other == hash, let node = slots[position]?.node, isIt(node) { break }
      position = (position + 1) & mask
    }
    return position
  }

  private mutating func grow() {
    var old = slots
    slots = Array(repeating: nil, count: 2 * old.count)
    shift -= 1
    for index in old.indices {
      // Taken out, and not copied: a copy would count a reference, in the memory of the node.
      guard let slot = old[index].take() else { continue }
      slots[position(slot.hash) { _ in false }] = slot
    }
  }
}

/// The nodes of a tree, by their numbers.
struct NumberedNodes {
  private var table = NodeHashTable()

  // A product by an odd number is different for each number, and its first bits are well mixed
  // (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  private static let factor: UInt = 0x9E37_79B9_7F4A_7C15
  /// The product of both is 1.
  private static let inverse: UInt = 0xF1DE_83E1_9937_733D

  private func hash(_ id: NodeID) -> UInt { UInt(id.rawValue) &* Self.factor }

  subscript(id: NodeID) -> Node? {
    get { table.find(hash(id)) { _ in true } }
    set {
      if let newValue {
        table.insert(newValue, hash(id)) { _ in true }
      } else {
        table.remove(hash(id)) { _ in true }
      }
    }
  }

  var count: Int { table.count }

  /// The numbers of all nodes, in no order.
  var ids: [NodeID] { table.hashes.map { NodeID(rawValue: UInt64($0 &* Self.inverse)) } }

  /// All nodes, in no order.
  var all: [Node] { table.nodes }
}

/// The nodes of keys, by domain and key. The paths are those of the nodes, so that they are not
/// kept twice: a node must be removed before its path changes, and inserted after it.
struct KeyNodes {
  private var table = NodeHashTable()

  subscript(path: KeyPath) -> Node? {
    get { table.find(hash(path)) { $0.keyFile?.path == path } }
    set {
      if let newValue {
        table.insert(newValue, hash(path)) { $0.keyFile?.path == path }
      } else {
        table.remove(hash(path)) { $0.keyFile?.path == path }
      }
    }
  }

  /// Removes the node, which has this path. Does nothing if the table has a different node of the
  /// path.
  mutating func remove(_ node: Node, _ path: KeyPath) { table.remove(hash(path)) { $0 === node } }

  private func hash(_ path: KeyPath) -> UInt { UInt(path.secretHash) }

  var count: Int { table.count }

  /// All nodes, in no order.
  var all: [Node] { table.nodes }
}
