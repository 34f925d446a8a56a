import PreferenceModel
import SystemCalls

// Changes that were not made through this tree, but by another mount, by a program, or in a list.

extension KernelCache {
  /// Invalidates everything in the kernel that shows the change, and announces it to watchers.
  func changed(_ notice: Notice, now: Moment) {
    let returned = notice.changeset.items.compactMap { item -> DomainName? in
      guard let key = item.edit.key else { return nil }
      let domain = item.location.domain
      return removedNames.contains(KeyPath(domain: domain, key: key)) ? domain : nil
    }
    // Before nodes go. What nobody has looked up is not watched.
    let made = notice.changeset.items.filter { $0.edit == .createDomain }.map(\.location.domain)
    let new = Set(made)
    let events = notice.events.filter { event in
      options.isGenerated || table.knows(event.domain) || new.contains(event.domain)
    }
    for item in notice.changeset.items { noteNames(item, at: notice.changeset.time) }
    // A schema with defaults makes its domain.
    for location in notice.changeset.invalidated where location.place == .schema {
      invalidateEntry(table.root.id, location.domain.key)
    }
    propagate(notice.changeset, touched: [], changesNames: true, isOutside: true)
    // A removed name comes back with any value.
    for domain in Set(returned) { entriesChanged(domain, at: notice.changeset.time) }
    let gone = notice.changeset.items.filter { $0.edit == .removeDomain }
    if !gone.isEmpty {
      let removed = RemovedValues(of: notice.changeset)
      for item in gone { endIfGone(item.location.domain, removed) }
    }
    announceDomains(notice.changeset)
    announce(events, now)
  }

  /// Forgets the removed name of a key that is there again, or was removed by someone else after it
  /// was moved away. Invalidates the root's entry of a domain that may have come or gone.
  private func noteNames(_ item: Changeset.Item, at time: Timestamp) {
    let domain = item.location.domain
    switch item.edit {
    case .set(let key, _, _), .splice(let key, _):
      removedNames.forget(KeyPath(domain: domain, key: key))
      if table[domain] != nil || item.hadKey { return }
    case .remove(let key):
      let path = KeyPath(domain: domain, key: key)
      if removedNames.isMovedAway(path) { removedNames.forget(path) }
      return
    case .describe: return
    case .createDomain, .removeDomain: break
    }
    rootChanged(at: time)
    invalidateEntry(table.root.id, domain.key)
  }

  /// Invalidates everything of domains of which any key may have changed: their keys, names that
  /// were missing, and what other domains inherit from them. Cost: O(domains + nodes), because where
  /// events were lost, all domains may have changed.
  func invalidate(_ domains: Set<DomainName>, at time: Timestamp, removed: RemovedValues) {
    invalidateKeys(of: domains.union(heirs(of: domains)), at: time, removed: removed)
  }

  /// Invalidates everything of the domains that may inherit keys from the domain.
  func invalidateHeirs(of source: DomainName, at time: Timestamp, removed: RemovedValues) {
    invalidateKeys(of: heirs(of: [source]), at: time, removed: removed)
  }

  private func heirs(of sources: Set<DomainName>) -> Set<DomainName> {
    Set(table.domains.filter { engine.inherits($0, fromAny: sources) })
  }

  private func invalidateKeys(
    of domains: Set<DomainName>, at time: Timestamp, removed: RemovedValues
  ) {
    for domain in domains {
      entriesChanged(domain, at: time)
      for path in table.paths(in: domain) { invalidate(path, removed: removed[path]) }
    }
    for path in answered.forget(domains) {
      if let directory = table[path.domain] { invalidateEntry(directory.id, path.key) }
    }
  }

  /// Ends the nodes of a domain, and of its files, if it is gone. If the domain comes back, its
  /// directory is a different one.
  /// - Returns: whether it is gone.
  @discardableResult
  func endIfGone(_ domain: DomainName, _ removed: RemovedValues) -> Bool {
    guard domain != .global, (try? engine.hasDomain(domain)) == false,
      table.scratchNodes(in: .domain(domain)).isEmpty
    else { return false }
    for path in table.paths(in: domain) { invalidate(path, removed: removed[path]) }
    table.remove(domain)
    return true
  }

  /// Announces the domains that came or went. These effects follow those that invalidate the
  /// kernel's caches, and precede those of keys.
  private func announceDomains(_ changeset: Changeset) {
    for item in changeset.items {
      let name = NameCodec.encode(item.location.domain.key)
      switch item.edit {
      case .createDomain: if !item.hadKey { announceDomain(name, .created) }
      case .removeDomain: announceDomain(name, .removed)
      case .set, .splice, .remove, .describe: break
      }
    }
  }
}
