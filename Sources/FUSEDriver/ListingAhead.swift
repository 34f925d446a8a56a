import PreferenceModel
import PreferenceTree
import SystemCalls

/// The parts of listings that are made before the kernel asks for them.
///
/// A process that reads a directory and looks at each file works for a millisecond on what one
/// READDIRPLUS gives. Meanwhile the loop, which has nothing to do, makes the next part, so that the
/// process need not wait for it.
///
/// Promises: a part that is used is what would be made now. All parts are dropped where a request
/// changes something and where the trees do what has become due, and none is used where the engine
/// has a different generation (`Engine.generation`). The nodes in a part have a look-up counted,
/// as if the kernel had them; dropping the part subtracts it.
///
/// If the driver ends while it has a part, and has answered a request since it made it, the
/// successor counts look-ups that the kernel does not know of: those nodes, some 190 a part, stay
/// known until the mount ends.
///
/// Threads: the loop's alone.
struct ListingAhead {
  private struct Made {
    let buffer: ListingBuffer
    let generation: Generation
    let end: Instant
  }

  /// The part that the kernel is expected to ask for next; nil: none, or it is made.
  var expected: ListingPart?
  private var made: [ListingPart: Made] = [:]

  /// How many parts there are at most: one for each process that reads a directory.
  private static let most = 4
  /// Milliseconds after which a part that nobody has asked for is dropped.
  private static let patience: Int64 = 100

  /// When the parts are to be dropped that nobody has asked for; nil: there are none.
  var deadline: Instant? { made.values.map(\.end).min() }

  /// Whether there is room for another part.
  var hasRoom: Bool { made.count < Self.most }

  mutating func put(_ buffer: ListingBuffer, for part: ListingPart, _ generation: Generation) {
    made[part] = Made(
      buffer: buffer, generation: generation,
      end: Instant.now.advanced(milliseconds: Self.patience))
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

  /// Removes all parts, or those that nobody has asked for until then.
  /// - Returns: the nodes whose look-up must be subtracted.
  mutating func removeAll(until now: Instant? = nil) -> [NodeID] {
    guard !made.isEmpty else { return [] }
    let old = made.filter { entry in now.map { entry.value.end <= $0 } ?? true }
    for part in old.keys { made[part] = nil }
    return old.values.flatMap(\.buffer.nodes)
  }
}

extension Driver {
  /// Returns a part of a listing with attributes, as far as the tree gives them.
  func listing(_ part: ListingPart) throws(TreeError) -> ListingBuffer {
    let (found, unused) = ahead.remove(part, store.engine.generation)
    forget(unused)
    let buffer = if let found { found } else { try makeListing(part) }
    ahead.expected = buffer.next
    return buffer
  }

  /// Makes the part of a listing that the kernel is expected to ask for next, if that is more than
  /// names. Call it when there is nothing else to do. Cost: nothing, where nothing is expected;
  /// else as for the request.
  /// - Returns: whether it has made one.
  func prepareListing() -> Bool {
    guard let part = ahead.expected, ahead.hasRoom, refusal == nil, !isEnding, !isHandingOver,
      forest[part.directory].attributesGiven(part.directory, after: part.cookie) != .none
    else { return false }
    ahead.expected = nil
    guard forest.listingNeeded(part.directory, after: part.cookie, since: nil) == nil,
      let generation = store.engine.generation, let buffer = try? makeListing(part)
    else { return false }
    ahead.put(buffer, for: part, generation)
    return true
  }

  /// Drops the parts of listings that were made ahead: something changes, or time is over.
  /// - Parameter now: drops only those that nobody has asked for until then; nil: all.
  func dropListings(until now: Instant? = nil) {
    if now == nil { ahead.expected = nil }
    forget(ahead.removeAll(until: now))
  }

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
      given.includes(isFirst: item.cookie == first)
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
