import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// What this owner knows of the owners of one list, of which it is one.
///
/// Promises, where several machines use a home (`ListStatement`), however many they are:
///
/// - Of each key it is known which rewrite changed it last, and of each list which rewrites its
///   owner knew. So a change that was made with knowledge of another one replaces that for ever,
///   whoever merges which lists, in whatever order: also one that sets a key back, or removes it.
/// - A list that another owner has made without having seen what this one has, because rewrites have
///   met or its view of the list was old, does not undo it: those keys are set again, and the list
///   is rewritten. They keep their rewrites, so that nobody takes them for new changes.
/// - Of two changes of a key that do not know each other, the one in the larger `Rewrite` counts.
///   That is the only thing that a clock decides.
/// - A list without a statement that counts, and a copy of an older one, is another program's:
///   `RecentChanges` decides.
///
/// A key's rewrite is kept until every owner that is known has seen it, and for an hour in any case,
/// for those that come; at most for 1 MiB of keys and values a list, the oldest go first. All is in
/// the metadata file too, with the values, so that it survives the owner and `kill -9`. What is not
/// protected: other programs' edits that this owner has adopted, and the removal of a list.
///
/// Half-broken states: without the metadata file, an owner has a new name, and nothing to protect.
/// A metadata file says which records of the journal are in it. Where the journal still has them, a
/// crash has prevented the rewrite, or the release of the journal: they are not made again as new
/// changes, but the list is merged with the metadata file (`resume`).
/// Where it is older than the list, as in a state directory that was put back, the statement of the
/// list says which number was our last.
/// After a start, a list whose statement does not name us counts as it is: it may have been removed
/// and made anew meanwhile.
struct ListOwners: Sendable {
  /// What this owner would state of the list as it has it.
  private var known = ListStatement()
  /// Of each other owner, which rewrites it knew when it wrote the last list that came from it.
  private var confirmed: [UInt64: [UInt64: UInt64]] = [:]
  /// What keys were set to again that the list has differently, until it is rewritten; nil if they
  /// were removed.
  private var restored: [Key: Value?] = [:]
  /// The number of the last journal record that the metadata file has.
  private var through: UInt64 = 0

  private static let mostBytes = 1 << 20
  /// Nanoseconds for which it is kept which rewrite changed a key, at least.
  private static let shortest: UInt64 = 3600 * 1_000_000_000

  init() {}

  /// Whether another owner is known.
  var hasOthers: Bool { known.contains.keys.contains { $0 != known.owner } }

  /// The name of the machine that changed the key last, if it was not this one.
  func host(of key: Key) -> String? {
    guard let owner = known.changes[key]?.owner, owner != known.owner else { return nil }
    return known.hosts[owner]
  }

  // MARK: - Lists of others

  /// The statement of a list that an owner has written since this one has last heard of it. It is
  /// nil if somebody else has written the list, or it is a copy.
  func news(_ list: ListFile.Contents) -> ListStatement? {
    guard let statement = list.statement,
      statement.number > known.contains[statement.owner] ?? 0
    else { return nil }
    return statement
  }

  /// Whether the list was made from one of ours, or from one that was.
  func isNamed(in statement: ListStatement) -> Bool { statement.contains[known.owner] != nil }

  /// Which of the keys count as they are here, and not as they are in the other one's list.
  private func unseen(_ keys: some Sequence<Key>, by other: ListStatement) -> Set<Key> {
    Set(
      keys.filter { key in
        guard let ours = known.changes[key], !other.knows(ours) else { return false }
        guard let theirs = other.changes[key], !known.knows(theirs) else { return true }
        return theirs < ours
      })
  }

  /// Adopts a list that another owner has written.
  /// - Parameters:
  ///   - statement: the statement of the list, which is news.
  ///   - values: its values.
  ///   - present: the location as it was before.
  /// - Returns: the keys to be set to what they were before, and those that were set again after an
  ///   earlier list, and are to become what this list has.
  mutating func merge(
    _ statement: ListStatement, _ values: ListValues, _ present: LocationSnapshot
  ) -> (ours: Set<Key>, theirs: Set<Key>) {
    // One that somebody here has changed since is unsaved like any other.
    restored = restored.filter { present.isChanged($0.key) && present[$0.key] == $0.value }
    let kept = unseen(
      known.changes.keys.filter { !present.isChanged($0) || restored.keys.contains($0) },
      by: statement)
    let theirs = Set(restored.keys).subtracting(kept)
    let ours = kept.filter { !restored.keys.contains($0) && values[$0] != present[$0] }
    for key in theirs { restored.updateValue(values[key], forKey: key) }
    for key in ours { restored.updateValue(present[key], forKey: key) }
    adopt(statement, keeping: kept)
    return (ours, theirs)
  }

  private mutating func adopt(_ statement: ListStatement, keeping kept: Set<Key>) {
    for key in Set(known.changes.keys).union(statement.changes.keys) where !kept.contains(key) {
      known.changes[key] = statement.changes[key]
    }
    known.contains.merge(statement.contains) { max($0, $1) }
    known.hosts.merge(statement.hosts) { $1 }
    confirmed[statement.owner] = statement.contains
    forgetConfirmed()
  }

  /// Forgets the rewrites that every other owner is known to have seen.
  private mutating func forgetConfirmed() {
    let others = known.contains.keys.filter { $0 != known.owner }
    let newest = known.contains.values.max() ?? 0
    let recent = newest - min(newest, Self.shortest)
    known.changes = known.changes.filter { key, change in
      change.number >= recent || restored.keys.contains(key)
        || others.contains { other in
          other != change.owner && confirmed[other]?[change.owner] ?? 0 < change.number
        }
    }
  }

  /// Adopts a list that is no other owner's news; nil if there is none.
  /// - Parameter differing: the keys whose values differ from those that this owner had. They have
  ///   the list's values now, or are unsaved.
  mutating func adopt(_ list: ListFile.Contents?, differing: Set<Key>) {
    // Others may have seen our changes in a list that says nothing of them.
    guard let statement = list?.statement else { return forgetChanges() }
    for key in differing where !restored.keys.contains(key) { known.changes[key] = nil }
    guard let last = statement.contains[known.owner] else { return }
    known.contains[known.owner] = max(last, known.number)
  }

  /// Forgets which rewrites have changed which keys.
  mutating func forgetChanges() { (known.changes, restored) = ([:], [:]) }

  // MARK: - Own lists

  /// Notes a rewrite, and returns the statement that the list gets.
  /// - Parameters:
  ///   - keys: the keys that it changes.
  ///   - values: the values of the list.
  ///   - record: the number of the last journal record that is in it.
  mutating func noteRewrite(
    _ keys: [Key], _ values: ListValues, through record: UInt64, now: Timestamp = .now
  ) -> ListStatement {
    if known.owner == 0 { known.owner = UInt64.random(in: 1...(.max)) }
    // Larger than any before: the time is, if one that came before was not kept.
    let number = max(known.number &+ 1, UInt64(max(0, now.nanoseconds)))
    known.contains[known.owner] = number
    known.hosts[known.owner] = Surroundings.hostName
    for key in keys {
      if let value = restored[key], value == values[key] { continue }
      known.changes[key] = Rewrite(owner: known.owner, number: number)
    }
    (restored, through) = ([:], record)
    shed(values)
    return known
  }

  /// Forgets the oldest changes where too much is kept.
  private mutating func shed(_ values: ListValues) {
    func size(_ key: Key) -> Int { key.utf8Count + (values[key]?.approximateSize ?? 0) + 16 }
    var bytes = known.changes.keys.reduce(0) { $0 + size($1) }
    guard bytes > Self.mostBytes else { return }
    let oldest = known.changes.sorted { $0.value < $1.value }
    for (key, _) in oldest where bytes > Self.mostBytes / 2 {
      bytes -= size(key)
      known.changes[key] = nil
    }
  }
}

// MARK: - The metadata file

extension ListOwners {
  /// The form in the metadata file; nil if there is nothing to keep.
  /// - Parameter values: the values of the list.
  func encoded(_ values: ListValues) -> Value? {
    if known.contains.isEmpty { return nil }
    var kept: ValueDictionary = [:]
    for key in known.changes.keys { kept[key] = values[key] }
    var root = known.value
    (root["values"], root["through"]) = (.dictionary(kept), ListStatement.value(through))
    return .dictionary(root)
  }

  /// Reads the form in the metadata file.
  /// - Returns: also the values of the keys that were changed; one that is not there was removed.
  static func decoded(_ value: Value) -> (owners: ListOwners, values: ValueDictionary)? {
    guard case .dictionary(let root) = value, let known = ListStatement(root),
      case .dictionary(let values)? = root["values"],
      let through = ListStatement.number(root["through"])
    else { return nil }
    var owners = ListOwners()
    (owners.known, owners.through) = (known, through)
    return (owners, values)
  }

  /// Goes on from the metadata file, where the list was read.
  /// - Parameters:
  ///   - kept: the values of the keys that were changed.
  ///   - replayed: of each key that the journal has, the number of the last record.
  /// - Returns: the changes that the list lacks, because the owner that wrote it has not seen them,
  ///   or a crash prevented its rewrite; and the keys of which the journal has nothing newer, so
  ///   that its records do not count.
  mutating func resume(
    _ list: ListFile.Contents?, kept: ValueDictionary, replayed: [Key: UInt64] = [:]
  ) -> (unseen: [Edit], known: Set<Key>) {
    let differing = Set(known.changes.keys.filter { list?.values[$0] != kept[$0] })
    guard let list, let statement = list.statement else {
      adopt(list, differing: differing)
      return ([], [])
    }
    let old = replayed.filter { $0.value <= through && known.changes[$0.key] != nil }.keys
    let isNews = news(list) != nil
    let others = known.changes.keys.filter {
      isNews && isNamed(in: statement) && replayed[$0] == nil
    }
    let ours = unseen(Array(old) + others, by: statement)
    for key in ours.intersection(differing) { restored.updateValue(kept[key], forKey: key) }
    if isNews { adopt(statement, keeping: ours) } else { adopt(list, differing: differing) }
    let edits = ours.intersection(differing).map { key -> Edit in
      kept[key].map { Edit.set(key, $0, .canonical) } ?? Edit.remove(key)
    }
    return (edits, Set(old))
  }
}
