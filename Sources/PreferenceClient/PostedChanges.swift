import PreferenceModel
import PropertyList
import SystemCalls

/// The changes that this process has posted, without waiting for an answer, and that are not over.
struct PostedChanges: Sendable {
  /// A posted change, as it is sent to an owner.
  struct Request: Sendable {
    var serial: UInt64
    var intents: [Intent]
    var author: Author
    /// The epoch of the last owner that it was sent to; nil: it has not left this process.
    var epoch: Int?
    /// What a candidate owner has answered, until it becomes the owner.
    var outcome: Outcome?
    /// See `PersistentPlaces.post`.
    var done: @Sendable (EngineError?) -> Void
  }

  /// The answer to a request.
  struct Outcome: Sendable {
    /// Why the request was refused; nil: it was carried out.
    var error: EngineError?
  }

  /// What a key will be.
  struct Change: Sendable {
    /// The last request that changes the key.
    var serial: UInt64
    /// The value that it sets; nil: it removes the key.
    var value: StoredValue?
  }

  /// The requests, by their serials.
  private(set) var requests: [UInt64: Request] = [:]
  /// What the requests together will make of keys.
  private(set) var changes: [DomainName: [Key: Change]] = [:]

  /// Adds a request, which must have the largest serial.
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

  /// Removes a request that is over, and returns it. If it was refused, `changes` is made anew,
  /// because earlier requests may change the same keys.
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

  /// Forgets the change of a key, unless a later request changes the key again.
  private mutating func forget(_ key: Key, _ domain: DomainName, _ serial: UInt64) {
    guard changes[domain]?[key]?.serial == serial else { return }
    changes[domain]?[key] = nil
    if changes[domain]?.isEmpty == true { changes[domain] = nil }
  }

  /// The requests that were not sent to the owner of the epoch, by their serials.
  func unsent(to epoch: Int) -> [Request] {
    requests.values.filter { $0.epoch != epoch }.sorted { $0.serial < $1.serial }
  }

  /// Notes that the request was sent to the owner of the epoch.
  mutating func noteSent(_ serial: UInt64, to epoch: Int) { requests[serial]?.epoch = epoch }

  /// Notes the answer of a candidate owner.
  mutating func note(_ outcome: Outcome, of serial: UInt64) { requests[serial]?.outcome = outcome }

  /// The serials of the requests that a candidate owner has answered.
  var over: [UInt64] { requests.values.filter { $0.outcome != nil }.map(\.serial).sorted() }
}
