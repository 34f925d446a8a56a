import PreferenceClient
import PreferenceHistory
import PreferenceModel
import PreferenceSchemas
import PreferenceSearch
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// The store that a browser shows: makes rows and details of its keys, and changes them.
///
/// Threads: any. Calls wait for the owner of the store, 5 s at most, and for disks. Locks: `known`,
/// held for a look.
final class BrowserStore: Sendable {
  let engine: SearchEngine
  let places: any PersistentPlaces
  let owner: any ReportService
  let layout: StoreLayout
  let history: HistoryReader
  let author = Author.unique()
  let options: BrowserOptions
  /// The only place; nil means all.
  var place: Place? { options.place }
  /// Whether it is the past.
  var isPast: Bool { options.moment != nil }
  /// The keys that rows were made of.
  private let known = Mutex<[DomainName: Set<Key>]>([:])

  /// Finds the owner of the store, and starts one if there is none. Throws why that is not possible,
  /// and ENODATA where the history does not have the moment.
  convenience init(_ options: BrowserOptions) throws(EngineError) {
    let surroundings =
      if let user = options.user { try Surroundings(ofUser: user) } else {
        try Surroundings.answering()
      }
    // Its lines would stand in the middle of the screen; errors come with what was asked for.
    let client = try StoreClient(clientOf: surroundings, hearsAll: true, via: .command) { _ in }
    var places: any PersistentPlaces = client
    let history = HistoryReader(client)
    if let moment = options.moment {
      let number = try history.read().requireNumber(at: moment)
      places = try PastPlaces(after: number, client, history)
    }
    self.init(options, places, client, history, StoreLayout(surroundings))
  }

  /// Shows these places.
  init(
    _ options: BrowserOptions, _ places: any PersistentPlaces, _ owner: any ReportService,
    _ history: HistoryReader, _ layout: StoreLayout
  ) {
    (self.places, self.owner, self.history, self.layout) = (places, owner, history, layout)
    self.options = options
    engine = SearchEngine(places: places)
  }

  // MARK: - Rows

  /// The domains whose keys are shown, in order.
  func domains() throws(EngineError) -> [DomainName] {
    if let domain = options.domain { return [domain] }
    let all = try engine.domains().union(try places.domains(in: .schema))
    return all.subtracting([.declared]).sorted()
  }

  /// The rows of domains, and what could not be read of them.
  func entries(of domains: [DomainName]) -> (entries: [Entry], problems: [String]) {
    load(domains)
    var (entries, problems): ([Entry], [String]) = ([], [])
    let secrecy = Secrecy(places)
    for domain in domains {
      do throws(EngineError) {
        let keys = try keys(of: domain)
        known.withLock { $0[domain] = keys }
        for key in keys.sorted() {
          if let entry = try entry(EntryID(domain, key), secrecy) { entries.append(entry) }
        }
      } catch {
        problems.append("\(error)")
      }
    }
    return (entries, problems)
  }

  /// Reads the lists of domains with one question.
  private func load(_ domains: [DomainName]) {
    let all = domains + [.global]
    let locations = all.flatMap { domain in
      (SearchList.persistentPlaces + [.schema]).map { Location($0, domain) }
    }
    if isPast {
      _ = try? places.snapshots(of: locations)
    } else {
      _ = places.loadLists(ListLoad(locations, evenIfAbsent: true))
    }
  }

  private func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var keys: Set<Key> =
      if let place { Set(try places.keys(at: Location(place, domain))) } else {
        try engine.keys(of: domain)
      }
    // `{{key}}` in a schema stands for any name.
    for key in engine.schema(of: domain)?.keys ?? [] where !key.name.string.hasPrefix("{{") {
      keys.insert(key.name)
    }
    return keys
  }

  /// What is read of a key; nil means nothing.
  func find(_ id: EntryID) throws(EngineError) -> Resolution? {
    guard let place else { return try engine.resolve(id.key, in: id.domain) }
    let location = Location(place, id.domain)
    return try places.find(id.key, at: location).map { Resolution($0, location: location) }
  }

  /// What the schema of the domain says of a key.
  func schemaKey(_ id: EntryID) -> SchemaKey? { engine.schema(of: id.domain)?[id.key] }

  /// The row of a key; nil if there is no such key.
  func entry(_ id: EntryID, _ secrecy: Secrecy) throws(EngineError) -> Entry? {
    let (found, schema) = (try find(id), schemaKey(id))
    if found == nil, schema == nil { return nil }
    var marks: Entry.Marks = schema == nil ? [] : .known
    var text = ""
    if let found {
      marks.insert(.set)
      if found.isForced { marks.insert(.forced) }
      if isModified(found, id, schema) { marks.insert(.modified) }
      let isSecret = secrecy.hides(found.value, of: id, schema)
      if isSecret { marks.insert(.secret) }
      text = isSecret ? ValueLine.mask : ValueLine.short(found.value)
    } else if schema?.hasSecrets == true {
      marks.insert(.secret)
    }
    if schema?.isRequired == true { marks.insert(.required) }
    return Entry(
      id, value: text, whole: found?.value,
      source: found?.location.source(seenFrom: id.domain) ?? "schema",
      note: schema.map(Self.note) ?? "", texts: schema.map(Self.texts) ?? "", marks: marks)
  }

  private static func texts(_ schema: SchemaKey) -> String {
    "\(schema.title) \(schema.summary.prefix(500))"
  }

  private func isModified(_ found: Resolution, _ id: EntryID, _ schema: SchemaKey?) -> Bool {
    found.location.place.isOwn && found.location.domain == id.domain && schema?.isState != true
      && schema?.isDefault(found.value) != true
  }

  /// What may stand there, without type and default, which there is no room for in a row.
  private static func note(_ schema: SchemaKey) -> String {
    let rule = schema.rule
    let type = rule.firstRange(of: ", ")?.upperBound ?? rule.endIndex
    let rest = rule[type...]
    if rest.hasPrefix("default ") { return "" }
    return String(rest.firstRange(of: ", default ").map { rest[..<$0.lowerBound] } ?? rest)
  }

  // MARK: - Changes of others

  /// What changes have made of the rows.
  func changed(_ changesets: [Changeset]) -> Event {
    var (keys, domains): (Set<EntryID>, Set<DomainName>) = ([], [])
    for changeset in changesets {
      domains.formUnion(changeset.invalidated.lazy.map(\.domain))
      for item in changeset.items {
        if let key = item.edit.key {
          keys.formUnion(rows(of: key, in: item.location.domain))
        } else {
          domains.insert(item.location.domain)
        }
      }
    }
    if domains.contains(.global) { domains.formUnion(known.withLock { $0.keys }) }
    return refreshed(keys, domains.filter { isShown($0) })
  }

  private func isShown(_ domain: DomainName) -> Bool {
    domain != .declared && (options.domain ?? domain) == domain
  }

  /// The rows that a change of a key may concern: its own, and those of domains that may inherit it.
  private func rows(of key: Key, in domain: DomainName) -> [EntryID] {
    let others = known.withLock { known in
      known.compactMap { $0.value.contains(key) ? EntryID($0.key, key) : nil }
    }
    return isShown(domain) ? others + [EntryID(domain, key)] : others
  }

  private func refreshed(_ keys: Set<EntryID>, _ domains: Set<DomainName>) -> Event {
    let before = known.withLock { known in domains.map { ($0, known[$0] ?? []) } }
    var entries = self.entries(of: domains.sorted()).entries
    var gone = before.flatMap { domain, keys in keys.map { EntryID(domain, $0) } }
    let there = Set(entries.map(\.id))
    gone.removeAll { there.contains($0) }
    let secrecy = Secrecy(places)
    for id in keys where !domains.contains(id.domain) {
      // A key whose list cannot be read stays as it was.
      guard let entry = try? entry(id, secrecy) as Entry?? else { continue }
      if let entry { entries.append(entry) } else { gone.append(id) }
      let isThere = entry != nil
      known.withLock { known in
        if isThere {
          known[id.domain, default: []].insert(id.key)
        } else {
          known[id.domain]?.remove(id.key)
        }
      }
    }
    return .changed(entries, gone: gone)
  }
}

/// Which values are secrets: by their schemas, and by the rule of the history.
struct Secrecy {
  private let settings: HistorySettings

  init(_ places: any PersistentPlaces) {
    let found = try? places.findFirst(HistorySettings.key, in: HistorySettings.locations)
    settings = HistorySettings(found?.stored.value)
  }

  func hides(_ value: Value, of id: EntryID, _ schema: SchemaKey?) -> Bool {
    schema?.hasSecrets == true || !settings.keeps(value, of: id.key, in: id.domain)
  }
}
