import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The search list: persistent places, wherever they are, languages, and the volatile places of
/// this process.
///
/// Promises: those of `Engine`. Two engines over one store, in one process or in several, differ
/// only in their arguments, registered defaults and suites.
///
/// Threads: any. Calls wait as long as those of the places do; a look-up that gets as far as the
/// languages may also wait a second for each language (`Languages`). Locks: those of the volatile
/// places and of `languages`, and `suites`, `observers` and `readers`, each held briefly. A
/// reader's lock is taken under `readers`. None is held while the persistent places are asked or an
/// observer is called.
public final class SearchEngine: Engine {
  let places: any PersistentPlaces
  let arguments = VolatilePlace(.arguments)
  /// Whether a change of a key that an argument sets is refused. Otherwise it is stored, and is
  /// read when the argument is not given.
  private let refusesShadowed: Bool
  /// Reads lists for the caller, which must not wait for one that hangs; nil: the caller waits.
  let lists: ListReader?
  let registered = VolatilePlace(.registered)
  private let suites = Mutex(SuiteTable())
  private let languages: Languages
  /// The observers of changes of the volatile places. The persistent places notify observers of
  /// other changes.
  let observers = ObserverList()
  /// The readers in use. A reader keeps the engine alive, not the engine its readers.
  private let readers = Mutex<[DomainName: WeakReader]>([:])

  private struct WeakReader: Sendable {
    weak let reader: DomainReader?
  }

  /// Creates an engine over the places.
  /// - Parameters:
  ///   - arguments: the argument domain, as `ArgumentDomain.parse` gives it.
  ///   - refusesShadowed: whether a change of a key that an argument sets is refused, because the
  ///     next read would not see it (a mount); otherwise it is stored (NSUserDefaults).
  ///   - lists: reads lists for a caller that must not wait; a list that it finds hung is an error.
  public init(
    places: any PersistentPlaces, arguments: ValueDictionary = [:], refusesShadowed: Bool = true,
    lists: ListReader? = nil
  ) {
    self.places = places
    self.lists = lists
    self.refusesShadowed = refusesShadowed
    languages = Languages()
    languages.whenLate { [weak self] in
      self?.notify(Changeset(invalidating: Location(.user, .global)))
    }
    _ = self.arguments.set(arguments, for: .global)
    places.observe(except: nil) { [weak self] notice in self?.forget(notice.changeset) }
  }

  /// The suites of domains.
  private struct SuiteTable {
    /// Those that this process added.
    var added: [DomainName: [DomainName]] = [:]
    /// Those that are kept as preferences, of the domains that were asked for.
    var kept: [DomainName: [DomainName]] = [:]
    /// How often kept suites have been forgotten.
    var changes = 0
  }
}

// MARK: - Volatile places and suites

extension SearchEngine {
  /// Registers defaults for a domain: keys that no other place holds are read from them, until the
  /// process ends. A key that is registered again gets the new value (NSUserDefaults
  /// registerDefaults:).
  public func register(_ defaults: ValueDictionary, for domain: DomainName) {
    notify(registered.set(defaults, for: domain))
  }

  /// The arguments of the process. Only managed lists are asked before them.
  public var argumentValues: ValueDictionary {
    get { arguments.values(of: .global) }
    set { notify(arguments.set(newValue, for: .global, replacing: true)) }
  }

  /// The defaults that are registered for a domain. Those of the global domain apply to every
  /// domain.
  public func registeredValues(for domain: DomainName) -> ValueDictionary {
    registered.values(of: domain)
  }

  /// Registers these defaults for the domain, and removes its others.
  public func setRegisteredValues(_ defaults: ValueDictionary, for domain: DomainName) {
    notify(registered.set(defaults, for: domain, replacing: true))
  }

  /// Has the readers look up again what the changeset changed, and notifies observers other than
  /// the author. Ignores an empty changeset.
  func notify(_ changeset: Changeset, by author: Author? = nil) {
    guard !changeset.isEmpty else { return }
    forget(changeset)
    observers.notify(Notice(changeset: changeset, author: author))
  }

  /// The suites of a domain, first added first: those that are kept for it, then those that this
  /// process added. While the owner of the store does not answer, the kept ones are left out. Cost:
  /// a look while no kept suites change; else as `keptSuites`.
  public func suites(of domain: DomainName) -> [DomainName] {
    do {
      return try allSuites(of: domain)
    } catch {
      return suites.withLock { $0.added[domain] ?? [] }
    }
  }

  /// The suites of a domain, as `suites(of:)` says; but throws if the owner of the store does not
  /// answer.
  private func allSuites(of domain: DomainName) throws(EngineError) -> [DomainName] {
    if domain == .global { return [] }
    var (kept, added, changes) = suites.withLock {
      ($0.kept[domain], $0.added[domain] ?? [], $0.changes)
    }
    if kept == nil || !places.isFresh {
      let found = try keptSuites(of: domain)
      // A change since the look-up began may concern these suites.
      suites.withLock { if $0.changes == changes { $0.kept[domain] = found } }
      kept = found
    }
    let all = kept ?? []
    return added.isEmpty ? all : all.filter { !added.contains($0) } + added
  }

  /// The suites of a domain as they were last found, without asking a place; nil if no kept suites
  /// are known. An observer may call it.
  public func knownSuites(of domain: DomainName) -> [DomainName]? {
    suites.withLock { suites in
      suites.kept[domain].map { $0 + (suites.added[domain] ?? []) }
    }
  }

  /// Changes the suites of a domain that this process added. A key that neither the domain's own
  /// lists nor the places before them hold is looked for in the suites, the last one first, before
  /// the global domain. `change` runs under a lock and must not call the engine.
  public func changeSuites(
    of domain: DomainName, _ change: @Sendable (inout [DomainName]) -> Void
  ) {
    suites.withLock { suites in
      var names = suites.added[domain] ?? []
      change(&names)
      suites.added[domain] = names.isEmpty ? nil : names
    }
    languages.forget()
    readers.withLock { $0[domain]?.reader?.forget() }
  }
}

// MARK: - Readers

extension SearchEngine {
  /// Returns the reader of the domain. All callers share one reader, as long as any of them keeps
  /// it.
  public func reader(of domain: DomainName) -> DomainReader {
    readers.withLock { readers in
      if let known = readers[domain]?.reader { return known }
      // Readers that nobody keeps are removed when there are 64 entries, 128, 256, and so on.
      if readers.count >= 64, readers.count.nonzeroBitCount == 1 {
        readers = readers.filter { $0.value.reader != nil }
      }
      let reader = DomainReader(domain, self)
      readers[domain] = WeakReader(reader: reader)
      return reader
    }
  }

  /// Has the readers look up again what the changeset changed.
  private func forget(_ changeset: Changeset) {
    let changed = Set(changeset.items.compactMap { KeptSuites.domain(of: $0) })
    if changeset.concernsLanguages { languages.forget() }
    let isWhole =
      changeset.concernsLanguages
      || changeset.invalidated.contains { $0.domain == KeptSuites.domain }
    let suites = suites.withLock { suites in
      if isWhole || !changed.isEmpty { suites.changes += 1 }
      for domain in changed { suites.kept[domain] = nil }
      if isWhole { suites.kept = [:] }
      return suites
    }
    readers.withLock { readers in
      for domain in changed { readers[domain]?.reader?.forget() }
      for (name, weak) in readers {
        guard let reader = weak.reader else { continue }
        if isWhole { reader.forget() }
        let needs = { (domain: DomainName) in
          name == domain || domain == .global || suites.kept[name]?.contains(domain) == true
            || suites.added[name]?.contains(domain) == true
        }
        for item in changeset.items where needs(item.location.domain) {
          if let key = item.edit.key { reader.forget(key) } else { reader.forget() }
        }
        if changeset.invalidated.contains(where: { needs($0.domain) }) { reader.forget() }
      }
    }
  }
}

// MARK: - Looking up

extension SearchEngine {
  /// The locations that are asked for a key of the domain, in order: suites and languages among
  /// them.
  func locations(for domain: DomainName) throws(EngineError) -> [Location] {
    var all = SearchList.locations(for: domain, suites: try allSuites(of: domain))
    let end = all.firstIndex { $0.place == .registered } ?? all.count
    let names = try languageTable(of: domain).languages
    all.insert(contentsOf: names.map { Location(.language($0), .global) }, at: end)
    return all
  }

  public func resolve(_ key: Key, in domain: DomainName) throws(EngineError) -> Resolution? {
    try look(for: key, in: domain, withLanguages: key != Languages.key)
  }

  /// Returns the first hit of the search list; nil where no place holds the key.
  /// - Parameter withLanguages: whether the languages are asked, before the registered defaults.
  private func look(
    for key: Key, in domain: DomainName, withLanguages: Bool
  ) throws(EngineError) -> Resolution? {
    var asksLanguages = withLanguages
    for location in SearchList.locations(for: domain, suites: try allSuites(of: domain)) {
      if location.place == .registered, asksLanguages {
        asksLanguages = false
        if let found = try languageTable(of: domain).find(key) { return found }
      }
      if let found = try find(key, at: location, for: domain) {
        return Resolution(found, location: location)
      }
    }
    return nil
  }

  /// The values of the domain's languages, in one table.
  private func languageTable(of domain: DomainName) throws(EngineError) -> Languages.Table {
    try languages.table(of: domain, isFresh: places.isFresh) { () throws(EngineError) in
      try look(for: Languages.key, in: domain, withLanguages: false)?.value
    }
  }

  /// The languages of the domain's `AppleLanguages` that have values, the one that wins first.
  /// Throws where `AppleLanguages` cannot be read.
  public func languages(of domain: DomainName) throws(EngineError) -> [String] {
    try languageTable(of: domain).languages
  }

  /// The values of a language; empty if there are none, or if its files do not answer within a
  /// second.
  public func languageValues(of language: String) -> ValueDictionary {
    languages.values(of: language)
  }

  /// The key's value at a location of the search list for `domain`.
  ///
  /// A list of the global domain or of a suite that cannot be read is an error of that domain,
  /// which the store's owner has logged: this domain goes on without it. A managed list is an error
  /// of every domain that needs it, because it may force the key.
  func find(
    _ key: Key, at location: Location, for domain: DomainName
  ) throws(EngineError) -> StoredValue? {
    switch location.place {
    case .arguments: return arguments.find(key, in: .global)
    case .registered: return registered.find(key, in: location.domain)
    case .language(let name):
      return languages.values(of: name)[key].map {
        StoredValue($0, Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
      }
    case .ownManaged, .managed, .managedFor, .host, .user, .anyUser: break
    }
    do throws(EngineError) {
      if let finding = lists?.finding(location) {
        if let error = finding.error { throw error }
        return nil
      }
      return try places.find(key, at: location)
    } catch
      where error.reason == .unreadable && location.domain != domain
      && !location.place.isForced
    {
      return nil
    }
  }

  /// The keys of a domain in one place. A list that hangs is an error and is not waited for.
  func storedKeys(at location: Location) throws(EngineError) -> [Key] {
    guard let finding = lists?.finding(location) else { return try places.keys(at: location) }
    if let error = finding.error { throw error }
    return []
  }

  /// When a domain last changed in one place; nil where the place does not have it. A list that
  /// hangs is an error and is not waited for.
  func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    guard let finding = lists?.finding(location) else { return try places.modified(location) }
    if finding.modified == nil, let error = finding.error { throw error }
    return finding.modified
  }

  public func domains() throws(EngineError) -> Set<DomainName> {
    var found: Set<DomainName> = [.global]
    for place in SearchList.persistentPlaces { found.formUnion(try places.domains(in: place)) }
    return found
  }

  public func hasDomain(_ domain: DomainName) throws(EngineError) -> Bool {
    guard lists != nil, domain != .global else { return try places.hasDomain(domain) }
    for place in SearchList.persistentPlaces
    where try modified(Location(place, domain)) != nil { return true }
    return false
  }

  public func keys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found = Set(registered.keys(of: domain))
    for place in SearchList.persistentPlaces {
      found.formUnion(try storedKeys(at: Location(place, domain)))
    }
    return found
  }

  public func inheritedKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found = Set(arguments.keys(of: .global)).union(registered.keys(of: .global))
    for place in SearchList.persistentPlaces {
      found.formUnion(try storedKeys(at: Location(place, .global)))
    }
    found.formUnion(try suiteKeys(of: domain))
    found.formUnion(try languageTable(of: domain).keys)
    return found
  }

  /// Every key that the search list of the domain finds: its own, its suites' and the inherited
  /// ones.
  public func allKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    try keys(of: domain).union(inheritedKeys(of: domain))
  }

  /// A key's value in one place of the store.
  public func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try places.find(key, at: location)
  }

  /// The keys of a domain in one place of the store.
  public func keys(at location: Location) throws(EngineError) -> [Key] {
    try places.keys(at: location)
  }

  /// The keys that the domain gets from its suites.
  private func suiteKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    var found: Set<Key> = []
    for suite in suites(of: domain) {
      for place in [Place.host, .user] {
        found.formUnion(try places.keys(at: Location(place, suite)))
      }
    }
    return found
  }

  public func modified(_ domain: DomainName) throws(EngineError) -> Timestamp? {
    var latest: Timestamp?
    for place in SearchList.persistentPlaces {
      guard let time = try modified(Location(place, domain)) else { continue }
      latest = max(latest ?? time, time)
    }
    return latest
  }
}

// MARK: - Changes

extension SearchEngine {
  /// Applies the intents without waiting for the answer (see `PersistentPlaces.post`). What they
  /// set is read here at once.
  public func post(
    _ intents: [Intent], by author: Author, done: @escaping @Sendable (EngineError?) -> Void
  ) {
    do throws(EngineError) {
      for intent in intents { try refuseForVolatile(intent) }
    } catch {
      return done(error)
    }
    places.post(intents, by: author) { [weak self] error in
      self?.forget(intents)
      done(error)
    }
    forget(intents)
  }

  /// Has the readers look up again the keys that the intents set or remove.
  private func forget(_ intents: [Intent]) {
    var changeset = Changeset()
    for case .set(let key, let domain, _, _) in intents {
      changeset.items.append(.init(Location(.user, domain), .remove(key)))
    }
    for case .remove(let key, let domain) in intents {
      changeset.items.append(.init(Location(.user, domain), .remove(key)))
    }
    forget(changeset)
  }

  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try lists?.refuse(intents)
    for intent in intents { try refuseForVolatile(intent) }
    do {
      return try places.apply(intents, by: author)
    } catch  where error.reason == .noSuchKey {
      guard let domain = error.domain, let key = error.key,
        let place = try resolve(key, in: domain)?.location.place, !place.isPersistent
      else { throw error }
      throw EngineError(
        .heldElsewhere, domain: domain, key: key,
        "it comes from \(place.rawValue), which a removal does not reach")
    }
  }

  /// Throws where arguments or registered defaults stand in the way of the change. Managed lists
  /// come before the arguments: the owner refuses a change of a key that they hold.
  private func refuseForVolatile(_ intent: Intent) throws(EngineError) {
    switch intent {
    case .set(let key, let domain, _, _), .describe(let key, let domain, _),
      .remove(let key, let domain), .splice(let key, let domain, _),
      .setOwn(let key, let domain, _, _), .removeOwn(let key, let domain):
      guard refusesShadowed, arguments.find(key, in: .global) != nil else { return }
      for location in SearchList.forced(domain)
      where try places.find(key, at: location) != nil { return }
      throw EngineError(
        .argument, domain: domain, key: key, "an argument (-\(key)) sets it")
    case .removeDomain(let domain):
      guard registered.keys(of: domain).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: domain, "it has registered defaults")
      }
    case .renameDomain(_, let new):
      guard registered.keys(of: new).isEmpty else {
        throw EngineError(.domainNotEmpty, domain: new, "it has registered defaults")
      }
    case .createDomain, .at, .edit, .replace, .expect, .expectUnchanged: break
    }
  }

  public func observe(
    except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void
  ) {
    observers.add(except: author, observer)
    places.observe(except: author) { [weak self] notice in
      observer(self?.seen(notice) ?? notice)
    }
  }

  public var isReadOnly: Bool { places.isReadOnly }
}
