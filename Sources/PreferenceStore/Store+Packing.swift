import PreferenceModel
import PropertyList
import SystemCalls

// Large lists that had to be decoded are packed later. Packing takes longer than reading, so
// readers do not wait for it; and a list that is rewritten again and again would be decoded by each
// rewrite.

extension Store {
  /// Packs the large lists that are in memory decoded, a second after they were read, and not
  /// within a minute of a rewrite. The thread of `checkpoint` calls it. Cost: a look where none is
  /// due; else that of writing a binary list, and of reading it.
  /// - Returns: when the next one is due; nil: none will be, before another list is read.
  public func packIfDue(_ now: Instant) -> Instant? {
    let due = state.withLock { state in
      let due = state.packing.filter { $0.value <= now }.keys
      for location in due { state.packing[location] = nil }
      return due
    }
    for location in due { pack(location) }
    // What the values took is in pieces; without this the process would keep most of it.
    if !due.isEmpty { Memory.giveBack() }
    return state.withLock { $0.packing.values.min() }
  }

  private func pack(_ location: Location) {
    guard let snapshot = state.withLock({ $0.domains[location]?.snapshot }) else { return }
    var base = snapshot.base
    base.values.pack()
    state.withLock { state in
      // Another program's list may have been adopted meanwhile.
      guard state.domains[location]?.snapshot.hasSameList(as: snapshot) == true else { return }
      state.domains[location]?.snapshot.replaceBase(base)
    }
  }

  /// Sets the body that a thread calls after it has read a list that is to be packed.
  public func onLargeList(_ body: @escaping @Sendable () -> Void) {
    largeListRead.withLock { $0 = body }
  }

  /// Milliseconds between the first read of a list and its packing.
  fileprivate static let pauseAfterReading: Int64 = 1000
  /// Milliseconds between the last rewrite of a list and its packing.
  static let pauseAfterRewriting: Int64 = 60_000
}

extension Store.State {
  /// Notes when the list is to be packed, if it is large and decoded.
  mutating func notePacking(_ location: Location, _ domain: Store.Domain) {
    guard domain.snapshot.base.values.isWorthPacking else {
      packing[location] = nil
      return
    }
    let rewritten = domain.identity?.modified ?? Timestamp(nanoseconds: 0)
    let age = max(0, Timestamp.now.nanoseconds(after: rewritten) / 1_000_000)
    packing[location] = .now.advanced(
      milliseconds: max(Store.pauseAfterReading, Store.pauseAfterRewriting - age))
  }
}
