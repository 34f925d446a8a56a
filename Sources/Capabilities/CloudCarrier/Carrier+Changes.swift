import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

// What the user has changed on this host.

extension Carrier {
  /// Tells the state machine of keys that are not as it knows them.
  func scan(_ keys: Set<CloudKey>, time: Timestamp) throws(EngineError) {
    var changes: [CloudKey: Value?] = [:]
    for key in keys {
      let value = try place.find(key)?.value
      if value != machine.state.value(key) { changes[key] = .some(value) }
    }
    try set(changes, at: time)
  }

  /// The same for whole domains: the changes of one moment are one change.
  /// - Parameter removals: when domains were removed of which that is known.
  func scan(
    _ domains: Set<DomainName>, _ removals: [DomainName: Timestamp] = [:]
  ) throws(EngineError) {
    for domain in domains {
      guard
        let contents = try readable({ () throws(EngineError) in try place.contents(of: domain) })
      else { continue }
      let removed = try place.modified(domain) ?? removals[domain] ?? .now
      var changes: [Timestamp: [CloudKey: Value?]] = [:]
      for (key, stored) in contents where stored.value != machine.state.value(key) {
        changes[stored.modified, default: [:]][key] = .some(stored.value)
      }
      for key in machine.state.keys where key.domain == domain && contents[key] == nil {
        changes[removed, default: [:]][key] = .some(nil)
      }
      for (time, change) in changes.sorted(by: { $0.key < $1.key }) {
        try set(change, at: min(time, .now))
      }
    }
  }

  /// Runs the body; nil where a list cannot be read. Its domain is looked at again when it can.
  func readable<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result? {
    do throws(EngineError) { return try body() } catch  where error.reason == .unreadable {
      note(error)
      return nil
    }
  }

  /// Brings back keys of lists that were damaged, or are gone: nobody has removed these keys.
  func restore(_ domains: Set<DomainName>) throws(EngineError) {
    for domain in domains {
      let contents = try readable { () throws(EngineError) in try place.contents(of: domain) }
      guard let contents else { continue }
      let lost = machine.state.keys.filter { $0.domain == domain && contents[$0] == nil }
      try place.restore(lost.map { ($0, machine.state.value($0)) })
    }
  }

  func set(_ changes: [CloudKey: Value?], at time: Timestamp) throws(EngineError) {
    let own = changes.filter { $0.key.domain.mayBeInCloud }
    guard !own.isEmpty else { return }
    carryOut(try feed(.set(own), server: nil, wall: time.nanoseconds / 1_000_000))
  }

  /// Moves the keys of the domain that belong in the cloud there, unless the cloud has, or had,
  /// them.
  func adopt(_ domain: DomainName) throws(EngineError) {
    let machine = machine
    let named = domain.mayBeInCloud ? try place.schemaKeys(of: domain) : []
    if named.isEmpty, patterns.patterns[domain] == nil { return }
    _ = try readable { () throws(EngineError) in
      try place.adopt(domain, log: log) { key in
        (named.contains(key.key) || patterns.contain(key.key, of: domain))
          && !local.contain(key.key, of: domain) && machine.state.known[key] == nil
      }
    }
    try scan([domain])
  }
}
