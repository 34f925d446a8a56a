import PreferenceModel
import PropertyList
import SystemCalls

/// Names that left their directory a moment ago: of keys that were removed or renamed, and of keys
/// that were moved away to a scratch file.
///
/// The name of a key that was removed or renamed is hidden for a second, that of one that was moved
/// away until the move ends, even if another place has the key, so that "unlink, then create
/// exclusively" works. A key that is made again under the name gets what was known of the old
/// one (`Former`).
///
/// A key that is renamed to a scratch name (an editor's backup) is moved away: the mount shows the
/// move at once, and the engine still has the key. If the key is made again within 5 s, the scratch
/// file is only a backup. Otherwise the key is renamed then to the scratch file's name. (An editor
/// on a busy machine may take more than a second. One that finds its backup gone leaves it there.)
///
/// A pure state machine: it asks no engine and no clock. `endNextDue` removes the oldest name
/// whose time is over, `endNextMove` the oldest move whether or not it is over; both return what
/// the tree must do.
///
/// Threads: the tree's alone.
///
/// Cost: each call O(1), on average, however many names there are; `endNextMove` O(moves),
/// `keys` and `forgetAll` O(names).
final class RemovedNames {
  /// What a key was when its name left.
  struct Former: Equatable {
    /// Its type; nil if it is not known.
    var kind: Kind?
    /// Its permission bits; nil if they were never set.
    var mode: UInt32?
    /// The place of its value, if that was the domain's own.
    var place: Place?
  }

  /// What the tree must do when the time of a removed name ends.
  enum Ending: Equatable {
    /// Invalidate the hidden name, so that the value of another place shows again, if there is one.
    case show(KeyPath)
    /// Complete the move: the key gets the name of the scratch file `holder`.
    case completeMove(KeyPath, holder: NodeID)
  }

  /// A key that was moved away.
  struct Move: Equatable {
    var source: KeyPath
    var former: Former
  }

  private struct RemovedName {
    var until: Instant
    var former: Former
    /// The scratch file that the key was moved away to; nil for a removed key.
    var holder: NodeID?
  }

  private var removedNames: [KeyPath: RemovedName] = [:]
  /// The key that was moved away to each scratch file.
  private var sources: [NodeID: KeyPath] = [:]
  /// The names from `first` on, the oldest first, and among them some that have ended. The
  /// first has not ended.
  private var queue: [(until: Instant, path: KeyPath)] = []
  private var first = 0
  /// Told of a scratch file to which no key was moved away any more.
  private let changes: TreeChanges

  init(_ changes: TreeChanges = TreeChanges()) { self.changes = changes }

  /// Milliseconds for which the name of a removed or renamed key is hidden.
  static let duration: Int64 = 1000
  /// Milliseconds after which a key that was moved away gets the scratch file's name.
  static let moveDuration: Int64 = 5000

  // MARK: - What is known

  /// When the time of the next name ends; nil if there is none.
  var deadline: Instant? { first < queue.count ? queue[first].until : nil }

  /// Whether the name is among these. It may no longer be hidden: one whose time is over is removed
  /// from here at the next tick.
  func contains(_ path: KeyPath) -> Bool { removedNames[path] != nil }

  /// The keys of the domain whose names left.
  func keys(of domain: DomainName) -> Set<Key> {
    Set(removedNames.keys.lazy.filter { $0.domain == domain }.map(\.key))
  }

  /// Whether a look-up must not find the name, whatever places have.
  func hides(_ path: KeyPath, at now: Instant) -> Bool {
    guard let removed = removedNames[path] else { return false }
    return removed.holder != nil || now < removed.until
  }

  /// Whether the key was moved away, so that the engine still has it.
  func isMovedAway(_ path: KeyPath) -> Bool { removedNames[path]?.holder != nil }

  /// What the key was; nil if its name did not leave.
  func former(_ path: KeyPath) -> Former? { removedNames[path]?.former }

  /// The key that was moved away to the scratch file; nil if there is none.
  func source(of holder: NodeID) -> KeyPath? { sources[holder] }

  /// The same, with what the key was.
  func move(to holder: NodeID) -> Move? {
    sources[holder].flatMap { path in
      removedNames[path].map { Move(source: path, former: $0.former) }
    }
  }

  // MARK: - Names leave

  /// Notes that the key was removed, or renamed.
  func noteRemoval(_ path: KeyPath, _ former: Former, at now: Instant) {
    begin(path, former, holder: nil, now)
  }

  /// Notes that the key was moved away to the scratch file.
  func noteMove(_ path: KeyPath, _ former: Former, to holder: NodeID, at now: Instant) {
    begin(path, former, holder: holder, now)
    sources[holder] = path
  }

  private func begin(
    _ path: KeyPath, _ former: Former, holder: NodeID?, _ now: Instant
  ) {
    forget(path)
    let until = now.advanced(milliseconds: holder == nil ? Self.duration : Self.moveDuration)
    removedNames[path] = RemovedName(until: until, former: former, holder: holder)
    // Moves last longer than removals.
    var place = queue.endIndex
    while place > first, queue[place - 1].until > until { place -= 1 }
    queue.insert((until, path), at: place)
  }

  /// Removes what has ended from the front of the queue.
  private func trimQueue() {
    while first < queue.count, removedNames[queue[first].path]?.until != queue[first].until {
      first += 1
    }
    guard first > queue.count / 2 else { return }
    queue.removeFirst(first)
    first = 0
  }

  // MARK: - Names are forgotten

  /// Forgets the name, because the key is there again, or the tree has dealt with it. A
  /// scratch file that the key was moved away to is an ordinary one from then on.
  func forget(_ path: KeyPath) {
    guard let removed = removedNames.removeValue(forKey: path) else { return }
    if let holder = removed.holder {
      sources[holder] = nil
      changes.note(holder)
    }
    trimQueue()
  }

  /// Forgets every name of the domain.
  /// - Returns: the keys.
  func forgetAll(in domain: DomainName) -> [Key] {
    let paths = removedNames.keys.filter { $0.domain == domain }
    for path in paths { forget(path) }
    return paths.map(\.key)
  }

  /// Ends the oldest name whose time is over; nil if none is. Endings are returned one at a time,
  /// because carrying one out may end another one.
  func endNextDue(at now: Instant) -> Ending? {
    guard first < queue.count, queue[first].until <= now else { return nil }
    return end(queue[first].path)
  }

  /// Ends the oldest move from the domain (nil means from any); nil if there is none left.
  func endNextMove(from domain: DomainName? = nil) -> Ending? {
    let moves = sources.values.filter { domain == nil || $0.domain == domain }
    let oldest = moves.compactMap { path in removedNames[path].map { (path, $0.until) } }
      .min { $0.1 < $1.1 }
    return oldest.flatMap { end($0.0) }
  }

  private func end(_ path: KeyPath) -> Ending? {
    guard let removed = removedNames[path] else { return nil }
    forget(path)
    return removed.holder.map { .completeMove(path, holder: $0) } ?? .show(path)
  }
}

extension RemovedNames.Former {
  /// What the key with that value is.
  init(_ path: KeyPath, _ value: Resolution) {
    (kind, mode) = (value.kind, value.mode)
    place = value.location.domain == path.domain ? value.location.place : nil
  }
}
