import PreferenceModel
import PropertyList
import SystemCalls

// What the mounts of this process tell the owner, and ask it.

extension StoreClient: MountCoordinator {
  public func addMount(_ author: Author) {
    state.withLock { state in
      state.hasMounts = true
      state.mounts[author] = []
      state.departed.removeAll { $0 == author }
    }
    owner?.link.send(.mount(author))
  }

  public func removeMount(_ author: Author) {
    state.withLock { state in
      state.mounts[author] = nil
      state.departed.append(author)
    }
    readable?.link.send(.unmount(author))
  }

  /// The most names that a mount may have claimed: as many as one message holds.
  private static let mostClaims = 65_536

  public func claim(_ name: Key, by author: Author) throws(EngineError) -> Bool {
    // Before an owner is asked: the next one must be told, if this one gives the name and ends.
    let isNoted = state.withLock { state in
      guard state.mounts[author, default: []].count < Self.mostClaims else { return false }
      return state.mounts[author]?.insert(name) != nil
    }
    guard isNoted else { return true }
    let deadline = Patience.end
    do throws(EngineError) {
      let isGiven = try ask(until: deadline) { owner throws(EngineError) in
        try owner.claim(name, by: author, until: deadline)
      }
      if !isGiven { release(name, by: author) }
      return isGiven
    } catch {
      // The owner may carry it out later.
      release(name, by: author)
      throw error
    }
  }

  public func claimAgain(_ names: [Key], by author: Author) {
    state.withLock { $0.mounts[author]?.formUnion(names.prefix(Self.mostClaims)) }
    guard let owner else { return }
    for name in names { guard owner.post(.claim(name, author)) else { return } }
  }

  public func release(_ name: Key, by author: Author) {
    guard state.withLock({ $0.mounts[author]?.remove(name) != nil }) else { return }
    _ = readable?.post(.release(name, author))
  }

  public func isAnswering(within milliseconds: Int64) -> Bool {
    let deadline = Instant.now.advanced(milliseconds: milliseconds)
    return owner(until: deadline)?.link.isAnswering(within: milliseconds) ?? false
  }

  public func settle(
    _ settlement: Settlement, through version: UInt64, by author: Author
  ) {
    readable?.link.send(.settle(settlement, through: version, author))
  }

  public func isSettled(through version: UInt64) -> Bool {
    readable?.settlements.isSettled(through: version) ?? true
  }

  public func whenSettled(through version: UInt64, _ body: @escaping @Sendable () -> Void) {
    guard let readable else { return body() }
    readable.settlements.whenSettled(through: version, body)
  }

  public var hasNotices: Bool { withGauge { !$0.hasAll } ?? false }

  public var noticeDescriptor: CInt { receiver?.number ?? -1 }

  public func receiveNotices() -> Bool { readable?.link.receiveIfFree() ?? false }
}
