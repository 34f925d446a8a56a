import PreferenceModel
import PropertyList
import SystemCalls

/// The changes that this process has posted, without waiting for an answer, and that are not over.
struct PostedChanges: Sendable {
  /// A posted change, as it is sent to an owner.
  struct Posted: Sendable {
    var serial: UInt64
    var intents: [Intent]
    var author: Author
    /// Whether it has left this process: it was sent to an owner, or to a candidate.
    var isSent = false
    /// What a candidate owner has answered, until it becomes the owner.
    var outcome: Outcome?
    /// See `PersistentPlaces.post`.
    let done: @Sendable (EngineError?) -> Void
  }

  /// The answer to a request.
  struct Outcome: Sendable {
    /// Why the request was refused; nil if it was carried out.
    var error: EngineError?
  }

  /// What a request will make of a key.
  struct Change: Sendable {
    /// The request.
    var serial: UInt64
    /// The value that it sets; nil if it removes the key.
    var value: StoredValue?
  }

  /// The changes of a key, the oldest first. Requests are mostly over in their order, so the first
  /// one goes in O(1).
  private struct Row: Sendable {
    var changes: ArraySlice<Change> = []

    /// Removes the changes of a request that is over. One that was carried out also ends those
    /// before it.
    mutating func remove(_ serial: UInt64, isRefused: Bool) {
      if isRefused, changes.first?.serial != serial {
        return changes.removeAll { $0.serial == serial }
      }
      while let first = changes.first, first.serial <= serial {
        // The storage of a slice keeps what stands before it.
        changes[changes.startIndex].value = nil
        changes.removeFirst()
      }
    }
  }

  /// The requests, by their serials.
  private(set) var requests: [UInt64: Posted] = [:]
  /// What the requests will make of keys.
  private var rows: [DomainName: [Key: Row]] = [:]

  /// What the requests together will make of the key; nil if they do not change it.
  func change(of key: Key, in domain: DomainName) -> Change? { rows[domain]?[key]?.changes.last }

  /// What the requests together will make of keys of the domain; nil if they change none.
  func changes(of domain: DomainName) -> [Key: Change]? {
    rows[domain]?.compactMapValues { $0.changes.last }
  }

  /// Adds a request, which must have the largest serial.
  mutating func add(_ request: Posted) {
    requests[request.serial] = request
    for intent in request.intents {
      switch intent {
      case .set(let key, let domain, let value, _):
        let stored = StoredValue(value, Metadata(text: nil, modified: .now))
        append(Change(serial: request.serial, value: stored), key, domain)
      case .remove(let key, let domain):
        append(Change(serial: request.serial, value: nil), key, domain)
      default: break
      }
    }
  }

  private mutating func append(_ change: Change, _ key: Key, _ domain: DomainName) {
    rows[domain, default: [:]][key, default: Row()].changes.append(change)
  }

  /// Removes a request that is over, and returns it. If it was refused, the changes that earlier
  /// requests make of the same keys count again. Cost: O(its intents).
  mutating func remove(_ serial: UInt64, isRefused: Bool) -> Posted? {
    guard let request = requests.removeValue(forKey: serial) else { return nil }
    for intent in request.intents {
      switch intent {
      case .set(let key, let domain, _, _), .remove(let key, let domain):
        rows[domain]?[key]?.remove(serial, isRefused: isRefused)
        if rows[domain]?[key]?.changes.isEmpty == true { rows[domain]?[key] = nil }
        if rows[domain]?.isEmpty == true { rows[domain] = nil }
      default: break
      }
    }
    return request
  }

  /// The requests in their order.
  var inOrder: [Posted] { requests.values.sorted { $0.serial < $1.serial } }

  /// Notes that the request was sent.
  mutating func noteSent(_ serial: UInt64) { requests[serial]?.isSent = true }

  /// Notes the answer of a candidate owner.
  mutating func note(_ outcome: Outcome, of serial: UInt64) { requests[serial]?.outcome = outcome }
}
