import PreferenceModel
import PreferenceProtocol
import StoreAccess

/// A client's requests that need lists which have not been read yet. They wait here while other
/// threads read the lists (`ListReader`), and the server goes on with the other clients.
///
/// Promises: changes, and requests that wait for changes (`synchronize`, `save`), keep the client's
/// order; other requests overtake those that wait. A list that has not been read after
/// `ListReader.patience` holds up no request any longer: the request is then refused.
///
/// Threads: none of its own; the connection's lock guards it.
struct HeldRequests {
  /// A request, and the number that its answer carries.
  struct Held {
    let request: Request
    let number: UInt64
    /// The size of its message.
    let bytes: Int
  }

  private var waiting: [Held] = []

  /// Whether no request waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Whether so many requests wait that no more should be received from the client.
  var isFull: Bool {
    waiting.count >= 1000 || waiting.reduce(0) { $0 + $1.bytes } >= 64 << 20
  }

  /// Keeps the request if it must wait.
  /// - Returns: whether it must.
  mutating func keep(
    _ request: Request, _ number: UInt64, bytes: Int, _ lists: ListReader
  ) -> Bool {
    let isBehind = request.isOrdered && waiting.contains { $0.request.isOrdered }
    if request.isOpen(lists), !isBehind { return false }
    waiting.append(Held(request: request, number: number, bytes: bytes))
    return true
  }

  /// Removes the requests that need not wait any longer, and returns them in their order.
  /// - Parameter onlyLoads: whether only requests for lists are looked at.
  mutating func removeOpen(_ lists: ListReader, onlyLoads: Bool = false) -> [Held] {
    var (open, rest): ([Held], [Held]) = ([], [])
    var isBehind = false
    for held in waiting {
      let isLooked = !onlyLoads || held.request.isLoad
      if isLooked, held.request.isOpen(lists), !(isBehind && held.request.isOrdered) {
        open.append(held)
      } else {
        rest.append(held)
        isBehind = isBehind || held.request.isOrdered
      }
    }
    waiting = rest
    return open
  }
}

extension Request {
  /// Whether the request changes something, or waits for changes.
  fileprivate var isOrdered: Bool {
    switch self {
    case .apply, .synchronize, .save: true
    case .load, .loadAll, .loadLists, .find, .domains, .modified, .report, .ping, .hello, .mount,
      .settle, .await, .unmount, .prepare:
      false
    }
  }

  /// Whether the request asks for lists.
  fileprivate var isLoad: Bool { if case .loadLists = self { true } else { false } }

  /// The locations that the request names.
  private var named: [Location] {
    switch self {
    case .load(let location), .modified(let location): [location]
    case .save(let location): location.map { [$0] } ?? []
    case .loadAll(let locations), .find(_, let locations): locations
    case .loadLists(let load): load.locations + load.changing
    case .apply(_, _, _, _, let intents, _): intents.flatMap { $0.locations ?? [] }
    case .hello, .domains, .report, .ping, .synchronize, .mount, .unmount, .settle, .await,
      .prepare:
      []
    }
  }

  /// The domains whose lists the request needs.
  private var domains: Set<DomainName> {
    guard case .apply(_, _, _, _, let intents, _) = self else { return Set(named.map(\.domain)) }
    return Set(intents.flatMap(\.domains))
  }

  /// Whether the lists that the request needs have been read; if not, begins to read them.
  fileprivate func isOpen(_ lists: ListReader) -> Bool {
    var isOpen = true
    for location in named {
      if case .managedFor = location.place { lists.include(location.place) }
    }
    let changed = changedLocations
    for domain in domains {
      let changed = changed.filter { $0.domain == domain }
      guard !lists.isAtHand(domain, changing: changed) else { continue }
      lists.read(domain, changing: changed)
      if !lists.isAtHand(domain, changing: changed) { isOpen = false }
    }
    return isOpen
  }

  /// The locations that the request may change: those that it names, and the places that the rules
  /// choose from.
  private var changedLocations: [Location] {
    if case .loadLists(let load) = self { return load.changing }
    guard case .apply(_, _, _, _, let intents, _) = self else { return [] }
    return intents.flatMap { intent -> [Location] in
      if let named = intent.locations { return named }
      return intent.domains.flatMap { domain in Place.own.map { Location($0, domain) } }
    }
  }

  /// Throws where a list that the request needs could not be read, or not in time.
  func refuseHung(_ lists: ListReader) throws(EngineError) {
    guard lists.hasFindings else { return }
    if case .apply(_, _, _, _, let intents, _) = self {
      try lists.refuse(intents)
      return try lists.refuseUnprepared(changedLocations)
    }
    // The answer says of each list what became of it.
    if isLoad { return }
    for location in named {
      if let error = lists.finding(location)?.error { throw error }
    }
  }
}
