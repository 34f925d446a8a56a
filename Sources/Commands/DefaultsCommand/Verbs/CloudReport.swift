import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// `cloud status`: what `prefs-cloud` has noted, and what is in the cloud.
struct CloudReport {
  private let settings: CloudSettings
  private let status: (status: CloudStatus, since: AbsoluteTime)?
  private let state: ValueDictionary
  private let replacedValues: Int
  private let isRunning: Bool
  private let size: (keys: Int, bytes: Int)

  init(_ store: StoreView) throws(Refusal) {
    settings = try Cloud.settings(store)
    isRunning = CloudLock.isHeld(Surroundings())
    (status, state, replacedValues, size) = try Refusal.wrapping("Could not read the cloud's state")
    {
      () throws(EngineError) in
      let state = try store.note(CloudNotes.state)?.dictionary ?? [:]
      let replacedValues = try store.places.keys(at: CloudNotes.location).filter {
        CloudNotes.replacedValue(of: $0) != nil
      }
      return (
        try store.note(CloudNotes.status).flatMap { CloudStatus.read($0) }, state,
        replacedValues.count,
        try Self.size(store)
      )
    }
  }

  private static func size(_ store: StoreView) throws(EngineError) -> (keys: Int, bytes: Int) {
    var usage = CloudUsage()
    var keys = 0
    let locations = try store.places.domains(in: .cloud).map { Location(.cloud, $0) }
    for (location, snapshot) in zip(locations, try store.places.snapshots(of: locations)) {
      usage.add(location.domain, snapshot.values)
      keys += snapshot.values.count
    }
    return (keys, usage.total)
  }

  /// Shows the report.
  /// - Returns: the exit status: 1 where there is no connection.
  static func show(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32 {
    try arguments.end()
    let report = try CloudReport(store)
    for line in report.lines { Output.write(line: line) }
    return report.isConnected ? 0 : 1
  }

  private var isConnected: Bool {
    settings.isConfigured && isRunning && status?.status.isConnected == true
  }

  /// One line: whether there is a connection, and since when or why not.
  var connection: String {
    guard settings.isConfigured else {
      return "no cloud: Endpoints of \(CloudSettings.domain) is not set"
    }
    guard isRunning else { return "not connected: prefs-cloud does not run" }
    guard let (status, since) = status else { return "not connected: prefs-cloud has just begun" }
    let place = status.endpoint.map { " to \($0)" } ?? ""
    let reason = status.error.map { ": \($0)" } ?? ""
    let state = status.isConnected ? "connected" : "not connected"
    let silence = status.silentSince.map { "; nothing heard since \($0.inWholeSeconds.text)" } ?? ""
    return "\(state)\(place) since \(since.inWholeSeconds.text)\(reason)\(silence)"
  }

  /// The report, a line for each thing. Parts of it are a server's.
  var lines: [String] {
    var lines = [connection]
    if case .string(let account)? = state["account"], !account.isEmpty {
      let parts = account.split(separator: " ", omittingEmptySubsequences: false)
      let user = parts.first.map(String.init) ?? ""
      let name = user.isEmpty ? "no user" : "user \(user)"
      let prefix = parts.dropFirst().first.map(String.init) ?? ""
      let whose =
        prefix == CloudSettings.directoryPrefix ? "a directory" : "\(name), prefix \(prefix)"
      lines.append("\(whose), revision \(number("revision"))")
    }
    lines.append(
      "keys: \(size.keys), bytes: \(size.bytes) of \(CloudLimits.largestTotal), "
        + "changes not sent yet: \(number("pending"))")
    if let unreadable = status?.status.unreadable, unreadable > 0 {
      lines.append(
        "keys that cannot be read: \(unreadable); they are left alone, because they are of a later "
          + "version, or sealed with another EncryptionKeyFile")
    }
    if replacedValues > 0 {
      lines.append("values that lost to others: \(replacedValues); prefs cloud log shows them")
    }
    return lines
  }

  private func number(_ key: Key) -> String {
    if case .integer(let number)? = state[key] { "\(number)" } else { "0" }
  }
}

/// `cloud log` and `cloud restore`: the values that lost to those of other hosts.
enum CloudLog {
  /// Shows all replaced values, the latest last, or the value of one.
  static func show(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32 {
    if !arguments.isEmpty {
      let replaced = try replaced(&arguments, store)
      Output.write(
        replaced.value.map { ValueDescription.text(of: $0, isAppleText: false) + "\n" }
          ?? "(removed)\n")
      return 0
    }
    let replacedValues = try Refusal.wrapping("Could not read the log") { () throws(EngineError) in
      var replacedValues: [CloudState.ReplacedValue] = []
      for key in try store.places.keys(at: CloudNotes.location) {
        guard let number = CloudNotes.replacedValue(of: key), let note = try store.note(key),
          let replaced = CloudState.ReplacedValue(number, note)
        else { continue }
        replacedValues.append(replaced)
      }
      return replacedValues.sorted { $0.number < $1.number }
    }
    for replaced in replacedValues { Output.write(line: line(replaced)) }
    return 0
  }

  private static func line(_ replaced: CloudState.ReplacedValue) -> String {
    let time = AbsoluteTime(milliseconds: replaced.stamp.milliseconds).inWholeSeconds.text
    let what = replaced.value.map { ValueDescription.line(of: $0, false) } ?? "(removed)"
    return "\(replaced.number) \(time) \(replaced.stamp.host) \(replaced.key) = \(what)"
      + " (lost to \(replaced.winner.host))"
  }

  /// Sets a key to the value that lost.
  static func restore(_ arguments: inout Arguments, _ store: StoreView) throws(Refusal) -> Int32 {
    let replaced = try replaced(&arguments, store)
    let key = replaced.key
    try Refusal.wrapping("Could not restore \(key)") { () throws(EngineError) in
      let change: Intent? =
        if let value = replaced.value {
          .set(key.key, key.domain, value, .unknown)
        } else if try store.places.find(key.key, at: Location(.cloud, key.domain)) != nil {
          .remove(key.key, key.domain)
        } else {
          nil
        }
      if let change { try store.apply([.at(.cloud, change)]) }
    }
    return 0
  }

  private static func replaced(
    _ arguments: inout Arguments, _ store: StoreView
  ) throws(Refusal) -> CloudState.ReplacedValue {
    let word = try arguments.removeNext()
    guard let number = UInt64(word) else { throw .mistake("\(word) is not a number of the log") }
    try arguments.end()
    let note = try Refusal.wrapping("Could not read the log") { () throws(EngineError) in
      try store.note(CloudNotes.key(ofReplacedValue: number))
    }
    guard let note, let replaced = CloudState.ReplacedValue(number, note) else {
      throw Refusal(message: "The log has no number \(number)")
    }
    return replaced
  }
}
