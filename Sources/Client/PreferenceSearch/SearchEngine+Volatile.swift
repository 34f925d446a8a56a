import PreferenceModel
import PropertyList

// Volatile places and suites.

extension SearchEngine: RegisteredDefaults {
  public var registeredDefaults: Changeset { Changeset(registered.items, time: .now) }

  public func register(_ defaults: Changeset) {
    for item in defaults.items where item.location.place == .registered {
      notify(registered.apply([item.edit], to: item.location.domain))
    }
  }

  public var registrations: UInt64 { registered.changes.load(ordering: .acquiring) }

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

  /// The key's value of the places that need no owner: the arguments, then the registered defaults.
  /// It is what a reader shows while the owner of the store does not answer.
  public func volatileValue(_ key: Key, in domain: DomainName) -> Value? {
    let argument = isKnownLocked(domain) ? nil : arguments.find(key, in: .global)
    let found =
      argument ?? registered.find(key, in: domain) ?? registered.find(key, in: .global)
    return found?.value
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
  func allSuites(of domain: DomainName) throws(EngineError) -> [DomainName] {
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
      suites.changes += 1
    }
    languages.forget()
    readers.withLock { $0[domain]?.reader?.forget() }
    changes.add(1, ordering: .releasing)
  }
}
