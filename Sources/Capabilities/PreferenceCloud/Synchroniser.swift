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
///   replaced by a host that knew of it, or is a replaced value in the state.
/// - The changes of one batch are pushed as one transaction, unless some of its keys have lost.
/// - A connection after the first one goes on where the last one ended, if the server still has the
///   last record that this host has heard of; otherwise everything is listed.
/// - Two hosts with the same state and the same name, of which one was copied from the other, are
///   two hosts: a record is this host's own only where the state has pushed its stamp.
/// - A push that may or may not have arrived is repeated, and takes effect once: its stamp tells.
/// - After a change of account, the values are those of the new one. A set that the old one never
///   got is a replaced value.
/// - Where the server went back to an earlier state, from a backup, this host brings back what it
///   knows to be later.
///
/// Threads: one caller at a time; it has no lock. The caller saves `removeUnsaved()` in one step
/// with the edits, before it carries out other actions, so that an end at any moment loses and
/// repeats nothing.
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
    /// Changes that others, or this host, made on the server at one revision; nil if the key's
    /// record was deleted.
    case changed([CloudKey: CloudRecord?], revision: Int64)
    /// The revisions that the watch needs are no longer there.
    case compacted
    /// The answer to `.resume`: the record that the key had at that revision, and whose values
    /// these are; nil if there was none, or the server no longer knows, or does not know yet.
    case history(CloudKey, CloudState.Known?, account: String?)
    /// Time has passed: sent about once an hour, so that the records of old removals are deleted.
    case tick
    /// The push was carried out.
    case pushed(revision: Int64)
    /// The push was refused, because records have other revisions than it was compared with. These
    /// are the ones at that revision; nil if there was none.
    case refused([CloudKey: CloudState.Known?], revision: Int64)
    /// The server has records of these keys that cannot be read here: they are of a later version,
    /// or sealed with another key. It comes before the event that the records belong to.
    case unreadable(Set<CloudKey>, revision: Int64)
  }

  /// What must be done.
  public enum Action: Equatable, Sendable {
    /// Ask the server for all records.
    case list
    /// Ask which record the key had at that revision.
    case resume(CloudKey, revision: Int64)
    /// Hear of changes from this revision on.
    case watch(from: Int64)
    /// Write the records in one transaction, if each has the revision that is named (0: it is not
    /// there).
    case push([Push])
    /// Delete the records of old removals, each only if it still has that revision. No answer is
    /// awaited; the watch tells of it.
    case purge([CloudKey: Int64])
    /// Set the keys on this host, or remove them (nil), in one change. It is not a set of the
    /// user's.
    case edit([CloudKey: Value?])
    /// Call `rename(host:)` with a new random name: another host makes stamps under this one's
    /// name, because the state, or the whole machine, was copied.
    case drawName
    /// Say that this host's clock was that many milliseconds ahead of the server's, and that stamps
    /// were cut.
    case tellClockAhead(milliseconds: Int64)
  }

  /// One record of a push.
  public struct Push: Equatable, Sendable {
    /// The key.
    public let key: CloudKey
    /// Its new record.
    public let record: CloudRecord
    /// The revision that the present record must have; 0 if there must be none.
    public let revision: Int64
  }

  /// What is saved.
  public internal(set) var state: CloudState
  /// The keys whose records on the server cannot be read. They are left alone: neither pushed nor
  /// edited.
  public internal(set) var unreadable: Set<CloudKey> = []
  /// The keys that must not be pushed yet (`PushPace`). What was changed with one waits with it.
  public var held: Set<CloudKey> = []
  /// Whether records say what they were made with knowledge of (`CloudRecord.ancestors`): no server
  /// compares revisions for all hosts.
  public var notesAncestors = false
  /// The keys of which something has changed since the last `removeUnsaved`.
  private var unsaved: Set<CloudKey> = []
  /// The numbers of the replaced values that were saved.
  private var savedReplacedValues: Set<UInt64>
  var isConnected = false
  /// The server's clock; nil if it is not known.
  private var serverTime: ServerTime?
  /// The server's clock at the last event; nil if it is not known.
  private var present: Int64?
  /// Whether a record of this host was heard that it has not made.
  var isDoubled = false
  /// Whether the list has been heard since the connection began.
  var isListed = false
  /// The push whose answer is awaited.
  var pushed: [Push] = []
  /// How many keys of several batches are pushed together.
  var width = Self.mostKeys
  /// Whether the next connection begins with a list, whatever is known.
  var needsList = true

  /// Goes on from a state.
  public init(_ state: CloudState) {
    self.state = state
    savedReplacedValues = Set(state.replacedValues.map(\.number))
  }

  /// Returns what must be saved of the changes since the last call, and forgets it.
  public mutating func removeUnsaved() -> SavedCloud.Change {
    var replacedValues: [UInt64: Value?] = [:]
    if state.replacedValues.count != savedReplacedValues.count
      || state.replacedValues.last?.number != savedReplacedValues.max()
    {
      for replaced in state.replacedValues where !savedReplacedValues.contains(replaced.number) {
        replacedValues[replaced.number] = .some(replaced.saved)
      }
      let present = Set(state.replacedValues.map(\.number))
      for number in savedReplacedValues.subtracting(present) { replacedValues[number] = .some(nil) }
      savedReplacedValues = present
    }
    defer { unsaved = [] }
    var entries: [CloudKey: Value?] = [:]
    for key in unsaved { entries[key] = .some(state.entry(key)) }
    return SavedCloud.Change(header: state.header, entries: entries, replacedValues: replacedValues)
  }

  /// Gives this host another name, under which it makes its stamps from now on.
  public mutating func rename(host: String) {
    state.clock = HybridClock(host: host, after: state.clock.latest)
  }

  mutating func know(_ key: CloudKey, _ known: CloudState.Known?) {
    state.known[key] = known
    unsaved.insert(key)
  }

  mutating func hold(_ key: CloudKey, _ pending: CloudState.Pending?) {
    state.pending[key] = pending
    unsaved.insert(key)
  }

  /// Handles an event.
  /// - Parameters:
  ///   - wall: when it happened, by this host's time of day, in milliseconds since 1970.
  ///   - now: this host's clocks; nil if it has just happened, and both clocks are the same.
  ///   - server: the server's clock, if the event has it.
  public mutating func handle(
    _ event: Event, wall: Int64, now: HostTime? = nil, server: Int64? = nil
  ) -> [Action] {
    let now = now ?? HostTime(wall: wall, steady: wall)
    if let server { serverTime = ServerTime(server, at: now) }
    // Once the server's clock is known, it is the one that stamps are made with. The lead is
    // computed each time, because the time of day may have been set meanwhile.
    let lead = serverTime?.lead(at: now)
    let present = lead.flatMap { Self.sum(now.wall, $0) }
    let healing = server.map { heal(server: $0, lead) } ?? []
    self.present = present
    guard let lead, let present else { return healing + handle(event, wall, server: nil) }
    let latest = Self.sum(present, HybridClock.largestLead) ?? .max
    let time = min(Self.sum(wall, lead) ?? latest, latest)
    return healing + handle(event, time, server: present)
  }

  private static func sum(_ left: Int64, _ right: Int64) -> Int64? {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? nil : sum
  }

  private mutating func handle(
    _ event: Event, _ wall: Int64, server: Int64?
  ) -> [Action] {
    switch event {
    case .set(let changes):
      set(changes, wall)
      return push()
    case .connected:
      (isConnected, isListed, pushed) = (true, false, [])
      return resume()
    case .history(let key, let record, let account):
      return resumed(key, record, account, server)
    case .disconnected:
      (isConnected, isListed, pushed) = (false, false, [])
      return []
    case .compacted:
      isListed = false
      return [.list]
    case .unreadable(let keys, let revision):
      if isListed, revision < state.revision { return [] }
      unreadable.formUnion(keys.filter { state.known[$0]?.revision ?? 0 <= revision })
      return []
    case .listed(let all, let revision, let account):
      return listed(all, revision, account, server)
    case .changed(let changes, let revision):
      guard revision > state.revision else { return [] }
      let records = changes.mapValues { $0.map { CloudState.Known($0, revision: revision) } }
      let edits = hear(records, at: revision, server)
      state.revision = revision
      if isListed { state.heardAt = server ?? state.heardAt }
      return edits + push()
    case .tick:
      if isConnected, isListed { state.heardAt = server ?? state.heardAt }
      return purge(server)
    case .pushed(let revision):
      width = min(width * 2, Self.mostKeys)
      accept(revision)
      return push()
    case .refused(let present, let revision):
      // Other hosts change the same keys: fewer at a time.
      (pushed, width) = ([], 1)
      return hear(present, at: revision, server) + push()
    }
  }

  /// Cuts what this host's clock made while it was far ahead of the server's: it must not win every
  /// conflict. What is pending counts from when it was set by the server's clock, where its stamp is
  /// still more than a minute ahead of that, and this host's clock is as far ahead as it was then;
  /// otherwise from now on.
  private mutating func heal(server: Int64, _ lead: Int64?) -> [Action] {
    let (ahead, overflow) = state.clock.latest.milliseconds.subtractingReportingOverflow(server)
    guard !overflow, ahead > HybridClock.largestLead else { return [] }
    let sent = Set(pushed.map(\.key))
    for (key, pending) in state.pending where !sent.contains(key) {
      let stamp = pending.stamp
      if HybridClock.bounded(stamp, server: server) == stamp { continue }
      let set = lead.flatMap { Self.sum(stamp.milliseconds, $0) } ?? server
      var cut = pending
      cut.stamp = Stamp(milliseconds: min(set, server), counter: stamp.counter, host: stamp.host)
      hold(key, cut)
    }
    let latest = Stamp(milliseconds: server, counter: 0, host: state.clock.host)
    state.clock = HybridClock(host: state.clock.host, after: latest)
    return [.tellClockAhead(milliseconds: ahead)]
  }

  // MARK: - Sets

  private mutating func set(_ changes: [CloudKey: Value?], _ wall: Int64) {
    let stamp = state.clock.stamp(at: wall)
    state.lastBatch += 1
    var batch = state.lastBatch
    // A batch that changes a key of an earlier one joins it, because the earlier value is not
    // pushed any more.
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
      let sent = state.pending[key]?.sent ?? []
      hold(key, CloudState.Pending(value: value, stamp: stamp, batch: batch, sent: sent))
    }
  }

  // MARK: - The push of a key

  /// The push of a pending key. Its stamp is later than that of the record that it replaces, also
  /// where it was cut.
  mutating func next(_ key: CloudKey) -> Push? {
    guard var pending = state.pending[key] else { return nil }
    let known = state.known[key]
    if pending.value == nil, known == nil {
      // The server never had what was removed here.
      hold(key, nil)
      return nil
    }
    if pending.value == nil, let present, isOld(pending.stamp, present) {
      // Its record is kept for 30 days from now on, so that every host hears of it.
      pending.stamp = state.clock.stamp(at: present)
      hold(key, pending)
    }
    if let last = known?.record.stamp, pending.stamp <= last {
      pending.stamp = last.next(by: pending.stamp.host)
      hold(key, pending)
    }
    let record = CloudRecord(
      value: pending.value, stamp: pending.stamp, replaced: known?.record.stamp,
      ancestors: notesAncestors ? known?.record.nextAncestors ?? [] : nil)
    return Push(key: key, record: record, revision: known?.revision ?? 0)
  }

  /// Whether the stamp is more than a day old.
  private func isOld(_ stamp: Stamp, _ present: Int64) -> Bool {
    let (age, overflow) = present.subtractingReportingOverflow(stamp.milliseconds)
    return overflow || age > 86_400_000
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
}

extension CloudState.Pending {
  /// Whether the record is that of this set.
  func isThat(of record: CloudRecord) -> Bool {
    record.stamp == stamp && record.value == value
  }
}

extension CloudKey: Comparable {
  public static func < (left: CloudKey, right: CloudKey) -> Bool {
    (left.domain.key, left.key) < (right.domain.key, right.key)
  }
}
