import PreferenceModel
import PropertyList

/// The nodes of keys of which nothing is known but their names and look-ups, as of nearly all in a
/// large mount, at some 30 bytes a node beside its name.
///
/// The table of nodes makes a `Node` of one (it is *expanded*) when a request other than a look-up
/// or a listing is about it, and makes it plain again when it has been left alone for a while
/// (`NodeTable.makePlain`). So most of the memory of a mount depends on how many nodes are in use,
/// not on how many the kernel remembers.
///
/// Threads: the tree's alone.
struct PlainNodes {
  /// What is known of a node, beside its number.
  struct Node {
    var path: KeyPath
    var lookups: UInt64
  }

  private struct Slot {
    var lookups: UInt32 = 0
    var domain: UInt32 = 0
    /// `.none`: the slot is free.
    var name = NameBlocks.Reference.none
  }

  /// The nodes whose numbers differ in the lowest bits alone.
  private final class Group {
    var slots = Array(repeating: Slot(), count: PlainNodes.groupSize)
    var count = 0
  }

  private static let groupBits: UInt64 = 6
  private static let groupSize = 1 << Int(groupBits)

  /// The groups, by the first bits of their nodes' numbers.
  private var groups: [UInt64: Group] = [:]
  private var index = HashIndex()
  private var names = NameBlocks()
  private var domains = DomainNumbers()
  /// Makes the keys of nodes that are taken out. A block is freed with the last of its names.
  private var keys = KeyMaker(largest: 4096)
  /// What the number of each node of the tree begins with.
  private let prefix: UInt64

  private(set) var count = 0

  /// - Parameter root: the root of the tree.
  init(root: NodeID) { prefix = root.rawValue & ~HashIndex.largest }

  // MARK: - Finding

  /// Whether there is a node of that number.
  func has(_ id: NodeID) -> Bool { slot(id) != nil }

  /// The node of that number; nil: there is none.
  subscript(id: NodeID) -> Node? {
    mutating get { slot(id).map { Node(path: path($0), lookups: UInt64($0.lookups)) } }
  }

  /// The number of the key's node; nil: there is none.
  mutating func find(_ path: KeyPath) -> NodeID? {
    guard count > 0, let domain = domains.find(path.domain) else { return nil }
    let hash = path.secretHash
    var candidate = index.candidate(hash)
    while let found = candidate {
      let id = NodeID(rawValue: prefix | found.number)
      if let slot = slot(id), slot.domain == domain, names.isEqual(slot.name, to: path.key) {
        return id
      }
      candidate = index.candidate(hash, after: found)
    }
    return nil
  }

  /// The numbers of all nodes, in no order.
  var ids: [NodeID] {
    var ids: [NodeID] = []
    ids.reserveCapacity(count)
    for (number, group) in groups {
      for (position, slot) in group.slots.enumerated() where slot.name != .none {
        ids.append(NodeID(rawValue: number << Self.groupBits | UInt64(position)))
      }
    }
    return ids
  }

  /// The paths of all nodes, in no order.
  mutating func paths() -> [KeyPath] {
    var paths: [KeyPath] = []
    paths.reserveCapacity(count)
    for group in groups.values {
      for slot in group.slots where slot.name != .none { paths.append(path(slot)) }
    }
    return paths
  }

  private func slot(_ id: NodeID) -> Slot? {
    guard let group = groups[id.rawValue >> Self.groupBits] else { return nil }
    let slot = group.slots[Self.position(id)]
    return slot.name == .none ? nil : slot
  }

  private static func position(_ id: NodeID) -> Int { Int(id.rawValue) & (groupSize - 1) }

  private mutating func path(_ slot: Slot) -> KeyPath {
    KeyPath(domain: domains[slot.domain], key: names.key(slot.name, of: &keys))
  }

  // MARK: - Changes

  /// Adds a node, which must not be there yet.
  /// - Returns: false if it does not fit: its name or its number is too long, or the kernel has
  ///   looked it up more than 4 billion times.
  mutating func insert(_ id: NodeID, _ node: Node) -> Bool {
    guard id.rawValue & ~HashIndex.largest == prefix, id.rawValue != prefix,
      let lookups = UInt32(exactly: node.lookups),
      let name = node.path.key.withBytes({ names.add($0) })
    else { return false }
    let slot = Slot(lookups: lookups, domain: domains.use(node.path.domain), name: name)
    let group = group(of: id)
    group.slots[Self.position(id)] = slot
    group.count += 1
    index.insert(id.rawValue & HashIndex.largest, node.path.secretHash)
    count += 1
    return true
  }

  /// Removes a node and returns it; nil if there is none.
  mutating func remove(_ id: NodeID) -> Node? {
    guard let slot = slot(id) else { return nil }
    let node = Node(path: path(slot), lookups: UInt64(slot.lookups))
    index.remove(id.rawValue & HashIndex.largest, node.path.secretHash)
    names.remove(slot.name)
    domains.endUse(slot.domain)
    let group = group(of: id)
    group.slots[Self.position(id)] = Slot()
    group.count -= 1
    if group.count == 0 { groups[id.rawValue >> Self.groupBits] = nil }
    count -= 1
    return node
  }

  /// Returns the group that a node of the number is in, and makes it if there is none.
  private mutating func group(of id: NodeID) -> Group {
    let number = id.rawValue >> Self.groupBits
    if let group = groups[number] { return group }
    let group = Group()
    groups[number] = group
    return group
  }

  /// Counts a look-up of the node.
  /// - Returns: false if the node is not there, or the count would be too large.
  mutating func addLookup(_ id: NodeID) -> Bool {
    guard let slot = slot(id), slot.lookups < UInt32.max else { return false }
    group(of: id).slots[Self.position(id)].lookups += 1
    return true
  }

  /// Subtracts look-ups that the kernel has forgotten, and removes the node after the last one.
  /// - Returns: false if the node is not there.
  mutating func forget(_ id: NodeID, _ count: UInt64) -> Bool {
    guard let slot = slot(id) else { return false }
    guard UInt64(slot.lookups) > count else { return remove(id) != nil }
    group(of: id).slots[Self.position(id)].lookups -= UInt32(count)
    return true
  }
}
