import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

/// `cloud`: shows whether this machine is connected to a cloud, and chooses the keys that are in
/// it.
enum Cloud {
  /// Runs the verb.
  /// - Returns: the exit status: 1 where what was waited for did not come in time.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let verb = arguments.isEmpty ? "status" : try arguments.removeNext()
    let store = try Refusal.wrapping("Could not reach the preferences") { () throws(EngineError) in
      try StoreView()
    }
    switch verb {
    case "status": return try CloudReport.show(&arguments, store)
    case "login": return try CloudLogin.logIn(&arguments, store)
    case "logout": return try CloudLogin.logOut(&arguments, store)
    case "add": return try add(&arguments, store)
    case "remove": return try remove(&arguments, store)
    case "sync": return try synchronize(&arguments, store)
    case "log": return try CloudLog.show(&arguments, store)
    case "restore": return try CloudLog.restore(&arguments, store)
    default: throw Arguments.unexpected(verb)
    }
  }

  // MARK: - Which keys are in the cloud

  private static func domain(_ arguments: inout Arguments) throws(Refusal) -> DomainName {
    let target = try Target(&arguments)
    guard !target.isPath, target.domain.mayBeInCloud else {
      throw Refusal(
        message: "\(target.name) cannot be in the cloud",
        detail: "name a domain, as in com.example.app; settings of prefsfs stay on one machine")
    }
    if arguments.isEmpty { throw .mistake("a key is missing behind \(target.name)") }
    return target.domain
  }

  /// Moves keys to the cloud, and has patterns, and keys without a value, named by `Keys`.
  private static func add(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32
  {
    let domain = try domain(&arguments)
    var patterns: [String] = []
    let words = Array(arguments.rest)
    try change(.local, domain, store) { known in
      known.filter { key in !words.contains { KeyPatterns.matches(key, $0) } }
    }
    while !arguments.isEmpty {
      let word = try arguments.removeNext()
      if word.contains("*") {
        patterns.append(word)
      } else if try !move(CloudKey(domain, Key(word)), store) {
        patterns.append(word)
      }
    }
    try change(.keys, domain, store) { known in known + patterns.filter { !known.contains($0) } }
    return 0
  }

  /// Moves a key from the host's or the user's place.
  /// - Returns: false where none of the user's places has it.
  private static func move(_ key: CloudKey, _ store: StoreView) throws(Refusal) -> Bool {
    try Refusal.wrapping("Could not move \(key) to the cloud") { () throws(EngineError) in
      for place in [Place.host, .user] {
        if let intents = try store.places.intents(movingToCloud: key, from: place) {
          try store.apply(intents)
          return true
        }
      }
      return try store.places.find(key.key, at: Location(.cloud, key.domain)) != nil
    }
  }

  /// Moves keys from the cloud to the user's place, and removes patterns from `Keys`.
  private static func remove(
    _ arguments: inout Arguments, _ store: StoreView
  ) throws(Refusal) -> Int32 {
    let domain = try domain(&arguments)
    let words = Array(arguments.rest)
    var isKnown = false
    // Behind a schema's key, the next write would put it there again.
    let schema = store.engine.schema(of: domain)
    let named = (schema?.keys ?? []).filter { schema?.isInCloud($0.name) == true }
      .map(\.name.string).filter { key in words.contains { KeyPatterns.matches(key, $0) } }
    try change(.local, domain, store) { known in known + named.filter { !known.contains($0) } }
    try change(.keys, domain, store) { known in
      isKnown = known.contains { words.contains($0) }
      return known.filter { !words.contains($0) }
    }
    let patterns = try settings(store).keys
    for word in words where !word.contains("*") {
      if patterns.contain(Key(word), of: domain) {
        throw Refusal(
          message: "\(domain) \(word) stays in the cloud",
          detail: "a pattern of Keys in \(CloudSettings.domain) names it; remove the pattern first")
      }
      let isMoved = try Refusal.wrapping("Could not move \(word)") { () throws(EngineError) in
        let key = CloudKey(domain, Key(word))
        guard let intents = try store.places.intents(movingFromCloud: key) else { return false }
        try store.apply(intents)
        return true
      }
      if !isMoved, !isKnown, !named.contains(word) {
        throw Refusal(message: "\(domain) \(word) is not in the cloud")
      }
    }
    return 0
  }

  /// The settings of the cloud, as they are in force.
  static func settings(_ store: StoreView) throws(Refusal) -> CloudSettings {
    try Refusal.wrapping("Could not read \(CloudSettings.domain)") { () throws(EngineError) in
      try CloudSettings(of: store.places)
    }
  }

  /// Changes the patterns of a domain in a setting, if the body changes them.
  private static func change(
    _ name: CloudSettings.Name, _ domain: DomainName, _ store: StoreView,
    _ body: ([String]) -> [String]
  ) throws(Refusal) {
    let view = DomainView(Target(domain: CloudSettings.domain, place: nil), store)
    let known = try settings(store).patterns(name).patterns[domain] ?? []
    if body(known) == known { return }
    try view.update(name.key) { value in
      var domains = value?.dictionary ?? [:]
      // Another command may have changed them since `known` was read.
      let new = body(value == nil ? known : KeyPatterns(value).patterns[domain] ?? [])
      domains[Key(domain.string)] = new.isEmpty ? nil : .array(new.map { .string($0) })
      return domains.isEmpty ? nil : .dictionary(domains)
    }
  }

  // MARK: - Waiting

  /// Waits until what was changed before is on the server, and what the server has is here.
  private static func synchronize(
    _ arguments: inout Arguments, _ store: StoreView
  ) throws(Refusal) -> Int32 {
    let word = arguments.isEmpty ? "30" : try arguments.removeNext()
    guard let seconds = Double(word), seconds >= 0 else {
      throw .mistake("\(word) is not a number of seconds")
    }
    try arguments.end()
    guard try settings(store).isConfigured else {
      throw Refusal(message: "No cloud is set up", detail: "use prefs cloud login")
    }
    let isDone = try Refusal.wrapping("Could not synchronize with the cloud") {
      () throws(EngineError) in
      let request = try requestSync(store)
      let deadline = Instant.now.advanced(seconds: seconds)
      while try !isAnswered(request, store) {
        if deadline <= .now { return false }
        Instant.sleep(milliseconds: 20)
      }
      return true
    }
    if isDone { return 0 }
    let lines = try CloudReport(store).lines
    let refusal = Refusal(
      message:
        "Not everything was sent and heard in \(seconds) s; changes are kept, and sent later",
      detail: lines.first)
    let status = refusal.report()
    for line in lines.dropFirst() { Output.write(line: line, to: .errors) }
    return status
  }
}

extension Cloud {
  /// Whether the request is answered. An owner that is too busy to say so has not answered it yet.
  static func isAnswered(_ request: Int64, _ store: StoreView) throws(EngineError) -> Bool {
    do throws(EngineError) {
      return try number(store, CloudNotes.syncAnswer) >= request
    } catch  where error.reason == .system(.timedOut) {
      return false
    }
  }

  /// Asks for a synchronisation. It also has `prefs-cloud` read its settings and try to connect at
  /// once.
  /// - Returns: the number of the request; an answer with this number, or a larger one, answers it.
  @discardableResult
  static func requestSync(_ store: StoreView) throws(EngineError) -> Int64 {
    while true {
      let last = try store.note(CloudNotes.syncRequest)
      let next = max(
        try number(store, CloudNotes.syncRequest), try number(store, CloudNotes.syncAnswer)
      ).addingReportingOverflow(1).partialValue
      let location = CloudNotes.location
      do throws(EngineError) {
        try store.apply([
          .expect(CloudNotes.syncRequest, location, last),
          .edit(location, .set(CloudNotes.syncRequest, .integer(WideInteger(next)), .unknown)),
        ])
        return next
      } catch  where error.reason == .changedMeanwhile {
        continue
      }
    }
  }

  /// A note that is a number; 0 where there is none.
  static func number(_ store: StoreView, _ key: Key) throws(EngineError) -> Int64 {
    try store.note(key)?.signed ?? 0
  }
}

extension StoreView {
  /// A note of `prefs-cloud`; nil where there is none.
  func note(_ key: Key) throws(EngineError) -> Value? {
    try places.find(key, at: CloudNotes.location)?.value
  }
}

extension Cloud {
  static let manual = VerbManual(
    group: .machines, summary: "keeps keys the same on all your machines",
    more: [
      .init("cloud [status]", "says whether this machine is connected to a cloud"),
      .init("cloud login USER [URL...]", "connects it, with the password from standard input"),
      .init("cloud login dir:/PATH", "the same, without a server: by a synchronised directory"),
      .init("cloud logout", "disconnects it"),
      .init(
        "cloud add|remove DOMAIN KEY...", "moves keys to the cloud, or back; KEY may have a *"),
      .init("cloud sync [SECONDS]", "returns when both sides have the same"),
      .init("cloud log [NUMBER]", "shows values that lost to those of other machines"),
      .init("cloud restore NUMBER", "sets the key to such a value again"),
    ],
    text: """
      The servers are etcd's. A key of the cloud is read and written like any other,
      also while the machine is not connected.
      """,
    example: """
      $ prefs cloud login ada https://etcd.example.org:2379
      $ prefs cloud add com.example.editor TabWidth 'Color*'
      """)
}
