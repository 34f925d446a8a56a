import PreferenceModel
import PropertyList
import Synchronization

/// Reads the keys of one domain repeatedly: what was found is kept until somebody changes it.
///
/// Promises: as `Engine.resolve`, in the process that owns the store and in a client alike: a read
/// is no older than any change that had returned, in any process, when the read began, and no older
/// than what another read had returned then. A key that was read before and has not changed costs
/// one look-up under a lock, unless a posted change of it is not over. A key that no place holds
/// costs a few loads. Neither makes a system call. Errors are not kept.
///
/// Threads: any. One lock, held for a look-up; the engine and the places are called without it.
public final class DomainReader: Sendable {
  /// The domain that is read.
  public let domain: DomainName
  private let places: any PersistentPlaces
  private let engine: SearchEngine
  private let answers = Mutex(AnswerTable())
  private let filter = KeyFilter()

  init(_ domain: DomainName, _ engine: SearchEngine) {
    (self.domain, self.engine, places) = (domain, engine, engine.places)
  }

  /// The key's value as the search list resolves it; nil where no place holds the key.
  public func value(_ key: Key) throws(EngineError) -> Value? {
    if places.isFresh {
      if filter.lacks(key.hash) { return nil }
      switch answers.withLock({ $0.find(key) }) {
      case .value(let value): return value
      case .nothing: return nil
      case .unknown: break
      }
    }
    return try look(key)
  }

  private func look(_ key: Key) throws(EngineError) -> Value? {
    let changes = answers.withLock { $0.changes }
    let value = try engine.resolve(key, in: domain)?.value
    if !engine.isChanging(key) {
      answers.withLock { answers in
        // A change since the look-up began may concern this key.
        if answers.changes == changes { answers.note(value, for: key) }
      }
    }
    if value == nil, !filter.isComplete { completeFilter() }
    return value
  }

  /// Puts every key that any place of the search list has into the filter, which is complete then:
  /// `forget` adds the keys that come, before anybody may expect to read them. A list that cannot
  /// be read leaves the filter incomplete.
  private func completeFilter() {
    let sweeps = answers.withLock { $0.sweeps }
    guard let keys = try? engine.allKeys(of: domain) else { return }
    for key in keys { filter.insert(key.hash) }
    answers.withLock { if $0.sweeps == sweeps { filter.complete() } }
  }

  /// Forgets the answer of a key that may have changed or come.
  func forget(_ key: Key) {
    filter.insert(key.hash)
    answers.withLock { $0.forget(key) }
  }

  /// Forgets all answers: any key may have changed or come.
  func forget() {
    answers.withLock { answers in
      answers.forget()
      filter.reopen()
    }
  }
}
