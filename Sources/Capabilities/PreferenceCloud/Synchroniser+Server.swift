import PropertyList

// What the server has.

extension Synchroniser {
  // MARK: - Lists

  /// Takes over the list. The first one of a connection is the truth about the server, whatever
  /// this host knew.
  mutating func listed(
    _ all: [CloudKey: CloudState.Known], _ revision: Int64, _ account: String, _ server: Int64?
  ) -> [Action] {
    // The watch has overtaken a list that somebody asked for.
    if isListed, revision < state.revision, account == state.account { return [] }
    let keys = Set(all.keys).union(state.known.keys).union(state.pending.keys)
    let actions = editing(keys) { machine in
      machine.leave(for: account)
      if machine.state.revision == 0 { machine.yield(to: all) }
      let isListed = machine.isListed
      machine.receive(all.mapValues { $0 }, server) { isListed && $0 > revision }
      machine.miss(all, revision, server)
    }
    state.revision = revision
    state.heardAt = server ?? state.heardAt
    (isListed, needsList) = (true, false)
    let (next, overflow) = revision.addingReportingOverflow(1)
    return actions + [.watch(from: overflow ? .max : next)] + purge(server) + push()
  }

  /// Takes over a part of the first list of a connection, which comes afterwards as a whole. So the
  /// edits of a long list are several changes. Ignores parts of a later list: the watch may have
  /// overtaken it.
  public mutating func hearPart(
    _ part: [CloudKey: CloudState.Known], server: Int64?
  ) -> [Action] {
    guard !isListed else { return [] }
    return editing(Set(part.keys)) { machine in
      if machine.state.revision == 0 { machine.yield(to: part) }
      machine.receive(part.mapValues { $0 }, server) { _ in false }
    }
  }

  /// Forgets the values of another account, before the parts of a list of this one.
  public mutating func leaveOtherAccount(than account: String) -> [Action] {
    editing(Set(state.known.keys).union(state.pending.keys)) { $0.leave(for: account) }
  }

  /// Forgets the values of another account. What the server of the old one never got is a replaced
  /// value; so is all that was known, where user and prefix are the same: the server may have lost
  /// it.
  private mutating func leave(for account: String) {
    defer { state.account = account }
    guard !state.account.isEmpty, state.account != account else { return }
    let none = CloudRecord(value: nil, stamp: state.clock.latest, replaced: nil)
    for (key, pending) in state.pending {
      lose(key, pending.value, pending.stamp, none)
      hold(key, nil)
    }
    let isSameUser = Self.user(state.account) == Self.user(account)
    for (key, known) in state.known {
      if isSameUser, known.record.value != nil {
        lose(key, known.record.value, known.record.stamp, none)
      }
      know(key, nil)
    }
    state.revision = 0
  }

  /// An account without what identifies its values.
  private static func user(_ account: String) -> Substring {
    account[..<(account.lastIndex(of: " ") ?? account.endIndex)]
  }

  /// Lets the server's values win over those that this host had before it first heard of them.
  private mutating func yield(to all: [CloudKey: CloudState.Known]) {
    for (key, known) in all where known.record.value != nil {
      guard let pending = state.pending[key], state.known[key] == nil else { continue }
      hold(key, nil)
      if pending.value != known.record.value {
        lose(key, pending.value, pending.stamp, known.record)
      }
    }
  }

  /// Handles keys that the server no longer has. Their removals are forgotten after 30 days; a
  /// value that is missing before that was lost, and goes there again.
  private mutating func miss(
    _ all: [CloudKey: CloudState.Known], _ revision: Int64, _ server: Int64?
  ) {
    for (key, known) in state.known where all[key] == nil && !unreadable.contains(key) {
      if isListed, known.revision > revision { continue }
      if known.record.value != nil, state.pending[key] == nil, state.revision > 0 {
        if wasAway(server) {
          let none = CloudRecord(value: nil, stamp: state.clock.latest, replaced: nil)
          lose(key, known.record.value, known.record.stamp, none)
        } else {
          bringBack(key, known.record)
        }
      }
      know(key, nil)
    }
  }

  /// Whether this host heard of the server too long ago to have heard of every removal.
  private func wasAway(_ server: Int64?) -> Bool {
    guard let server, state.heardAt > 0 else { return false }
    let (away, overflow) = server.subtractingReportingOverflow(state.heardAt)
    return overflow || away > Self.removalAge
  }

  private mutating func bringBack(_ key: CloudKey, _ record: CloudRecord) {
    state.lastBatch += 1
    hold(
      key,
      CloudState.Pending(
        value: record.value, stamp: record.stamp, batch: state.lastBatch, sent: [record.stamp]))
  }

  // MARK: - Records

  /// Takes over records of the server, as they were at that revision; nil if it has none.
  mutating func hear(
    _ records: [CloudKey: CloudState.Known?], at revision: Int64, _ server: Int64?
  ) -> [Action] {
    editing(records.keys) { machine in
      // Answers and the watch overtake each other: what is known may be newer.
      machine.receive(records, server) { $0 > revision }
    }
  }

  /// Runs the body, and returns the edit of the keys whose values it changed.
  private mutating func editing(
    _ keys: some Collection<CloudKey>, _ body: (inout Self) -> Void
  ) -> [Action] {
    let before = keys.map { ($0, state.value($0)) }
    body(&self)
    var edits: [CloudKey: Value?] = [:]
    for (key, old) in before {
      let value = state.value(key)
      if value != old { edits[key] = .some(value) }
    }
    defer { isDoubled = false }
    return (edits.isEmpty ? [] : [.edit(edits)]) + (isDoubled ? [.drawName] : [])
  }

  /// - Parameter isOld: whether a record is older than one of that revision, which is known.
  private mutating func receive(
    _ records: [CloudKey: CloudState.Known?], _ server: Int64?, _ isOld: (Int64) -> Bool
  ) {
    for (key, heard) in records {
      if let known = state.known[key], known == heard || isOld(known.revision) { continue }
      unreadable.remove(key)
      if let heard { receive(key, heard, server) } else { know(key, nil) }
    }
  }

  private mutating func receive(_ key: CloudKey, _ heard: CloudState.Known, _ server: Int64?) {
    let stamp = HybridClock.bounded(heard.record.stamp, server: server)
    state.clock.hear(stamp)
    let before = state.known[key]?.record
    know(key, heard)
    let isOwnName = heard.record.stamp.host == state.clock.host
    guard let pending = state.pending[key] else {
      if isOwnName, heard.record.stamp != before?.stamp { isDoubled = true }
      if let before, heard.record.overtakes(before) {
        lose(key, before.value, before.stamp, heard.record)
      }
      // The stamps of a key only grow, unless the server went back to an earlier state.
      if let before, heard.record.stamp < before.stamp {
        // What is brought back will count as one that knew of it.
        if before.overtakes(heard.record) {
          lose(key, heard.record.value, heard.record.stamp, before)
        }
        bringBack(key, before)
      }
      return
    }
    let isOwn = pending.sent.contains(heard.record.stamp)
    if isOwnName, !isOwn, heard.record.stamp != before?.stamp { isDoubled = true }
    // Nobody knows of what was not sent, though its stamp may be before one that was: stamps that
    // are sent follow those of other hosts, whose clocks may be ahead.
    let isSent = pending.sent.contains(pending.stamp)
    if pending.isThat(of: heard.record) || isSent && heard.record.knows(pending.stamp) {
      // Our own push, or one that replaced it; its answer did not come.
      hold(key, nil)
    } else if isOwn, heard.record.stamp != pending.stamp {
      // An earlier set of this host, which the pending one replaces.
    } else if pending.stamp < stamp {
      hold(key, nil)
      if pending.value != heard.record.value {
        lose(key, pending.value, pending.stamp, heard.record)
      }
    } else if heard.record.stamp != before?.stamp, heard.record.value != pending.value {
      let ours = CloudRecord(value: pending.value, stamp: pending.stamp, replaced: nil)
      lose(key, heard.record.value, heard.record.stamp, ours)
    }
  }

  private mutating func lose(
    _ key: CloudKey, _ value: Value?, _ stamp: Stamp, _ winner: CloudRecord
  ) {
    state.lastReplacedValue &+= 1
    state.add(
      CloudState.ReplacedValue(
        number: state.lastReplacedValue, key: key, value: value, stamp: stamp, winner: winner.stamp)
    )
  }

  // MARK: - Old removals

  /// Milliseconds for which the record of a removal is kept, so that a host which was away that
  /// long learns of the removal: 30 days.
  static let removalAge: Int64 = 30 * 86_400_000

  /// Has the records of old removals deleted.
  func purge(_ server: Int64?) -> [Action] {
    guard isConnected, isListed, let server else { return [] }
    let old = state.known.filter { key, known in
      let (age, overflow) = server.subtractingReportingOverflow(known.record.stamp.milliseconds)
      return known.record.value == nil && state.pending[key] == nil && !overflow
        && age > Self.removalAge
    }
    return old.isEmpty ? [] : [.purge(old.mapValues(\.revision))]
  }
}
