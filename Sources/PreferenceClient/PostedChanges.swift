import PreferenceModel
import PropertyList
import SystemCalls

/// The changes that this process has asked for without waiting and that are not over yet.
struct PostedChanges: Sendable {
  struct Request: Sendable {
    var serial: UInt64
    var intents: [Intent]
    var author: Author
    /// The epoch of the owner who has it; nil: it has not left this process.
    var epoch: Int?
    /// What the owner says, before this process asks him for anything else.
    var outcome: Outcome?
    var done: @Sendable (EngineError?) -> Void
  }

  /// How a request went: nil: it was carried out.
  struct Outcome: Sendable {
    var error: EngineError?
  }

  /// What a key is going to be.
  struct Change: Sendable {
    var serial: UInt64
    var value: StoredValue?
  }

  private(set) var requests: [UInt64: Request] = [:]
  private(set) var changes: [DomainName: [Key: Change]] = [:]

  mutating func add(_ request: Request) {
    requests[request.serial] = request
    for intent in request.intents {
      switch intent {
      case .set(let key, let domain, let value, _):
        let stored = StoredValue(value, Metadata(text: nil, modified: .now))
        changes[domain, default: [:]][key] = Change(serial: request.serial, value: stored)
      case .remove(let key, let domain):
        changes[domain, default: [:]][key] = Change(serial: request.serial, value: nil)
      default: break
      }
    }
  }

  /// The request is over. Under one that is refused may be an earlier one that is not over.
  mutating func remove(_ serial: UInt64, isRefused: Bool) -> Request? {
    guard let request = requests.removeValue(forKey: serial) else { return nil }
    for case .set(let key, let domain, _, _) in request.intents { forget(key, domain, serial) }
    for case .remove(let key, let domain) in request.intents { forget(key, domain, serial) }
    if isRefused {
      let all = requests
      (requests, changes) = ([:], [:])
      for each in all.values.sorted(by: { $0.serial < $1.serial }) { add(each) }
    }
    return request
  }

  private mutating func forget(_ key: Key, _ domain: DomainName, _ serial: UInt64) {
    guard changes[domain]?[key]?.serial == serial else { return }
    changes[domain]?[key] = nil
    if changes[domain]?.isEmpty == true { changes[domain] = nil }
  }

  /// What the owner of the epoch does not have, in its order.
  func unsent(to epoch: Int) -> [Request] {
    requests.values.filter { $0.epoch != epoch }.sorted { $0.serial < $1.serial }
  }

  /// The owner of the epoch has it.
  mutating func noteSent(_ serial: UInt64, to epoch: Int) { requests[serial]?.epoch = epoch }

  /// The owner has said how it went.
  mutating func note(_ outcome: Outcome, of serial: UInt64) { requests[serial]?.outcome = outcome }

  /// The requests whose outcome is known.
  var over: [UInt64] { requests.values.filter { $0.outcome != nil }.map(\.serial).sorted() }
}
