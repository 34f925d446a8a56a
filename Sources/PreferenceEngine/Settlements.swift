import PreferenceModel
import Synchronization
import SystemCalls

/// Which mounts have told their kernels of which changes, and who waits for that.
///
/// A mount that says nothing for a second while somebody waits for it is silent: it is waited for
/// again when it has caught up with what was waited for.
///
/// Threads: any; `expire` the writer's. Bodies are called without a lock.
final class Settlements: Sendable {
  private struct Mount {
    var settled: [Settlement: UInt64]
    /// The last change that it was told of; its own are known to it.
    var told: UInt64
    var isSilent = false
    /// An old connection of the same mount may end after the new one has begun.
    var registrations = 1
  }

  private struct Waiter {
    var settlement: Settlement
    var version: UInt64
    var author: Author
    var deadline: Instant
    var body: @Sendable () -> Void
  }

  private struct State {
    var mounts: [Author: Mount] = [:]
    var waiters: [Waiter] = []

    func isLate(_ author: Author, for waiter: Waiter) -> Bool {
      guard let mount = mounts[author], !mount.isSilent, author != waiter.author else {
        return false
      }
      return mount.settled[waiter.settlement, default: 0] < min(waiter.version, mount.told)
    }

    /// The waiters who wait for nobody.
    mutating func takeServed() -> [@Sendable () -> Void] {
      let all = waiters
      waiters = all.filter { waiter in mounts.keys.contains { isLate($0, for: waiter) } }
      guard waiters.count < all.count else { return [] }
      return all.filter { waiter in !mounts.keys.contains { isLate($0, for: waiter) } }.map(\.body)
    }
  }

  private let state = Mutex(State())
  private let log: @Sendable (String) -> Void

  /// Milliseconds that a mount may be silent.
  static let patience: Int64 = 1000

  init(log: @escaping @Sendable (String) -> Void) { self.log = log }

  var hasMounts: Bool { state.withLock { !$0.mounts.isEmpty } }

  /// When somebody has waited long enough.
  var deadline: Instant? { state.withLock { $0.waiters.map(\.deadline).min() } }

  /// A mount comes; it has seen everything up to the version.
  func add(_ author: Author, at version: UInt64) {
    let all = Settlement.allCases.map { ($0, version) }
    state.withLock { state in
      let before = state.mounts[author]?.registrations ?? 0
      state.mounts[author] = Mount(
        settled: Dictionary(uniqueKeysWithValues: all), told: version,
        registrations: before + 1)
    }
  }

  /// The mounts but the author's are told of the change.
  func tell(_ version: UInt64, except author: Author?) {
    state.withLock { state in
      for mount in state.mounts.keys where mount != author { state.mounts[mount]?.told = version }
    }
  }

  func remove(_ author: Author) {
    serve { state in
      state.mounts[author]?.registrations -= 1
      if state.mounts[author]?.registrations == 0 { state.mounts[author] = nil }
    }
  }

  func settle(_ settlement: Settlement, through version: UInt64, by author: Author) {
    serve { state in
      guard let known = state.mounts[author]?.settled[settlement], known < version else { return }
      state.mounts[author]?.settled[settlement] = version
      state.mounts[author]?.isSilent = false
    }
  }

  /// - Returns: whether the body must wait, and `deadline` is another.
  func wait(
    _ settlement: Settlement, _ version: UInt64, except author: Author,
    _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let mustWait = state.withLock { state in
      let waiter = Waiter(
        settlement: settlement, version: version, author: author,
        deadline: Instant.now.advanced(milliseconds: Self.patience), body: body)
      guard state.mounts.keys.contains(where: { state.isLate($0, for: waiter) }) else {
        return false
      }
      state.waiters.append(waiter)
      return true
    }
    if !mustWait { body() }
    return mustWait
  }

  /// Mounts that were waited for too long are silent now.
  func expire(_ now: Instant) {
    var silent: [Author] = []
    serve { state in
      let late = state.waiters.filter { $0.deadline <= now }
      silent = state.mounts.keys.filter { author in
        late.contains { state.isLate(author, for: $0) }
      }
      for author in silent { state.mounts[author]?.isSilent = true }
    }
    if !silent.isEmpty {
      log("\(silent.count) mount(s) of the store are silent for 1 s and are not waited for")
    }
  }

  private func serve(_ change: (inout State) -> Void) {
    let served = state.withLock { state in
      change(&state)
      return state.takeServed()
    }
    for body in served { body() }
  }
}
