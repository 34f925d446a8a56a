import PreferenceCloud
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// The cloud's place on this host, and what is saved beside it (`SavedCloud`), each a location of
/// the store.
///
/// Threads: one. Every call may wait for the store's owner, for 5 s at most.
struct CloudPlace {
  private let places: any PersistentPlaces
  private let author: Author

  init(_ places: any PersistentPlaces, author: Author) {
    (self.places, self.author) = (places, author)
  }

  // MARK: - Reading

  /// Everything that is saved. A list that cannot be read is set aside: its keys are then compared
  /// with what the server has, as at the first connection.
  func savedState(
    _ layout: StoreLayout, log: (LogLine) -> Void
  ) throws(EngineError) -> SavedCloud {
    var saved = SavedCloud()
    for domain in try places.domains(in: .cloudRecords) {
      let snapshot: LocationSnapshot?
      do throws(EngineError) {
        snapshot = try places.snapshots(of: [Location(.cloudRecords, domain)]).first
      } catch  where error.reason == .unreadable {
        let path = layout.path(Location(.cloudRecords, domain))
        log("\(error); the list is renamed to \(path).damaged")
        try EngineError.wrapping(domain) { () throws(SystemError) in
          try Files.rename(path, to: path + ".damaged")
        }
        continue
      }
      for (key, value) in snapshot?.values ?? [:] {
        if domain.mayBeInCloud {
          saved.entries[CloudKey(domain, key)] = value
        } else if domain != CloudSettings.domain {
          continue
        } else if key == CloudNotes.state {
          saved.header = value
        } else if let number = CloudNotes.replacedValue(of: key) {
          saved.replacedValues[number] = value
        }
      }
    }
    return saved
  }

  /// What the place has for a key.
  func find(_ key: CloudKey) throws(EngineError) -> StoredValue? {
    try places.find(key.key, at: Location(.cloud, key.domain))
  }

  /// All keys of a domain, and their values.
  func contents(of domain: DomainName) throws(EngineError) -> [CloudKey: StoredValue] {
    let location = Location(.cloud, domain)
    guard let snapshot = try places.snapshots(of: [location]).first else { return [:] }
    var found: [CloudKey: StoredValue] = [:]
    for key in snapshot.keys { found[CloudKey(domain, key)] = snapshot.entry(key) }
    return found
  }

  /// The domains that the place has.
  func domains() throws(EngineError) -> Set<DomainName> { try places.domains(in: .cloud) }

  /// When a domain of the place last changed.
  func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    try places.modified(Location(.cloud, domain))
  }

  /// The keys of the domain that its authoritative schema has in the cloud (`Schema.isInCloud`).
  func schemaKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    let location = Location(.schema, domain)
    guard try places.find("prefs_authoritative", at: location)?.value == true,
      case .array(let keys)? = try places.find("pfm_subkeys", at: location)?.value
    else { return [] }
    let named = keys.compactMap(\.dictionary).filter { $0["prefs_cloud"] == true }
    return Set(named.compactMap { $0["pfm_name"]?.string.map { Key($0) } })
  }

  /// The domains that have a schema, and values of the user's.
  func schemaDomains() throws(EngineError) -> Set<DomainName> {
    let own = try places.domains(in: .user).union(places.domains(in: .host))
    return try places.domains(in: .schema).intersection(own)
  }

  // MARK: - Changes

  /// Makes the edits and saves the change, both or nothing.
  ///
  /// Throws `.changedMeanwhile` where a value before is not the present one.
  /// - Parameters:
  ///   - edits: the keys that are changed, their values before and after.
  ///   - newAccount: the account that the values are of from now on; nil means that of before.
  func commit(
    _ edits: [CloudKey: (old: Value?, new: Value?)], _ change: SavedCloud.Change,
    newAccount: String?
  ) throws(EngineError) {
    var intents: [Intent] = []
    if let newAccount {
      intents.append(.edit(CloudNotes.location, Self.edit(CloudNotes.account, .string(newAccount))))
    }
    for (key, edit) in edits {
      let location = Location(.cloud, key.domain)
      intents.append(.expect(key.key, location, edit.old))
      intents.append(
        .edit(location, edit.new.map { .set(key.key, $0, .unknown) } ?? .remove(key.key)))
    }
    for (key, entry) in change.entries {
      let location = Location(.cloudRecords, key.domain)
      intents.append(.edit(location, Self.edit(key.key, entry)))
    }
    for (number, replaced) in change.replacedValues {
      intents.append(
        .edit(CloudNotes.location, Self.edit(CloudNotes.key(ofReplacedValue: number), replaced)))
    }
    intents.append(.edit(CloudNotes.location, .set(CloudNotes.state, change.header, .unknown)))
    _ = try places.apply(intents, by: author)
  }

  private static func edit(_ key: Key, _ value: Value?) -> Edit {
    value.map { .set(key, $0, .unknown) } ?? .remove(key)
  }

  /// Saves a note.
  func note(_ key: Key, _ value: Value) throws(EngineError) {
    _ = try places.apply([.edit(CloudNotes.location, .set(key, value, .unknown))], by: author)
  }

  /// A note; nil where there is none.
  func note(_ key: Key) throws(EngineError) -> Value? {
    try places.find(key, at: CloudNotes.location)?.value
  }

  /// The domains that the user has removed while no `prefs-cloud` ran, and when.
  func removals() throws(EngineError) -> [DomainName: Timestamp] {
    let notes = try places.snapshots(of: [CloudRemovals.location]).first
    var removals: [DomainName: Timestamp] = [:]
    for (key, value) in notes?.values ?? [:] {
      guard case .date(let time) = value, let domain = CloudRemovals.domain(of: key) else {
        continue
      }
      removals[domain] = Timestamp(time)
    }
    return removals
  }

  /// Forgets that the user has removed domains.
  func forgetRemovals() throws(EngineError) {
    let intents = try removals().keys.map {
      Intent.edit(CloudRemovals.location, .remove(CloudRemovals.key(of: $0)))
    }
    if !intents.isEmpty { _ = try places.apply(intents, by: author) }
  }

  /// Moves keys of the user's other places to the cloud. Keys that the cloud has already stay where
  /// they are, behind the cloud's value; so does a value that is too large for the cloud.
  func adopt(
    _ domain: DomainName, log: (LogLine) -> Void, where belongs: (CloudKey) -> Bool
  ) throws(EngineError) {
    for place in [Place.host, .user] {
      for key in try places.keys(at: Location(place, domain))
      where belongs(CloudKey(domain, key)) {
        do throws(EngineError) {
          let intents = try places.intents(movingToCloud: CloudKey(domain, key), from: place)
          if let intents { _ = try places.apply(intents, by: author) }
        } catch  where [.system(.fileTooLarge), .system(.overQuota)].contains(error.reason) {
          log("\(error); it stays on this machine")
        } catch  where error.reason == .changedMeanwhile {
          continue
        }
      }
    }
  }

  /// Sets keys that are missing in the place.
  func restore(_ keys: [(CloudKey, Value?)]) throws(EngineError) {
    let intents = keys.compactMap { key, value in
      value.map { Intent.edit(Location(.cloud, key.domain), .set(key.key, $0, .unknown)) }
    }
    if !intents.isEmpty { _ = try places.apply(intents, by: author) }
  }
}
