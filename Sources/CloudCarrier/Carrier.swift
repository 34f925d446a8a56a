import Glibc
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// Carries changes between the cloud's place of one store and the servers of the cloud.
///
/// Promises:
/// - What the state machine has decided (`Synchroniser`) is saved in the transaction that changes the
///   place, before anything is sent: `kill -9` at any moment loses and repeats nothing. What the user
///   changed while no carrier ran is found when one begins.
/// - A change of the user's that comes between is never overwritten: the transaction expects the
///   values that the decision was made from, and the decision is made again.
/// - Where the store's owner does not answer, the carrier waits and tries again. Where the server does
///   not, changes are saved as pending.
///
/// Threads: `run` has one, the only one that touches anything but `arrivals`. Observers of the store
/// put what has changed there and ring the bell.
public final class Carrier {
  private let places: any PersistentPlaces
  private let place: CloudPlace
  private let author = Author.unique()
  private let userName: String
  private let log: @Sendable (String) -> Void
  private let makeTransport: (CarrierSettings) throws(SystemError) -> any CloudTransport
  private let arrivals: Arrivals

  private var machine: Synchroniser
  private var session: CloudSession?
  private var transport: (any CloudTransport)?
  private var patterns = CloudKeyPatterns()
  private var lastError: String?
  /// The status that was noted last.
  private var status = CloudStatus()
  /// The request that somebody waits for.
  private var syncRequest: Value?
  /// How many lists must come before it is answered.
  private var listsAwaited = 0
  /// When old removals are looked for.
  private var nextTick = Instant.now

  /// Creates the carrier of a store.
  /// - Parameters:
  ///   - host: the name of this host in stamps and in the log of losers.
  ///   - log: receives lines for people. They have no values and no passwords.
  init(
    _ places: any PersistentPlaces, host: String, userName: String,
    makeTransport: @escaping (CarrierSettings) throws(SystemError) -> any CloudTransport,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    (self.places, self.userName) = (places, userName)
    (self.log, self.makeTransport) = (log, makeTransport)
    place = CloudPlace(places, author: author)
    arrivals = try EngineError.wrapping { () throws(SystemError) in try Arrivals() }
    machine = Synchroniser(CloudState(host: host))
    places.observe(except: author) { [arrivals] notice in arrivals.hear(notice) }
    machine = Synchroniser(CloudState(try place.savedState(log: log), host: host))
    arrivals.noteAll()
    show(CloudStatus())
    try scan(Set(machine.state.keys.map(\.domain)).union(try place.domains()))
  }

  // MARK: - The loop

  /// Carries changes until the descriptor can be read, or is closed at its other end.
  public func run(until stop: CInt) {
    while !Self.isReadable(stop) {
      do throws(EngineError) {
        try serveArrivals()
        try tick()
        try answerSyncRequest()
      } catch {
        note(error)
        wait(milliseconds: 1000, stop)
        continue
      }
      guard let transport else {
        wait(milliseconds: nil, stop)
        continue
      }
      let deadline = min(session?.deadline ?? nextTick, nextTick)
      let inputs = transport.wait(until: deadline, or: [arrivals.bell.number, stop])
      arrivals.bell.clear()
      for input in inputs {
        handle(input)
        // The others are of the connection that has just ended.
        if session?.deadline != nil { break }
      }
      if let due = session?.deadline, due <= .now { handle(.timeout) }
    }
  }

  private static func isReadable(_ descriptor: CInt) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  private func wait(milliseconds: Int64?, _ stop: CInt) {
    arrivals.bell.wait(until: milliseconds.map { Instant.now.advanced(milliseconds: $0) }, or: stop)
  }

  /// Logs an error of the store once, until another one comes.
  private func note(_ error: EngineError) {
    if lastError != "\(error)" { log("the store: \(error)") }
    lastError = "\(error)"
  }

  private func tick() throws(EngineError) {
    guard nextTick <= .now else { return }
    nextTick = Instant.now.advanced(milliseconds: 3_600_000)
    carryOut(try feed(.tick, server: nil))
  }

  /// Takes over what observers have heard of. What it cannot do now stays for the next call.
  private func serveArrivals() throws(EngineError) {
    var taken = arrivals.removeAll()
    do throws(EngineError) {
      while let change = taken.changes.first {
        try scan(change.keys, time: change.time)
        taken.changes.removeFirst()
      }
      try restore(taken.invalidated)
      try scan(taken.domains.union(taken.invalidated))
      (taken.domains, taken.invalidated) = ([], [])
      if taken.hasSyncRequest { try beginSync() }
      taken.hasSyncRequest = false
      if taken.hasNewSettings { try configure() }
      taken.others.formUnion(taken.hasNewSettings ? Array(patterns.patterns.keys) : [])
      taken.hasNewSettings = false
      while let domain = taken.others.first {
        if patterns.patterns[domain] != nil { try adopt(domain) }
        taken.others.remove(domain)
      }
    } catch {
      arrivals.putBack(taken)
      throw error
    }
  }

  // MARK: - Synchronisation that somebody waits for

  /// Asks the server for everything, where a request was noted.
  private func beginSync() throws(EngineError) {
    guard let request = try place.note(CloudNotes.syncRequest),
      try place.note(CloudNotes.syncAnswer) != request
    else { return }
    syncRequest = request
    // A connection that begins lists everything anyway. Somebody who waits may have mended what kept
    // it from being there: the settings and their files are read again.
    if session?.isConnected == true {
      carryOut(session?.perform([.list]) ?? [])
      listsAwaited = session?.listsWaiting ?? 1
    } else {
      listsAwaited = 1
      try configure()
    }
  }

  private func answerSyncRequest() throws(EngineError) {
    guard let request = syncRequest, listsAwaited == 0, machine.state.pending.isEmpty else {
      return
    }
    try place.note(CloudNotes.syncAnswer, request)
    syncRequest = nil
  }

  // MARK: - Changes of this host

  /// Tells the state machine of keys that are not as it knows them.
  private func scan(_ keys: Set<CloudKey>, time: Timestamp) throws(EngineError) {
    var changes: [CloudKey: Value?] = [:]
    for key in keys {
      let value = try place.find(key)?.value
      if value != machine.state.value(key) { changes[key] = .some(value) }
    }
    try set(changes, at: time)
  }

  /// The same for whole domains: the changes of one moment are one change.
  private func scan(_ domains: Set<DomainName>) throws(EngineError) {
    for domain in domains {
      guard
        let contents = try readable({ () throws(EngineError) in try place.contents(of: domain) })
      else { continue }
      let removed = try place.modified(domain) ?? .now
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
  private func readable<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result? {
    do throws(EngineError) { return try body() } catch  where error.reason == .unreadable {
      note(error)
      return nil
    }
  }

  /// Brings back keys of lists that were damaged, or are gone: nobody has removed these keys.
  private func restore(_ domains: Set<DomainName>) throws(EngineError) {
    for domain in domains {
      let contents = try readable { () throws(EngineError) in try place.contents(of: domain) }
      guard let contents else { continue }
      let lost = machine.state.keys.filter { $0.domain == domain && contents[$0] == nil }
      try place.restore(lost.map { ($0, machine.state.value($0)) })
    }
  }

  private func set(_ changes: [CloudKey: Value?], at time: Timestamp) throws(EngineError) {
    let own = changes.filter { $0.key.domain.mayBeInCloud }
    guard !own.isEmpty else { return }
    carryOut(try feed(.set(own), server: nil, wall: time.nanoseconds / 1_000_000))
  }

  /// Moves the keys of the domain that belong in the cloud there, unless the cloud has, or had, them.
  private func adopt(_ domain: DomainName) throws(EngineError) {
    let machine = machine
    _ = try readable { () throws(EngineError) in
      try place.adopt(domain, log: log) { key in
        patterns.contain(key.key, of: domain) && machine.state.known[key] == nil
      }
    }
    try scan([domain])
  }

  // MARK: - The server

  /// Connects as the settings say now.
  private func configure() throws(EngineError) {
    carryOut([.event(.disconnected, server: nil)])
    transport?.disconnect()
    (session, transport) = (nil, nil)
    do throws(EngineError) {
      let settings = try CarrierSettings(places, userName: userName)
      patterns = settings.settings.keys
      guard !settings.endpoints.isEmpty else { return show(CloudStatus()) }
      transport = try EngineError.wrapping { () throws(SystemError) in try makeTransport(settings) }
      session = CloudSession(
        settings.coding, endpoints: settings.endpoints, password: settings.password)
      handle(.timeout)
    } catch  where error.reason != .ownerGone && error.reason != .system(.timedOut) {
      log("not connected: \(error)")
      show(CloudStatus(error: "\(error)"))
    }
  }

  private func handle(_ input: CloudSession.Input) {
    guard let commands = session?.handle(input, now: .now, random: .random(in: 0...1)) else {
      return
    }
    carryOut(commands)
  }

  private func carryOut(_ first: [CloudSession.Command]) {
    var waiting = first[...]
    while let command = waiting.popFirst() {
      switch command {
      case .call(let url, let body, let token): transport?.call(url, body, token: token)
      case .watch(let url, let body, let token): transport?.watch(url, body, token: token)
      case .endWatch: transport?.endWatch()
      case .disconnect: transport?.disconnect()
      case .status(let status): show(status)
      case .event(let event, let server):
        waiting += persistently { () throws(EngineError) in
          try feedParts(of: event)
          return try feed(event, server: server)
        }
      }
    }
  }

  /// Runs the body until the store's owner has carried it out. What the owner refuses ends the
  /// connection: it is tried again after a pause, when everything is listed anew.
  private func persistently(
    _ body: () throws(EngineError) -> [CloudSession.Command]
  ) -> [CloudSession.Command] {
    while true {
      do throws(EngineError) {
        return try body()
      } catch  where error.reason == .ownerGone || error.reason == .system(.timedOut) {
        note(error)
        Instant.sleep(milliseconds: 1000)
      } catch {
        note(error)
        let failed = CloudSession.Input.failed("the store refused what the server has: \(error)")
        return session?.handle(failed, now: .now, random: .random(in: 0...1)) ?? []
      }
    }
  }

  /// Gives an event to the state machine, saves what it decided, and returns what must be sent.
  private func feed(
    _ event: Synchroniser.Event, server: Int64?, wall: Int64? = nil
  ) throws(EngineError) -> [CloudSession.Command] {
    let actions = try feed { machine in
      machine.handle(event, wall: wall ?? Timestamp.now.nanoseconds / 1_000_000, server: server)
    }
    note(event, actions)
    return session?.perform(actions) ?? []
  }

  /// Has the state machine decide, saves what it decided, and returns its actions.
  @discardableResult
  private func feed(
    _ decide: (inout Synchroniser) -> [Synchroniser.Action]
  ) throws(EngineError) -> [Synchroniser.Action] {
    while true {
      var next = machine
      let actions = decide(&next)
      var edits: [CloudKey: (old: Value?, new: Value?)] = [:]
      for case .edit(let changes) in actions {
        for (key, value) in changes { edits[key] = (machine.state.value(key), value) }
      }
      do throws(EngineError) {
        try save(edits, &next)
        machine = next
        return actions
      } catch  where error.reason == .changedMeanwhile {
        try scan(Set(edits.keys), time: .now)
      }
    }
  }

  /// Bytes of records that are taken over in one transaction of the store, about: a message to its
  /// owner has them up to four times.
  private static let largestPart = 4 << 20

  /// Takes over a long list in parts first, so that the event as a whole changes little.
  private func feedParts(of event: Synchroniser.Event) throws(EngineError) {
    guard case .listed(let all, _, let account) = event else { return }
    var part: [CloudKey: CloudState.Known] = [:]
    var bytes = 0
    for (key, known) in all where machine.state.known[key] != known {
      part[key] = known
      bytes += known.record.bytes.count
      guard bytes > Self.largestPart else { continue }
      try feed { machine in
        machine.hearPart(part, account: account, wall: Timestamp.now.nanoseconds / 1_000_000)
      }
      (part, bytes) = ([:], 0)
    }
  }

  /// Notes for people and for those who wait what an event has done.
  private func note(_ event: Synchroniser.Event, _ actions: [Synchroniser.Action]) {
    switch event {
    case .listed: listsAwaited = max(0, listsAwaited - 1)
    case .disconnected: listsAwaited = syncRequest == nil ? 0 : 1
    default: break
    }
    for case .tellClockAhead(let milliseconds) in actions {
      log(
        "the clock of this machine was \(milliseconds / 1000) s ahead of the server's; "
          + "changes count from the server's time on")
    }
    if status.isConnected, status.unreadable != machine.unreadable.count { show(status) }
  }

  /// Saves what has changed. A revision that is heard of alone is saved with the next change: until
  /// then this host would only hear of the same changes again.
  private func save(
    _ edits: [CloudKey: (old: Value?, new: Value?)], _ next: inout Synchroniser
  ) throws(EngineError) {
    let isFirst = machine.state.revision == 0 && next.state.revision > 0
    var saved = next
    let change = saved.removeUnsaved()
    guard !edits.isEmpty || !change.entries.isEmpty || !change.losers.isEmpty || isFirst else {
      return
    }
    let account = next.state.account
    try place.commit(
      edits, change, newAccount: account == machine.state.account ? nil : account)
    next = saved
    for loser in change.losers where loser.value != nil {
      log("a value lost to another host's; defaults cloud log shows it (number \(loser.key))")
    }
  }

  /// Notes for people whether there is a connection.
  private func show(_ new: CloudStatus) {
    if let error = new.error { log("\(new.endpoint ?? "not connected"): \(error)") }
    if new.isConnected, !status.isConnected { log("connected to \(new.endpoint ?? "")") }
    status = new
    status.unreadable = new.isConnected ? machine.unreadable.count : 0
    if status.unreadable > 0 {
      log(
        "\(status.unreadable) keys of the server cannot be read and are left alone: they are of a "
          + "later version of prefsfs, or sealed with another EncryptionKeyFile")
    }
    do throws(EngineError) {
      try place.note(
        CloudNotes.status,
        status.note(since: AbsoluteTime(milliseconds: Timestamp.now.nanoseconds / 1_000_000)))
    } catch {
      self.note(error)
    }
  }
}
