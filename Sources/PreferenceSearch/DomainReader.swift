import PreferenceModel
import PropertyList
import Synchronization

/// Reads one domain's keys over and over: what was found is kept until somebody changes it.
///
/// Promises: as `Engine.resolve`, in the process that owns the store and in a client alike: a read is no
/// older than any change that had returned, in any process, when it began. Cost of a key that was read
/// before and is as it was: one hash, one look-up under a lock, no system call; of a key that no
/// place holds the same. Errors are not kept.
///
/// Threads: any. One lock, for a look-up; nothing is called under it.
public final class DomainReader: Sendable {
  /// Which domain.
  public let domain: DomainName
  private unowned let engine: SearchEngine
  private let answers = Mutex(AnswerTable())

  init(_ domain: DomainName, _ engine: SearchEngine) {
    (self.domain, self.engine) = (domain, engine)
  }

  /// The key's value as the search list resolves it; nil where no place holds the key.
  public func value(_ key: Key) throws(EngineError) -> Value? {
    if engine.places.isFresh {
      switch answers.withLock({ $0.find(key) }) {
      case .value(let value): return value
      case .nothing: return nil
      case .unknown: break
      }
    }
    let changes = answers.withLock { $0.changes }
    let value = try engine.resolve(key, in: domain)?.value
    answers.withLock { answers in
      // What changed meanwhile may be this key.
      if answers.changes == changes { answers.note(value, for: key) }
    }
    return value
  }

  /// The key may be another now.
  func forget(_ key: Key) { answers.withLock { $0.forget(key) } }

  /// Everything may be.
  func forget() { answers.withLock { $0.forget() } }
}

/// Answers by key: open addressing over hashes of the keys' bytes, with a seed of the process's, because
/// whoever writes a list must not choose who collides.
struct AnswerTable {
  /// What is known of a key.
  enum Answer {
    case value(Value)
    case nothing
    case unknown
  }

  private struct Slot {
    var hash: UInt64 = 0
    var key: Key = ""
    var answer = Answer.unknown
  }

  /// How often something was forgotten.
  private(set) var changes = 0
  private var slots = [Slot](repeating: Slot(), count: 64)
  private var count = 0

  private static let seed = UInt64.random(in: .min ... .max)
  /// Keys that are kept at most.
  private static let largest = 1 << 16

  /// The slot of the key, or the empty one where it would be.
  private func place(of key: Key, _ hash: UInt64) -> Int {
    var place = Int(truncatingIfNeeded: hash >> 24) & (slots.count - 1)
    while slots[place].hash != 0, slots[place].hash != hash || slots[place].key != key {
      place = (place + 1) & (slots.count - 1)
    }
    return place
  }

  private static func hash(_ key: Key) -> UInt64 { key.quickHash(seed: seed) | 1 }

  func find(_ key: Key) -> Answer {
    slots[place(of: key, Self.hash(key))].answer
  }

  mutating func note(_ value: Value?, for key: Key) {
    if count * 2 >= slots.count { grow() }
    let hash = Self.hash(key)
    let place = place(of: key, hash)
    if slots[place].hash == 0 { count += 1 }
    slots[place] = Slot(hash: hash, key: key, answer: value.map { .value($0) } ?? .nothing)
  }

  mutating func forget(_ key: Key) {
    changes += 1
    slots[place(of: key, Self.hash(key))].answer = .unknown
  }

  mutating func forget() {
    changes += 1
    slots = [Slot](repeating: Slot(), count: 64)
    count = 0
  }

  private mutating func grow() {
    if count >= Self.largest { return forget() }
    let old = slots
    slots = [Slot](repeating: Slot(), count: old.count * 2)
    for slot in old where slot.hash != 0 { slots[place(of: slot.key, slot.hash)] = slot }
  }
}
