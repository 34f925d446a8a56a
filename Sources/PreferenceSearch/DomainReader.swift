import PreferenceModel
import PropertyList
import Synchronization

/// Reads one domain's keys over and over: what was found is kept until somebody changes it.
///
/// Promises: as `Engine.resolve`, in the process that owns the store and in a client alike: a read is no
/// older than any change that had returned, in any process, when it began. Cost of a key that was read
/// before and is as it was: one hash, and one look-up under a lock; of a key that no place holds: one
/// hash and a few loads. Neither makes a system call. Errors are not kept.
///
/// Threads: any. One lock, for a look-up; nothing is called under it.
public final class DomainReader: Sendable {
  /// Which domain.
  public let domain: DomainName
  private let places: any PersistentPlaces
  private let engine: SearchEngine
  private let answers = Mutex(AnswerTable())
  private let filter = KeyFilter()

  /// Hashes of keys differ from process to process, because whoever writes a list must not choose which
  /// keys collide.
  private static let seed = UInt64.random(in: .min ... .max)

  init(_ domain: DomainName, _ engine: SearchEngine) {
    (self.domain, self.engine, places) = (domain, engine, engine.places)
  }

  /// The key's value as the search list resolves it; nil where no place holds the key.
  public func value(_ key: Key) throws(EngineError) -> Value? {
    let hash = key.quickHash(seed: Self.seed)
    if places.isFresh {
      if filter.lacks(hash) { return nil }
      switch answers.withLock({ $0.find(key, hash) }) {
      case .value(let value): return value
      case .nothing: return nil
      case .unknown: break
      }
    }
    return try look(key, hash)
  }

  private func look(_ key: Key, _ hash: UInt64) throws(EngineError) -> Value? {
    let changes = answers.withLock { $0.changes }
    let value = try engine.resolve(key, in: domain)?.value
    answers.withLock { answers in
      // What changed meanwhile may be this key.
      if answers.changes == changes { answers.note(value, for: key, hash) }
    }
    if value == nil, !filter.isComplete { completeFilter() }
    return value
  }

  /// From now on every key that any place of the search list has is in the filter: those that come are put
  /// there by `forget` before anybody may expect to read them.
  /// A list that cannot be read leaves it incomplete.
  private func completeFilter() {
    let sweeps = answers.withLock { $0.sweeps }
    guard let keys = try? engine.allKeys(of: domain) else { return }
    for key in keys { filter.insert(key.quickHash(seed: Self.seed)) }
    answers.withLock { if $0.sweeps == sweeps { filter.complete() } }
  }

  /// The key may be another now, or have come.
  func forget(_ key: Key) {
    let hash = key.quickHash(seed: Self.seed)
    filter.insert(hash)
    answers.withLock { $0.forget(key, hash) }
  }

  /// Every key may be another, or have come.
  func forget() {
    answers.withLock { answers in
      answers.forget()
      filter.reopen()
    }
  }
}
