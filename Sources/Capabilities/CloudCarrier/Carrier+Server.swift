import EtcdClient
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

// What the server has, and the state machine's decisions.

extension Carrier {
  /// Connects as the settings say now.
  func configure() throws(EngineError) {
    carryOut([.event(.disconnected, server: nil)])
    transport?.disconnect()
    (session, transport) = (nil, nil)
    machine.requireList()
    do throws(EngineError) {
      let settings = try CarrierSettings(places, userName: userName, dropped: dropped)
      (patterns, local) = (settings.settings.keys, settings.settings.local)
      guard !settings.endpoints.isEmpty else { return show(CloudStatus()) }
      machine.notesAncestors = settings.directory != nil
      transport = try transport(settings)
      session = CloudSession(
        settings.coding, endpoints: settings.endpoints, password: settings.password)
      handle(.timeout)
    } catch  where error.reason != .ownerGone && error.reason != .system(.timedOut) {
      log("not connected: \(error)")
      show(CloudStatus(error: "\(error)"))
    }
  }

  func handle(_ input: CloudSession.Input) {
    guard let commands = session?.handle(input, now: .now, random: .random(in: 0...1)) else {
      return
    }
    carryOut(commands)
  }

  func carryOut(_ first: [CloudSession.Command]) {
    var waiting = first[...]
    while let command = waiting.popFirst() {
      switch command {
      case .call(let url, let body, let token, let patience):
        transport?.call(url, body, token: token, patience: patience)
      case .watch(let url, let body, let token): transport?.watch(url, body, token: token)
      case .endWatch: transport?.endWatch()
      case .disconnect: transport?.disconnect()
      case .status(let status): show(status)
      case .silent(let milliseconds):
        let now = Timestamp.now.nanoseconds / 1_000_000
        status.silentSince = milliseconds.map { AbsoluteTime(milliseconds: now - $0) }
        noteStatus()
      case .event(let event, let server):
        waiting += persistently { () throws(EngineError) in
          try feedParts(of: event, server: server)
          return try feed(event, server: server)
        }
      }
    }
  }

  /// Runs the body until the store's owner has carried it out. What the owner refuses ends the
  /// connection: it is tried again after a pause, when everything is listed anew.
  func persistently(
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
  func feed(
    _ event: Synchroniser.Event, server: Int64?, wall: Int64? = nil
  ) throws(EngineError) -> [CloudSession.Command] {
    let now = HostTime.now
    let held = pace.held(at: .now)
    let actions = try feed { machine in
      machine.held = held
      return machine.handle(event, wall: wall ?? now.wall, now: now, server: server)
    }
    note(event, actions)
    notePushes(actions)
    return session?.perform(actions) ?? []
  }

  /// Notes what is pushed, so that keys which two writers change in turns go once a second at most.
  func notePushes(_ actions: [Synchroniser.Action]) {
    for case .push(let pushes) in actions {
      pace.note(pushes.map(\.key), at: .now) { key in isInTurns(key) }
    }
  }

  /// Whether the owner of the store has named the key as one that two writers change in turns.
  private func isInTurns(_ key: CloudKey) -> Bool {
    guard let owner = places as? any ReportService, let status = try? owner.report(.status),
      case .array(let named)? = status.dictionary?["in turns"]
    else { return false }
    return named.contains { row in
      row.dictionary?["domain"]?.string == key.domain.string
        && row.dictionary?["key"]?.string == key.key.string
    }
  }

  /// Has the state machine decide, saves what it decided, and returns its actions.
  @discardableResult
  func feed(
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
        if actions.contains(.drawName) { drawName() }
        return actions
      } catch  where error.reason == .changedMeanwhile {
        try scan(Set(edits.keys), time: .now)
      }
    }
  }

  /// Goes on under another name.
  private func drawName() {
    let former = machine.state.clock.host
    machine.rename(host: CloudProgram.newHostName())
    log(
      LogLine(
        "a copy of this machine is connected too, and has made changes as \(former); this one goes on "
          + "as \(machine.state.clock.host)"))
  }

  /// Bytes of records that are taken over in one transaction of the store, about: a message to its
  /// owner has them up to four times.
  private static let largestPart = 4 << 20

  /// Takes over a long list in parts first, so that the event as a whole changes little.
  func feedParts(
    of event: Synchroniser.Event, server: Int64?
  ) throws(EngineError) {
    guard case .listed(let all, _, let account) = event else { return }
    let known = machine.state.known.values.reduce(0) { $0 + $1.record.bytes.count }
    let isOther = !machine.state.account.isEmpty && machine.state.account != account
    if isOther, known > Self.largestPart {
      try feed { machine in machine.leaveOtherAccount(than: account) }
    } else if isOther {
      return
    }
    var part: [CloudKey: CloudState.Known] = [:]
    var bytes = 0
    for (key, known) in all where machine.state.known[key] != known {
      part[key] = known
      bytes += known.record.bytes.count
      guard bytes > Self.largestPart else { continue }
      try feed { machine in machine.hearPart(part, server: server) }
      (part, bytes) = ([:], 0)
    }
  }

  /// Notes for people and for those who wait what an event has done.
  func note(_ event: Synchroniser.Event, _ actions: [Synchroniser.Action]) {
    switch event {
    case .listed: if let lists = sync?.listsAwaited { sync?.listsAwaited = max(0, lists - 1) }
    case .disconnected where sync != nil:
      sync?.listsAwaited = 1
      machine.requireList()
    default: break
    }
    for case .tellClockAhead(let milliseconds) in actions {
      log(
        LogLine(
          "the clock of this machine was \(milliseconds / 1000) s ahead of the server's; "
            + "changes count from the server's time on"))
    }
    if status.isConnected, status.unreadable != machine.unreadable.count { show(status) }
  }

  /// Saves what has changed. A revision that is heard of alone is saved with the next change: until
  /// then this host would only hear of the same changes again.
  func save(
    _ edits: [CloudKey: (old: Value?, new: Value?)], _ next: inout Synchroniser
  ) throws(EngineError) {
    let isFirst =
      machine.state.revision == 0 && next.state.revision > 0
      || machine.state.account != next.state.account
    var saved = next
    let change = saved.removeUnsaved()
    guard !edits.isEmpty || !change.entries.isEmpty || !change.replacedValues.isEmpty || isFirst
    else {
      return
    }
    let account = next.state.account
    try place.commit(
      edits, change, newAccount: account == machine.state.account ? nil : account)
    next = saved
    for replaced in change.replacedValues where replaced.value != nil {
      log(
        .notice("a value lost to another host's; prefs cloud log shows it (number \(replaced.key))")
      )
    }
  }

  /// Notes for people whether there is a connection.
  func show(_ new: CloudStatus) {
    if let error = new.error { log("\(new.endpoint ?? "not connected"): \(error)") }
    if new.isConnected, !status.isConnected { log(.notice("connected to \(new.endpoint ?? "")")) }
    let isOther = new.isConnected != status.isConnected || new.endpoint != status.endpoint
    if statusSince == nil || isOther || new.error != status.error {
      statusSince = AbsoluteTime(milliseconds: Timestamp.now.nanoseconds / 1_000_000)
    }
    status = new
    status.unreadable = new.isConnected ? machine.unreadable.count : 0
    if status.unreadable > 0 {
      log(
        LogLine(
          "\(status.unreadable) keys of the server cannot be read and are left alone: they are of a "
            + "later version of prefsfs, or sealed with another EncryptionKeyFile"))
    }
    noteStatus()
  }

  private func noteStatus() {
    guard let statusSince else { return }
    do throws(EngineError) {
      try place.note(CloudNotes.status, status.note(since: statusSince))
    } catch {
      note(error)
    }
  }
}
