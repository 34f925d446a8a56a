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
    /// Until when a change may be made; nil if the request makes no change.
    var lease: Lease?
    /// A domain that was not at hand at the last look.
    private var awaited: ListReader.Need?

    init(request: Request, number: UInt64, bytes: Int, lease: Lease?) {
      (self.request, self.number, self.bytes, self.lease) = (request, number, bytes, lease)
    }

    /// Whether the lists that the request needs have been read; if not, begins to read them. Cost:
    /// while the awaited domain is not at hand, a look at that one; else at all.
    fileprivate mutating func isOpen(_ lists: ListReader) -> Bool {
      if let awaited, !lists.isAtHand(awaited.domain, changing: awaited.changed) {
        // Or it would not be read again, where it has changed meanwhile.
        lists.read([awaited])
        if !lists.isAtHand(awaited.domain, changing: awaited.changed) { return false }
      }
      awaited = request.lastMissing(lists)
      return awaited == nil
    }
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
    _ request: Request, _ number: UInt64, bytes: Int, lease: Lease?, _ lists: ListReader
  ) -> Bool {
    let isBehind = request.isOrdered && waiting.contains { $0.request.isOrdered }
    var held = Held(request: request, number: number, bytes: bytes, lease: lease)
    if held.isOpen(lists), !isBehind { return false }
    waiting.append(held)
    return true
  }

  /// Renews the leases of changes for which that is due.
  /// - Returns: the numbers of their requests, whose clients must be told.
  mutating func renewLeases() -> [UInt64] {
    waiting.indices.compactMap { waiting[$0].lease?.renew() == true ? waiting[$0].number : nil }
  }

  /// Removes the requests that need not wait any longer, and returns them in their order.
  /// - Parameter onlyLoads: whether only requests for lists are looked at.
  mutating func removeOpen(_ lists: ListReader, onlyLoads: Bool = false) -> [Held] {
    var (open, rest): ([Held], [Held]) = ([], [])
    var isBehind = false
    for var held in waiting {
      let isLooked = !onlyLoads || held.request.isLoad
      if isLooked, held.isOpen(lists), !(isBehind && held.request.isOrdered) {
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
      .settle, .unmount, .claim, .release:
      false
    }
  }

  /// Whether the request asks for lists.
  fileprivate var isLoad: Bool { if case .loadLists = self { true } else { false } }

  var named: [Location] {
    switch self {
    case .load(let location), .modified(let location): [location]
    case .save(let location): location.map { [$0] } ?? []
    case .loadAll(let locations), .find(_, let locations): locations
    case .loadLists(let load): load.locations + load.changing
    case .apply(_, _, _, _, let intents, _): intents.flatMap { $0.locations ?? [] }
    case .hello, .domains, .report, .ping, .synchronize, .mount, .unmount, .settle,
      .claim, .release:
      []
    }
  }

  /// Begins to read the lists that the request needs and that have not been read.
  /// - Returns: the last domain that is not at hand; nil if all are.
  fileprivate func lastMissing(_ lists: ListReader) -> ListReader.Need? {
    for location in named {
      if case .managedFor = location.place { lists.include(location.place) }
    }
    let isMissing = { (need: ListReader.Need) in
      !lists.isAtHand(need.domain, changing: need.changed)
    }
    let missing = needs.map { ListReader.Need($0, changing: Array($1)) }.filter(isMissing)
    lists.read(missing)
    // What was refused is at hand.
    return missing.last(where: isMissing)
  }

  /// The domains whose lists the request needs, with the locations that it may change: those that
  /// it names, and the places that the rules choose from. Each is there once, however many keys of
  /// it are changed.
  private var needs: [DomainName: Set<Location>] {
    var needs: [DomainName: Set<Location>] = [:]
    switch self {
    case .apply(_, _, _, _, let intents, _):
      // Which domains are locked.
      if intents.contains(where: \.mayChangeOwn) { needs[.settings] = [] }
      for intent in intents {
        for location in intent.locations ?? Self.chosenFrom(intent.domains) {
          needs[location.domain, default: []].insert(location)
        }
      }
    case .loadLists(let load):
      for location in load.locations { needs[location.domain] = [] }
      for location in load.changing { needs[location.domain, default: []].insert(location) }
    default: for location in named { needs[location.domain] = [] }
    }
    return needs
  }

  /// The locations of the domains that the rules choose from.
  private static func chosenFrom(_ domains: [DomainName]) -> [Location] {
    domains.flatMap { domain in Place.own.map { Location($0, domain) } }
  }

  /// Throws where a list that the request needs could not be read, or not in time.
  func refuseHung(_ lists: ListReader) throws(EngineError) {
    guard lists.hasFindings else { return }
    if case .apply(_, _, _, _, let intents, _) = self {
      try lists.refuse(intents)
      return try lists.refuseUnprepared(needs.values.flatMap { $0 })
    }
    // The answer says of each list what became of it.
    if isLoad { return }
    for location in named {
      if let error = lists.finding(location)?.error { throw error }
    }
  }
}
