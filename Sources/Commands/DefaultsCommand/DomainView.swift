import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls

/// The connection of this command to a store.
struct StoreView {
  /// The search list of the store. It is made at each use, because most commands need none.
  var engine: SearchEngine { SearchEngine(places: places) }
  let places: any PersistentPlaces & DurabilityService & ReportService
  let author = Author.unique()
  /// Where the store is.
  let surroundings: Surroundings

  /// Connects to the store, and starts its owner if there is none. Throws if the directory does not
  /// exist, unless it is below the directory of the machine's lists.
  /// - Parameters:
  ///   - directory: the directory of the store; nil means the user's own store.
  ///   - isBrief: false for a command that waits for changes.
  ///   - via: the way of the command's changes, for the history.
  ///   - because: why they are made; empty if the command line does not say.
  init(
    _ directory: String? = nil, isBrief: Bool = true, via: ChangeSource.Via = .command,
    because: String = ""
  ) throws(EngineError) {
    if let directory, !Files.isDirectory(directory),
      !directory.hasPrefix(Surroundings().systemDirectory + "/")
    {
      throw EngineError(.noSuchDomain, "there is no directory \(directory)")
    }
    try self.init(Surroundings(store: directory), isBrief: isBrief, via: via, because: because)
  }

  /// Connects to the store of a user (see `Surroundings.init(ofUser:)`); nil means of this user.
  init(ofUser user: String?) throws(EngineError) {
    try self.init(
      user.map { name throws(EngineError) in try Surroundings(ofUser: name) } ?? Surroundings())
  }

  /// Connects to the store in the directory, or of the user where there is none.
  init(_ directory: String?, ofUser user: String?) throws(EngineError) {
    if directory == nil { try self.init(ofUser: user) } else { try self.init(directory) }
  }

  private init(
    _ surroundings: Surroundings, isBrief: Bool = true, via: ChangeSource.Via = .command,
    because: String = ""
  ) throws(EngineError) {
    self.surroundings = surroundings
    let client = try StoreClient(clientOf: surroundings, isBrief: isBrief, via: via) {
      Output.note("\($0)")
    }
    if !because.isEmpty {
      var source = ChangeSource(via)
      source.because = because
      client.setSource(source)
    }
    // It stays until the process ends: releasing what it has would only cost time.
    _ = Unmanaged.passRetained(client)
    places = client
  }

  /// Carries out a transaction, and returns when every mount and program reads the new values.
  /// - Parameters:
  ///   - target: what the command line names. If it is a path, or the command line has `--sync`,
  ///     the call returns when its lists on the disk have the change.
  ///   - isJudged: whether schemas may refuse it.
  /// - Returns: what has changed.
  @discardableResult
  func apply(
    _ intents: [Intent], _ target: Target? = nil, isJudged: Bool = false
  ) throws(EngineError) -> Changeset {
    let changeset: Changeset
    do {
      changeset = try engine.apply((isJudged ? [.judged] : []) + intents, by: author)
    } catch  where error.reason == .unfit {
      throw quoting(error, intents.lazy.compactMap { $0.value(of: error) }.first)
    }
    // A script that names a list by its path, or uses `--sync`, reads the list in its next line.
    if let target, target.isPath || target.isSynchronous {
      for location in target.locations { try save(location) }
    }
    return changeset
  }

  /// Has a list rewritten, after a change that is made whether or not this succeeds.
  private func save(_ location: Location) throws(EngineError) {
    do throws(EngineError) {
      try places.save(location)
    } catch {
      throw EngineError(
        error.reason, domain: location.domain,
        "the change is made, and its list is rewritten as soon as that is possible; now it is not: "
          + error.sentence)
    }
  }

  /// The refusal of a value by a schema, with the value in it, which the owner keeps out of logs.
  func quoting(_ error: EngineError, _ value: Value?) -> EngineError {
    guard let value, let domain = error.domain, let key = error.key,
      let objection = engine.schema(of: domain)?.refusal(of: value, for: key)
    else { return error }
    return EngineError(.unfit, domain: domain, key: key, objection)
  }

  /// Throws if a change would be refused, and changes nothing.
  /// - Parameter isJudged: as in `apply`; intents behind `.judged` are judged in any case.
  func check(_ intents: [Intent], isJudged: Bool = false) throws(EngineError) {
    let items = try Self.items((isJudged ? [.judged] : []) + intents, places)
    let engine = engine
    for item in items {
      guard case .set(let key, let value, _) = item.edit,
        let objection = engine.schema(of: item.location.domain)?.refusal(of: value, for: key),
        try places.find(key, at: item.location)?.value != value
      else { continue }
      throw EngineError(.unfit, domain: item.location.domain, key: key, objection)
    }
  }

  /// The edits that are judged. Throws if an intent would be refused.
  private static func items(
    _ intents: [Intent], _ places: some StoredPlaces
  ) throws(EngineError) -> [Changeset.Item] {
    let rules = ChangeRules(places)
    try rules.requireUnlocked(intents)
    var judged: [Changeset.Item]?
    for intent in intents {
      let items = try rules.items(for: intent)
      if intent == .judged { judged = judged ?? [] }
      judged?.append(contentsOf: items)
    }
    return judged ?? []
  }
}

/// The domain that the command line names, in its store.
struct DomainView {
  let target: Target
  let store: StoreView

  init(_ target: Target) throws(EngineError) {
    self.init(target, try StoreView(target.directory, because: target.because))
  }

  init(_ target: Target, _ store: StoreView) { (self.target, self.store) = (target, store) }

  /// Returns the value of a key and the location that it is from; nil if there is none.
  func find(_ key: Key) throws(EngineError) -> LocatedValue? {
    try store.places.findFirst(key, in: target.locations)
  }

  /// Returns all keys and values, as they are at one point in time.
  func contents() throws(EngineError) -> ValueDictionary {
    try store.places.contents(of: target.locations)
  }

  /// Returns all keys and values. If a list cannot be read, prints the message and returns nil, so
  /// that the caller can go on with other domains.
  func readableContents() -> ValueDictionary? {
    do throws(Refusal) {
      return try target.reading { () throws(EngineError) in try contents() }
    } catch {
      _ = error.report()
      return nil
    }
  }

  /// Returns the intent that sets a key of the domain.
  func setting(_ key: Key, _ value: Value) -> Intent {
    if let place = target.place {
      return .edit(Location(place, target.domain), .set(key, value, .unknown))
    }
    return .setOwn(key, target.domain, value, .unknown)
  }

  /// Returns the intent that removes a key from the location where it was found. If the command
  /// line does not name a place, it removes the key from all of the user's places.
  func removing(_ key: Key, from location: Location) -> Intent {
    target.place == nil ? .removeOwn(key, target.domain) : .edit(location, .remove(key))
  }

  /// Reads a key and sets it to what the body returns; nil removes the key. If another program
  /// changes the key in between, reads it and calls the body again, so that no change is lost.
  func update(
    _ key: Key, isJudged: Bool = false, _ body: (Value?) throws(Refusal) -> Value?
  ) throws(Refusal) {
    for _ in 0..<Self.mostAttempts {
      let found = try target.writing { () throws(EngineError) in try find(key) }
      let value = try body(found?.stored.value)
      if try commit(key, value, insteadOf: found, isJudged) { return }
    }
    throw target.couldNotWrite(nil)
  }

  /// How often `update` and `rename` try before they fail.
  static let mostAttempts = 1000

  /// Sets or removes the key, if its value is still the one that was found.
  /// - Returns: false if the value has changed.
  private func commit(
    _ key: Key, _ value: Value?, insteadOf found: LocatedValue?, _ isJudged: Bool
  ) throws(Refusal) -> Bool {
    let location = found?.location ?? Location(target.place ?? .user, target.domain)
    let change = value.map { setting(key, $0) } ?? removing(key, from: location)
    do throws(EngineError) {
      try store.apply(
        [.expect(key, location, found?.stored.value), change], target, isJudged: isJudged)
      return true
    } catch  where error.reason == .changedMeanwhile {
      return false
    } catch {
      throw target.couldNotWrite(error)
    }
  }
}

extension PersistentPlaces {
  /// Returns the keys and values of these locations, of which the first one counts, as they are at
  /// one point in time.
  func contents(of locations: [Location]) throws(EngineError) -> ValueDictionary {
    try snapshots(of: locations).reversed().reduce([:]) { $0.merging($1.values) }
  }
}

extension EngineError {
  /// Whether the domain or key does not exist, or its name is not a valid one.
  var isMissing: Bool { [.noSuchDomain, .noSuchKey, .invalidDomain].contains(reason) }
}

extension Target {
  /// Makes the directory of a list that was named by its path, if it does not exist.
  func makeDirectory() throws(Refusal) {
    guard let directory, !Files.isDirectory(directory) else { return }
    try writing { () throws(EngineError) in
      try EngineError.wrapping { () throws(SystemError) in
        try Files.makeDirectories(directory, mode: 0o755)
      }
    }
  }

  /// Returns the refusal of a write that failed.
  func couldNotWrite(_ error: EngineError?) -> Refusal {
    Refusal("Could not write domain \(name); exiting", error)
  }

  /// Performs a part of a write, and turns its error into a refusal.
  @discardableResult
  func writing<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) { return try body() } catch { throw couldNotWrite(error) }
  }

  /// Performs a part of a read, and turns its error into a refusal.
  /// - Parameter missing: the refusal if the domain or key does not exist; nil if it says that the
  ///   domain does not exist.
  func reading<Result>(
    orSaying missing: Refusal? = nil, _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) {
      return try body()
    } catch  where error.isMissing {
      throw missing ?? doesNotExist
    } catch {
      throw Refusal("Could not read domain \(name); exiting", error)
    }
  }

  /// Returns the refusal for a key that does not exist.
  func lacks(_ key: String) -> Refusal {
    Refusal("\nThe domain/default pair of (\(pairName), \(key)) does not exist\n")
  }

  var doesNotExist: Refusal { Refusal("\nDomain \(name) does not exist\n") }
}

extension Intent {
  /// The value that the intent would give the key that the error is about.
  fileprivate func value(of error: EngineError) -> Value? {
    switch self {
    case .set(let key, let domain, let value, _), .setOwn(let key, let domain, let value, _):
      key == error.key && domain == error.domain ? value : nil
    case .edit(let location, .set(let key, let value, _)):
      key == error.key && location.domain == error.domain ? value : nil
    case .replace(let location, let values):
      location.domain == error.domain ? error.key.flatMap { values[$0] } : nil
    default: nil
    }
  }
}
