import PreferenceModel
import PreferenceProtocol

/// A client's requests that need a list which nobody has read yet: they wait here while other threads read it
/// (`ListReader`), and the server goes on with the other clients.
///
/// Promises: changes, and what waits for them (`synchronize`, `save`), keep the client's order; other requests
/// overtake what waits. No request waits longer than `ListReader.patience`.
///
/// Threads: none of its own; the connection's lock keeps it.
struct HeldRequests {
  /// A request, and the number that its answer carries.
  struct Held {
    let request: Request
    let number: UInt64
  }

  private var waiting: [Held] = []

  /// Whether nothing waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Whether so much waits that the client should send no more.
  var isFull: Bool { waiting.count >= 1000 }

  /// Keeps the request where it must wait.
  mutating func keep(_ request: Request, _ number: UInt64, _ lists: ListReader) -> Bool {
    let isBehind = request.isOrdered && waiting.contains { $0.request.isOrdered }
    if request.isOpen(lists), !isBehind { return false }
    waiting.append(Held(request: request, number: number))
    return true
  }

  /// Takes out those that need not wait any longer.
  mutating func removeOpen(_ lists: ListReader) -> [Held] {
    var (open, rest): ([Held], [Held]) = ([], [])
    var isBehind = false
    for held in waiting {
      if held.request.isOpen(lists), !(isBehind && held.request.isOrdered) {
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
  /// Whether it changes something, or waits for what was changed.
  fileprivate var isOrdered: Bool {
    switch self {
    case .apply, .synchronize, .save: true
    case .load, .loadAll, .find, .domains, .modified, .ping, .hello, .mount, .settle, .await: false
    }
  }

  /// The lists that it needs.
  private var domains: [DomainName] {
    switch self {
    case .load(let location), .find(_, let location), .modified(let location), .save(let location):
      [location.domain]
    case .loadAll(let locations): locations.map(\.domain)
    case .apply(_, _, _, let intents): intents.flatMap(\.domains)
    case .hello, .domains, .ping, .synchronize, .mount, .settle, .await: []
    }
  }

  /// Whether the lists that it needs are at hand; else they are read.
  fileprivate func isOpen(_ lists: ListReader) -> Bool {
    var isOpen = true
    for domain in Set(domains) where !lists.isAtHand(domain) {
      lists.read(domain)
      isOpen = false
    }
    return isOpen
  }

  /// Throws where a list that it needs could not be read in time.
  func refuseHung(_ lists: ListReader) throws(EngineError) {
    switch self {
    case .load(let location), .find(_, let location), .modified(let location), .save(let location):
      if let error = lists.finding(location)?.error { throw error }
    case .loadAll(let locations):
      for location in locations {
        if let error = lists.finding(location)?.error { throw error }
      }
    case .apply(_, _, _, let intents): try lists.refuse(intents)
    case .hello, .domains, .ping, .synchronize, .mount, .settle, .await: break
    }
  }
}
