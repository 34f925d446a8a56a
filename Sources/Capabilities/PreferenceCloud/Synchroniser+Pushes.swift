// What this host sends.

extension Synchroniser {
  /// Keys that a transaction may have. Each is one operation, of which etcd accepts 128 unless it
  /// is configured otherwise.
  static let mostKeys = 100
  /// Bytes that a transaction may have, below etcd's 1.5 MiB.
  static let mostBytes = 1_300_000

  /// Holds these keys back from now on, and no others, and pushes what need not wait any longer.
  public mutating func release(holding keys: Set<CloudKey>) -> [Action] {
    held = keys
    return push()
  }

  /// Pushes the oldest batches, as many as a transaction may have, unless a push is on its way. What
  /// cannot be read on the server stays.
  mutating func push() -> [Action] {
    guard isConnected, isListed, pushed.isEmpty else { return [] }
    var batches: [UInt64: [CloudKey]] = [:]
    for (key, pending) in state.pending where !unreadable.contains(key) {
      batches[pending.batch, default: []].append(key)
    }
    var bytes = 0
    for (_, keys) in batches.sorted(by: { $0.key < $1.key }) where held.isDisjoint(with: keys) {
      guard pushed.isEmpty || pushed.count + keys.count <= width else { break }
      guard addBatch(keys.sorted(), &bytes) else { break }
    }
    return pushed.isEmpty ? [] : [.push(pushed)]
  }

  /// Adds a batch to the push. The first one may be too large for one push: then it is divided.
  /// - Parameter bytes: how many the push has.
  /// - Returns: false where the push is full.
  private mutating func addBatch(_ keys: [CloudKey], _ bytes: inout Int) -> Bool {
    let isFirst = pushed.isEmpty
    var batch: [Push] = []
    var isFull = false
    for key in keys {
      isFull = batch.count >= Self.mostKeys
      guard !isFull, let next = next(key) else { continue }
      // The name is in the comparison, in the record that is written, and in the question.
      let size =
        next.record.bytes.count + 3 * (key.domain.string.utf8.count + key.key.string.utf8.count)
      isFull = bytes + size > Self.mostBytes && !(isFirst && batch.isEmpty)
      if isFull { break }
      bytes += size
      batch.append(next)
    }
    if isFirst || !isFull { send(batch) }
    return !isFull
  }

  /// Adds to the push what is sent with it. Only then do the stamps count as sent: other hosts may
  /// know of them.
  private mutating func send(_ batch: [Push]) {
    pushed += batch
    for push in batch {
      guard var pending = state.pending[push.key], pending.sent.last != pending.stamp else {
        continue
      }
      pending.sent = pending.sent.suffix(CloudState.Pending.mostSent - 1) + [pending.stamp]
      hold(push.key, pending)
    }
  }

  // MARK: - A connection after the first one

  /// Has the next connection begin with a list: what can be read, or whose values are asked for, has
  /// changed, or somebody waits for a list.
  public mutating func requireList() { needsList = true }

  /// The last record up to which this host has heard of all. A server that has the same one at that
  /// revision has the same history up to there, and was not taken back to an earlier state. The answer
  /// to a push may tell of a later record before the watch has told of those in between.
  private var witness: (key: CloudKey, known: CloudState.Known)? {
    let last = state.known.lazy.filter { $0.value.revision <= state.revision }
      .max { $0.value.revision < $1.value.revision }
    return last.map { ($0.key, $0.value) }
  }

  /// Goes on from what is known, or lists everything.
  mutating func resume() -> [Action] {
    guard !needsList, unreadable.isEmpty, let witness else {
      unreadable = []
      return [.list]
    }
    return [.resume(witness.key, revision: witness.known.revision)]
  }

  mutating func resumed(
    _ key: CloudKey, _ record: CloudState.Known?, _ account: String?, _ server: Int64?
  ) -> [Action] {
    guard isConnected, !isListed else { return [] }
    guard let record, let witness, (key, record) == (witness.key, witness.known),
      account == state.account
    else { return [.list] }
    isListed = true
    // What was heard after the last record, the ends of old removals, is heard again.
    state.revision = record.revision
    state.heardAt = server ?? state.heardAt
    let (next, overflow) = record.revision.addingReportingOverflow(1)
    return [.watch(from: overflow ? .max : next)] + purge(server) + push()
  }
}
