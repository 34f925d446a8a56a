import PreferenceModel
import PropertyList
import SystemCalls

/// What this owner knows of the owners of one list, of which it is one.
///
/// Promises, where several machines use a home (`ListStatement`):
///
/// - What another owner changes in a list that has our changes counts, whenever that is: also a key
///   that it sets back, or removes.
/// - A list that another owner has made without having seen our last changes, because two rewrites
///   have met or its view of the list was old, does not undo them: the keys that we changed in the
///   rewrites that it lacks are set again, and the list is rewritten. No time decides about that.
/// - A key that both have changed without knowledge of each other gets our value again, too. The
///   other one then sees in our list that we know its change, and adopts ours.
/// - A list without a statement that counts, and a copy of an older one, is another program's:
///   `RecentChanges` decides.
///
/// For that it keeps in `log` the keys that it has changed, until each other owner of the list is
/// known to have seen that; at most 1 MiB of keys and values a list, the oldest go first. They are
/// in the metadata file too, with their values, so that they survive the owner and `kill -9`. What
/// is not protected: other programs' edits that this owner has adopted, and the removal of a list;
/// nor another owner's change of a key that we had changed, which it made with our change in view
/// while a third one overwrote ours: no statement says that of a single key.
///
/// Half-broken states: without the metadata file, an owner has a new name, and nothing to protect.
/// Where the metadata file is of a rewrite that a crash has prevented, the journal has its changes.
/// Where it is older than the list, as in a state directory that was put back, the statement of the
/// list says which number was our last.
/// A list whose statement does not name us was made without any of ours: what we have set is kept;
/// what we have removed is not, because somebody may have set it anew; after a start neither,
/// because the list may have been removed and made anew meanwhile.
struct ListOwners: Sendable {
  /// This owner's name; 0 if it has stated nothing yet.
  private var own: UInt64 = 0
  /// Of each owner, the last rewrite whose changes are in what this one has of the list.
  private var contains: [UInt64: UInt64] = [:]
  /// Of each other owner from which a list came, the last of our rewrites that this list contains.
  private var confirmed: [UInt64: UInt64] = [:]
  /// The keys that this owner has changed, each with the number of its last rewrite that did.
  private var log: [Key: UInt64] = [:]

  private static let mostBytes = 1 << 20

  init() {}

  /// Whether another owner is known.
  var hasOthers: Bool { contains.keys.contains { $0 != own } }

  /// Whether nothing is known.
  private var isEmpty: Bool { contains.isEmpty }

  // MARK: - Lists of others

  /// The statement of a list that another owner has written since this one has last heard of it.
  /// It is nil if somebody else has written the list, or it is a copy.
  func news(_ list: ListFile.Contents) -> ListStatement? {
    guard let statement = list.statement, statement.owner != own,
      statement.number > contains[statement.owner] ?? 0
    else { return nil }
    return statement
  }

  /// Which of the keys this owner has changed without the other one having seen it; nil if the
  /// other one has seen none of our lists.
  func unseen(_ keys: Set<Key>, by other: ListStatement) -> Set<Key>? {
    guard let last = other.contains[own] else { return nil }
    return keys.filter { log[$0] ?? 0 > last }
  }

  /// Whether this owner has changed the key, and does not know whether all others have seen it.
  func hasChanged(_ key: Key) -> Bool { log[key] != nil }

  /// Adopts what the list says; nil if there is none.
  /// - Parameter differing: the keys whose values differ from those that this owner had. They have
  ///   the list's values now, or are unsaved.
  mutating func adopt(_ list: ListFile.Contents?, differing: Set<Key>) {
    // Others may have seen our changes in a list that says nothing of them.
    guard let list, let known = list.statement else { return forgetChanges() }
    for key in differing { log[key] = nil }
    let statement = news(list)
    let number = [contains[own], known.contains[own]].compactMap { $0 }.max()
    if let statement { contains = statement.contains }
    contains[own] = number
    guard let statement else { return }
    confirmed[statement.owner] = statement.contains[own] ?? 0
    let least = contains.keys.filter { $0 != own }.map { confirmed[$0] ?? 0 }.min() ?? 0
    log = log.filter { $0.value > least }
  }

  /// Forgets what this owner has changed.
  mutating func forgetChanges() { log = [:] }

  // MARK: - Own lists

  /// Notes a rewrite, and returns the statement that the list gets.
  /// - Parameters:
  ///   - keys: the keys that it changes.
  ///   - values: the values of the list.
  mutating func noteRewrite(
    _ keys: [Key], _ values: ListValues, now: Timestamp = .now
  ) -> ListStatement {
    if own == 0 { own = UInt64.random(in: 1...(.max)) }
    // Larger than any before: the time is, if one that came before was not kept.
    let number = max((contains[own] ?? 0) &+ 1, UInt64(max(0, now.nanoseconds)))
    contains[own] = number
    for key in keys { log[key] = number }
    shed(values)
    return ListStatement(owner: own, contains: contains)
  }

  /// Forgets the oldest changes where too much is kept.
  private mutating func shed(_ values: ListValues) {
    func size(_ key: Key) -> Int { key.utf8Count + (values[key]?.approximateSize ?? 0) + 16 }
    var bytes = log.keys.reduce(0) { $0 + size($1) }
    guard bytes > Self.mostBytes else { return }
    for (key, _) in log.sorted(by: { $0.value < $1.value }) where bytes > Self.mostBytes / 2 {
      bytes -= size(key)
      log[key] = nil
    }
  }
}

// MARK: - The metadata file

extension ListOwners {
  /// The form in the metadata file; nil if there is nothing to keep.
  /// - Parameter values: the values of the list.
  func encoded(_ values: ListValues) -> Value? {
    if isEmpty { return nil }
    var known: [Value] = []
    for (owner, last) in contains { known += [Self.value(owner), Self.value(last)] }
    var (keys, numbers): ([Value], [Value]) = ([], [])
    var kept: ValueDictionary = [:]
    for (key, number) in log {
      keys.append(.string(key.string))
      numbers.append(Self.value(number))
      kept[key] = values[key]
    }
    let root: ValueDictionary = [
      "own": Self.value(own), "contains": .array(known), "keys": .array(keys),
      "numbers": .array(numbers), "values": .dictionary(kept),
    ]
    return .dictionary(root)
  }

  /// Reads the form in the metadata file.
  /// - Returns: also the values of the keys that the owner has changed; one that is not there was
  ///   removed.
  static func decoded(_ value: Value) -> (owners: ListOwners, values: ValueDictionary)? {
    guard case .dictionary(let root) = value, let own = number(root["own"]),
      case .array(let known)? = root["contains"], known.count % 2 == 0,
      case .array(let keys)? = root["keys"], case .array(let numbers)? = root["numbers"],
      keys.count == numbers.count, case .dictionary(let values)? = root["values"]
    else { return nil }
    var owners = ListOwners()
    owners.own = own
    for index in stride(from: 0, to: known.count, by: 2) {
      guard let owner = number(known[index]), let last = number(known[index + 1]) else { continue }
      owners.contains[owner] = last
    }
    for case (.string(let name), let last) in zip(keys, numbers) {
      owners.log[Key(name)] = number(last)
    }
    return (owners, values)
  }

  private static func value(_ number: UInt64) -> Value { .integer(WideInteger(number)) }

  private static func number(_ value: Value?) -> UInt64? {
    guard case .integer(let number)? = value else { return nil }
    return number.unsigned
  }

  /// Goes on from the metadata file, where the list was read.
  /// - Parameter kept: the values of the keys that this owner had changed.
  /// - Returns: the changes that the list lacks, because the owner that wrote it has not seen them.
  mutating func resume(_ list: ListFile.Contents?, kept: ValueDictionary) -> [Edit] {
    let differing = Set(log.keys.filter { list?.values[$0] != kept[$0] })
    let statement = list.flatMap { news($0) }
    let unseen = statement.flatMap { self.unseen(differing, by: $0) } ?? []
    adopt(list, differing: differing)
    return unseen.map { key -> Edit in
      kept[key].map { Edit.set(key, $0, .canonical) } ?? Edit.remove(key)
    }
  }
}
