import PreferenceModel
import PreferenceTree
import SystemCalls

/// The parts of listings that are made before the kernel asks for them.
///
/// A process that reads a directory and looks at each file works for a millisecond on what one
/// READDIRPLUS gives. Meanwhile the loop, which has nothing to do, makes the next part, so that the
/// process need not wait for it.
///
/// Promises: a part that is used is what would be made now. All parts are dropped before a request
/// that changes something, before notices of others' changes are handled and before the trees do
/// what has become due, and whenever a tree has an effect (`Effect`), as after an fsync(2) that
/// decides about a text. None is used where the engine has a different generation
/// (`Engine.generation`). A process that begins to read a directory gets no part that was made for
/// one that began earlier. The nodes in a part have a look-up counted, as if the kernel had them;
/// dropping the part subtracts it.
///
/// If the driver ends while it has parts, and has saved its state since it made them, the successor
/// counts look-ups that the kernel does not know of: those nodes, some 190 a part, stay known until
/// the mount ends.
///
/// Threads: the loop's alone.
struct ListingAhead {
  private struct Made {
    let buffer: ListingBuffer
    let generation: Generation
    let end: Instant
  }

  /// The part that the kernel is expected to ask for next, and that is to be made; nil: none.
  var expected: ListingPart?
  private var made: [ListingPart: Made] = [:]

  /// The most parts that are kept at a time.
  private static let most = 4
  /// Bytes that a part has at most: a larger one would keep requests waiting while it is made.
  static let largest = 65536
  /// Milliseconds after which a part that nobody has asked for is dropped.
  private static let patience: Int64 = 100

  /// When the parts are to be dropped that nobody has asked for; nil: there are none.
  var deadline: Instant? { made.values.map(\.end).min() }

  /// Whether there is room for another part.
  var hasRoom: Bool { made.count < Self.most }

  /// Keeps a part.
  /// - Returns: the nodes whose look-up must be subtracted: those of an equal part.
  mutating func put(
    _ buffer: ListingBuffer, for part: ListingPart, _ generation: Generation
  ) -> [NodeID] {
    let new = Made(
      buffer: buffer, generation: generation,
      end: Instant.now.advanced(milliseconds: Self.patience))
    return made.updateValue(new, forKey: part)?.buffer.nodes ?? []
  }

  /// Removes a part, and returns it if it is what would be made now; nil: it is not, or was not
  /// made.
  /// - Returns: the part, and the nodes whose look-up must be subtracted.
  mutating func remove(
    _ part: ListingPart, _ generation: Generation?
  ) -> (buffer: ListingBuffer?, unused: [NodeID]) {
    guard let found = made.removeValue(forKey: part) else { return (nil, []) }
    guard found.generation == generation else { return (nil, found.buffer.nodes) }
    return (found.buffer, [])
  }

  /// Removes all parts.
  /// - Returns: the nodes whose look-up must be subtracted.
  mutating func removeAll() -> [NodeID] { removeAll { _, _ in true } }

  /// Removes the parts whose time is over.
  mutating func removeAll(until now: Instant) -> [NodeID] { removeAll { $1.end <= now } }

  /// Removes the parts of a directory.
  mutating func removeAll(of directory: NodeID) -> [NodeID] {
    removeAll { part, _ in part.directory == directory }
  }

  private mutating func removeAll(_ isOld: (ListingPart, Made) -> Bool) -> [NodeID] {
    guard !made.isEmpty else { return [] }
    let old = made.filter { isOld($0.key, $0.value) }
    for part in old.keys { made[part] = nil }
    return old.values.flatMap(\.buffer.nodes)
  }
}

extension Driver {
  /// Returns a part of a listing with attributes, as far as the tree gives them: one that was made
  /// ahead, or a new one. Expects that the kernel asks for the next part.
  func listing(_ part: ListingPart) throws(TreeError) -> ListingBuffer {
    if part.cookie == 0 { forget(ahead.removeAll(of: part.directory)) }
    let (found, unused) = ahead.remove(part, store.engine.generation)
    forget(unused)
    let buffer = if let found { found } else { try makeListing(part) }
    ahead.expected = buffer.next
    return buffer
  }

  /// Makes the part of a listing that the kernel is expected to ask for next, if that is more than
  /// names. Call it when no request waits. Cost: a few looks, where nothing is expected or other
  /// threads have sent something; else as for the request.
  /// - Returns: whether it has made one.
  func prepareListing() -> Bool {
    guard let part = ahead.expected, ahead.hasRoom, refusal == nil, !isEnding, !isHandingOver,
      mailbox.isEmpty,
      forest[part.directory].attributesGiven(part.directory, after: part.cookie) != .none
    else { return false }
    ahead.expected = nil
    var known: [DomainName] = []
    guard part.room <= ListingAhead.largest,
      gate.isAtHand(part.directory, nil, forest, &known),
      forest.listingNeeded(part.directory, after: part.cookie, since: nil) == nil,
      let generation = store.engine.generation, let buffer = try? makeListing(part)
    else { return false }
    forget(ahead.put(buffer, for: part, generation))
    return true
  }

  /// Drops the parts of listings that were made ahead. Call it before something changes.
  func dropListings() {
    ahead.expected = nil
    forget(ahead.removeAll())
  }

  /// Drops the parts that nobody has asked for in time.
  func dropLateListings(_ now: Instant) { forget(ahead.removeAll(until: now)) }

  private func forget(_ nodes: [NodeID]) {
    for node in nodes { forest[node].forget(node, 1) }
  }

  private func makeListing(_ part: ListingPart) throws(TreeError) -> ListingBuffer {
    let tree = forest[part.directory]
    let items = try tree.list(part.directory, after: part.cookie, since: listingVersion)
    let given = tree.attributesGiven(part.directory, after: part.cookie)
    let first = items.first?.cookie
    var buffer = ListingBuffer(part)
    buffer.fill(items) { buffer, item in
      // `.` and `..` have the cookies 1 and 2.
      item.cookie > 2 && given.includes(isFirst: item.cookie == first)
        ? buffer.addWithAttributes(item, self) : buffer.addWithoutAttributes(item)
    }
    return buffer
  }

  /// Returns a part of a listing for a kernel that takes no attributes with the names.
  func makeNames(_ part: ListingPart) throws(TreeError) -> ListingBuffer {
    let items = try forest[part.directory].list(
      part.directory, after: part.cookie, since: listingVersion)
    var buffer = ListingBuffer(part)
    buffer.fill(items) { buffer, item in buffer.add(item) }
    return buffer
  }
}
