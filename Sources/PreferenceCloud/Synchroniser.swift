import PropertyList

/// Keeps the keys of one host and those of the server the same: a pure state machine. What happens
/// comes in as events, and what must be done goes out as actions; it knows no network, no store and
/// no clock.
///
/// Promises:
/// - Every host that has heard of the same revisions has the same values, in whatever order and
///   however often it heard of them. Of two sets without knowledge of each other the one with the
///   later stamp wins, on every host.
/// - A set that this host acknowledged is the value, was replaced by a later set of this host, was
///   replaced by a host that knew of it, or is a loser in the state.
/// - The changes of one batch are pushed as one transaction, unless some of its keys have lost.
/// - A push that may or may not have arrived is repeated, and takes effect once: its stamp tells.
///
/// - After a change of account, the values are those of the new one. A set that the old one never got
///   is a loser.
/// - Where the server went back to an earlier state, from a backup, this host brings back what it
///   knows to be later.
///
/// Threads: one caller at a time; it has no lock. The caller saves `removeUnsaved()` in one step with
/// the edits, before it carries out other actions, so that an end at any moment loses and repeats
/// nothing.
public struct Synchroniser: Sendable {
  /// What has happened.
  public enum Event: Equatable, Sendable {
    /// The user set keys, or removed them (nil), in one change.
    case set([CloudKey: Value?])
    /// The server answers again, or for the first time.
    case connected
    /// The server no longer answers. What was pushed may have arrived.
    case disconnected
    /// The answer to `.list`: every record, the revision that they are of, and whose they are.
    case listed([CloudKey: CloudState.Known], revision: Int64, account: String)
    /// Changes that others, or this host, made on the server at one revision; nil: the key's record
    /// was deleted.
    case changed([CloudKey: CloudRecord?], revision: Int64)
    /// The revisions that the watch needs are no longer there.
    case compacted
    /// Some time has passed: an hour, say.
    case tick
    /// The push was carried out.
    case pushed(revision: Int64)
    /// The push was refused, because records have other revisions than it was compared with. These
    /// are the ones at that revision; nil: there was none.
    case refused([CloudKey: CloudState.Known?], revision: Int64)
  }

  /// What must be done.
  public enum Action: Equatable, Sendable {
    /// Ask the server for all records.
    case list
    /// Hear of changes from this revision on.
    case watch(from: Int64)
    /// Write the records in one transaction, if each has the revision that is named (0: it is not
    /// there).
    case push([Push])
    /// Delete the records of old removals, each only if it still has that revision. No answer is
    /// awaited; the watch tells of it.
    case purge([CloudKey: Int64])
    /// Set the keys on this host, or remove them (nil), in one change. It is not a set of the user's.
    case edit([CloudKey: Value?])
  }

  /// One record of a push.
  public struct Push: Equatable, Sendable {
    /// The key.
    public let key: CloudKey
    /// Its new record.
    public let record: CloudRecord
    /// The revision that the present record must have; 0: there must be none.
    public let revision: Int64
  }

  /// What is saved.
  public private(set) var state: CloudState
  /// The keys of which something has changed since the last `removeUnsaved`.
  private var unsaved: Set<CloudKey> = []
  /// The number of the last loser that was saved.
  private var lastSavedLoser: UInt64
  /// The number of the oldest loser then.
  private var firstSavedLoser: UInt64
  private var isConnected = false
  /// Milliseconds that the server's clock is ahead of this host's; nil: it is not known.
  private var lead: Int64?
  /// Whether the list has been heard since the connection began.
  private var isListed = false
  /// The push whose answer is awaited.
  private var pushed: [Push] = []

  /// Operations that a transaction may have (etcd's default), one of them for each key.
  static let mostKeys = 100
  /// Bytes that the records of a transaction may have together, below etcd's 1.5 MiB.
  static let mostBytes = 1_300_000

  /// Goes on from a state.
  public init(_ state: CloudState) {
    self.state = state
    lastSavedLoser = state.lastLoser
    firstSavedLoser = state.losers.first?.number ?? state.lastLoser
  }

  /// Returns what must be saved of the changes since the last call, and forgets it.
  public mutating func removeUnsaved() -> SavedState.Change {
    var losers: [UInt64: Value?] = [:]
    for loser in state.losers.reversed() where loser.number > lastSavedLoser {
      losers[loser.number] = loser.saved
    }
    let first = state.losers.first?.number ?? state.lastLoser
    if firstSavedLoser > 0, first > firstSavedLoser {
      for number in firstSavedLoser..<first { losers[number] = .some(nil) }
    }
    defer { (unsaved, lastSavedLoser, firstSavedLoser) = ([], state.lastLoser, first) }
    var entries: [CloudKey: Value?] = [:]
    for key in unsaved { entries[key] = .some(state.entry(key)) }
    return SavedState.Change(header: state.header, entries: entries, losers: losers)
  }

  private mutating func know(_ key: CloudKey, _ known: CloudState.Known?) {
    state.known[key] = known
    unsaved.insert(key)
  }

  private mutating func hold(_ key: CloudKey, _ pending: CloudState.Pending?) {
    state.pending[key] = pending
    unsaved.insert(key)
  }

  /// Handles an event.
  /// - Parameters:
  ///   - wall: this host's clock, in milliseconds since 1970.
  ///   - server: the server's clock, if the event has it.
  public mutating func handle(
    _ event: Event, wall: Int64, server: Int64? = nil
  ) -> [Action] {
    if let server {
      let (difference, overflow) = server.subtractingReportingOverflow(wall)
      lead = overflow ? nil : difference
    }
    let present = lead.flatMap { lead -> Int64? in
      let (sum, overflow) = wall.addingReportingOverflow(lead)
      return overflow ? nil : sum
    }
    return handle(event, wall, server: present)
  }

  private mutating func handle(
    _ event: Event, _ wall: Int64, server: Int64?
  ) -> [Action] {
    switch event {
    case .set(let changes):
      set(changes, wall)
      return push(server)
    case .connected:
      (isConnected, isListed, pushed) = (true, false, [])
      return [.list]
    case .disconnected:
      (isConnected, isListed, pushed) = (false, false, [])
      return []
    case .compacted:
      isListed = false
      return [.list]
    case .listed(let all, let revision, let account):
      let before = leave(for: account)
      return listed(all, revision, server, before)
    case .changed(let changes, let revision):
      guard revision > state.revision else { return [] }
      let records = changes.mapValues { $0.map { CloudState.Known($0, revision: revision) } }
      let edits = hear(records, at: revision, server)
      state.revision = revision
      return edit(edits) + push(server)
    case .tick: return purge(server)
    case .pushed(let revision):
      accept(revision)
      return push(server)
    case .refused(let present, let revision):
      pushed = []
      return edit(hear(present, at: revision, server)) + push(server)
    }
  }

  // MARK: - Sets

  private mutating func set(_ changes: [CloudKey: Value?], _ wall: Int64) {
    let stamp = state.clock.stamp(at: wall)
    state.lastBatch += 1
    var batch = state.lastBatch
    // A batch that changes a key of an earlier one joins it, because the earlier value is not pushed
    // any more.
    let joined = Set(
      changes.keys.compactMap { key in
        pushed.contains { $0.key == key } ? nil : state.pending[key]?.batch
      })
    if let first = joined.min() {
      batch = first
      for (key, pending) in state.pending where joined.contains(pending.batch) {
        var pending = pending
        pending.batch = first
        hold(key, pending)
      }
    }
    for (key, value) in changes {
      hold(key, CloudState.Pending(value: value, stamp: stamp, batch: batch))
    }
  }

  // MARK: - Pushes

  /// Pushes the oldest batch, unless one is on its way.
  private mutating func push(_ server: Int64?) -> [Action] {
    guard isConnected, isListed, pushed.isEmpty,
      let batch = state.pending.values.map(\.batch).min()
    else { return [] }
    var bytes = 0
    let keys = state.pending.filter { $0.value.batch == batch }.keys.sorted()
    for key in keys.prefix(Self.mostKeys) {
      guard var pending = state.pending[key] else { continue }
      // A clock that is far ahead of the server's must not win every conflict.
      pending.stamp = HybridClock.bounded(pending.stamp, server: server)
      hold(key, pending)
      let known = state.known[key]
      let record = CloudRecord(
        value: pending.value, stamp: pending.stamp, replaced: known?.record.stamp)
      bytes += record.bytes.count
      if !pushed.isEmpty, bytes > Self.mostBytes { break }
      pushed.append(Push(key: key, record: record, revision: known?.revision ?? 0))
    }
    return [.push(pushed)]
  }

  private mutating func accept(_ revision: Int64) {
    for push in pushed {
      // The watch may have told of this push, and of others since.
      if revision > state.known[push.key]?.revision ?? 0 {
        know(push.key, CloudState.Known(push.record, revision: revision))
      }
      // The user may have set the key again meanwhile.
      if state.pending[push.key]?.isThat(of: push.record) == true { hold(push.key, nil) }
    }
    pushed = []
  }

  // MARK: - Old removals

  /// Milliseconds for which the record of a removal is kept, so that a host which was away that long
  /// learns of the removal: 30 days.
  static let removalAge: Int64 = 30 * 86_400_000

  private func purge(_ server: Int64?) -> [Action] {
    guard isConnected, isListed, let server else { return [] }
    let old = state.known.filter { key, known in
      let (age, overflow) = server.subtractingReportingOverflow(known.record.stamp.milliseconds)
      return known.record.value == nil && state.pending[key] == nil && !overflow
        && age > Self.removalAge
    }
    return old.isEmpty ? [] : [.purge(old.mapValues(\.revision))]
  }

  // MARK: - What the server has

  /// Forgets the values of another account.
  /// - Returns: the values that this host had from it.
  private mutating func leave(for account: String) -> [CloudKey: Value] {
    defer { state.account = account }
    guard !state.account.isEmpty, state.account != account else { return [:] }
    var before: [CloudKey: Value] = [:]
    for key in state.keys { before[key] = state.value(key) }
    for (key, pending) in state.pending {
      let none = CloudRecord(value: nil, stamp: state.clock.latest, replaced: nil)
      lose(key, pending.value, pending.stamp, none)
      hold(key, nil)
    }
    for key in state.known.keys { know(key, nil) }
    state.revision = 0
    return before
  }

  /// Lets what this host knows to be later than an earlier state of the server go there again.
  private mutating func bringBack(_ all: [CloudKey: CloudState.Known]) {
    state.lastBatch += 1
    for (key, known) in state.known {
      if state.pending[key] == nil, all[key].map({ $0.record.stamp < known.record.stamp }) ?? true {
        let pending = CloudState.Pending(
          value: known.record.value, stamp: known.record.stamp, batch: state.lastBatch)
        hold(key, pending)
      }
      know(key, nil)
    }
  }

  private mutating func listed(
    _ all: [CloudKey: CloudState.Known], _ revision: Int64, _ server: Int64?,
    _ before: [CloudKey: Value]
  ) -> [Action] {
    let isFirst = state.revision == 0
    if revision < state.revision {
      bringBack(all)
      state.revision = revision
    }
    var heard: [CloudKey: CloudState.Known?] = all.mapValues { $0 }
    for key in state.known.keys where all[key] == nil { heard[key] = .some(nil) }
    if isFirst { yield(to: all) }
    var edits = hear(heard, at: revision, server)
    for (key, old) in before {
      let value = state.value(key)
      edits[key] = value == old ? nil : .some(value)
    }
    state.revision = max(state.revision, revision)
    isListed = true
    let (next, overflow) = state.revision.addingReportingOverflow(1)
    return edit(edits) + [.watch(from: overflow ? .max : next)] + push(server)
  }

  /// Lets the server's values win over those that this host had before it first heard of them.
  private mutating func yield(to all: [CloudKey: CloudState.Known]) {
    for (key, known) in all {
      guard let pending = state.pending[key] else { continue }
      hold(key, nil)
      if pending.value != known.record.value {
        lose(key, pending.value, pending.stamp, known.record)
      }
    }
  }

  /// Takes over records of the server, as they were at that revision.
  /// - Returns: the keys whose values are different on this host from now on.
  private mutating func hear(
    _ records: [CloudKey: CloudState.Known?], at revision: Int64, _ server: Int64?
  ) -> [CloudKey: Value?] {
    var edits: [CloudKey: Value?] = [:]
    for (key, heard) in records {
      let before = state.value(key)
      // Answers and the watch overtake each other: what is known may be newer.
      if let known = state.known[key], known.revision >= heard?.revision ?? revision { continue }
      hear(key, heard, server)
      let now = state.value(key)
      if now != before { edits[key] = .some(now) }
    }
    return edits
  }

  private mutating func hear(_ key: CloudKey, _ heard: CloudState.Known?, _ server: Int64?) {
    guard let heard else {
      // A record that was deleted is one of a removal that everybody has heard of.
      know(key, nil)
      return
    }
    state.clock.hear(HybridClock.bounded(heard.record.stamp, server: server))
    let knewOf = state.known[key]?.record.stamp
    know(key, heard)
    guard let pending = state.pending[key] else { return }
    if pending.isThat(of: heard.record) {
      // Our own push, whose answer did not come.
      hold(key, nil)
    } else if heard.record.stamp.host == state.clock.host {
      // An earlier set of this host, which the pending one replaces.
    } else if pending.stamp < HybridClock.bounded(heard.record.stamp, server: server) {
      hold(key, nil)
      if pending.value != heard.record.value {
        lose(key, pending.value, pending.stamp, heard.record)
      }
    } else if heard.record.stamp != knewOf, heard.record.value != pending.value {
      let ours = CloudRecord(value: pending.value, stamp: pending.stamp, replaced: nil)
      lose(key, heard.record.value, heard.record.stamp, ours)
    }
  }

  private mutating func lose(
    _ key: CloudKey, _ value: Value?, _ stamp: Stamp, _ winner: CloudRecord
  ) {
    state.lastLoser += 1
    state.losers.append(
      CloudState.Loser(
        number: state.lastLoser, key: key, value: value, stamp: stamp, winner: winner.stamp))
    let excess = state.losers.count - CloudState.mostLosers
    if excess > 0 { state.losers.removeFirst(excess) }
  }

  private func edit(_ edits: [CloudKey: Value?]) -> [Action] {
    edits.isEmpty ? [] : [.edit(edits)]
  }
}

extension CloudState.Pending {
  /// Whether the record is that of this set.
  fileprivate func isThat(of record: CloudRecord) -> Bool {
    record.stamp == stamp && record.value == value
  }
}

extension CloudKey: Comparable {
  public static func < (left: CloudKey, right: CloudKey) -> Bool {
    (left.domain.key, left.key) < (right.domain.key, right.key)
  }
}
