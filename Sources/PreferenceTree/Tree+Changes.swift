import PreferenceModel
import PropertyList
import SystemCalls

// Changes that were not made through this tree, but by another mount, by a program, or in a list.

extension Tree {
  /// Shows a change that was made through another tree of the mount.
  public func changed(_ changeset: Changeset, now: Moment) {
    changed(engine.notice(of: changeset), now: now)
  }

  /// Invalidates everything in the kernel that shows the change, and announces it to watchers. A
  /// notice of the tree's own change is ignored: `transact` has done all that.
  public func changed(_ notice: Notice, now: Moment) {
    guard notice.author != author else { return }
    for item in notice.changeset.items { noteNames(item, at: notice.changeset.time) }
    // A schema with defaults makes its domain.
    for location in notice.changeset.invalidated where location.place == .schema {
      invalidateEntry(table.root.id, location.domain.key)
    }
    propagate(notice.changeset, touched: [], changesNames: true)
    for item in notice.changeset.items where item.edit == .removeDomain {
      domainRemoved(item.location.domain, RemovedValues(of: notice.changeset))
    }
    announce(notice, now)
  }

  /// Ends the departure of a key that is there again, or was removed by someone else after it was
  /// moved away. Invalidates the root's entry of a domain that may have come or gone.
  private func noteNames(_ item: Changeset.Item, at time: Timestamp) {
    let domain = item.location.domain
    switch item.edit {
    case .set(let key, _, _), .splice(let key, _):
      departures.forget(KeyPath(domain: domain, key: key))
      if table[domain] != nil { return }
    case .remove(let key):
      let path = KeyPath(domain: domain, key: key)
      if departures.isMovedAway(path) { departures.forget(path) }
      return
    case .describe: return
    case .createDomain, .removeDomain: break
    }
    rootChanged(at: time)
    invalidateEntry(table.root.id, domain.key)
  }

  /// Invalidates everything of a domain of which any key may have changed: its keys, names that
  /// were missing, and what other domains inherit from it.
  func invalidate(_ domain: DomainName, at time: Timestamp, removed: RemovedValues) {
    let heirs = table.domains.filter { engine.inherits($0, from: domain) }
    for domain in heirs + [domain] {
      entriesChanged(domain, at: time)
      for path in table.paths(in: domain) { invalidate(path, removed: removed[path]) }
      guard let directory = table[domain] else { continue }
      for key in answered.forget(domain) { invalidateEntry(directory.id, key) }
    }
  }

  /// Ends the nodes of a domain that is gone, and of its files. If the domain comes back, its
  /// directory is a different one.
  private func domainRemoved(_ domain: DomainName, _ removed: RemovedValues) {
    guard domain != .global, (try? engine.hasDomain(domain)) == false,
      table.scratchNodes(in: .domain(domain)).isEmpty
    else { return }
    for path in table.paths(in: domain) { invalidate(path, removed: removed[path]) }
    table.remove(domain)
  }

  /// Announces the domains and keys that came, changed or went. These effects follow those that
  /// invalidate the kernel's caches. A created key is announced as created and then written, as
  /// after `echo`.
  private func announce(_ notice: Notice, _ now: Moment) {
    for item in notice.changeset.items {
      let name = NameCodec.encode(item.location.domain.key)
      switch item.edit {
      case .createDomain: announceDomain(name, .created)
      case .removeDomain: announceDomain(name, .removed)
      case .set, .splice, .remove, .describe: break
      }
    }
    announce(notice.events, now)
  }

  /// Notes events that are announced later, each once.
  private func delay(_ events: [KeyEvent], _ now: Moment) {
    if events.isEmpty { return }
    for event in events {
      let path = KeyPath(domain: event.domain, key: event.key)
      // What was made and changed since is announced as made.
      let isNew = delayed[path] == .created && event.kind == .changed
      delayed[path] = isNew ? .created : event.kind
    }
    let end = delayedUntil ?? now.instant.advanced(milliseconds: Self.eventDelay)
    delayedUntil = end
    wake(at: end)
  }

  /// Milliseconds between the change of a generated text and its announcement.
  private static let eventDelay: Int64 = 1000

  /// Announces the events that were delayed, if they are due.
  func announceDelayed(_ now: Moment) {
    guard let end = delayedUntil, end <= now.instant else { return }
    for (path, kind) in delayed {
      if kind == .created { announce(path, .created) }
      if kind == .removed {
        announce(path, .removed)
      } else if kind == .created || table[path] != nil {
        announce(path, .changed(now.time))
      }
    }
    (delayed, delayedUntil) = ([:], nil)
  }

  private func announceDomain(_ name: String, _ kind: Announcement.Kind) {
    effects.append(
      .announce(
        Announcement(position.path, table.root.id, name: name, isDomain: true, kind)))
  }

  private func announce(_ events: [KeyEvent], _ now: Moment) {
    if options.isGenerated { return delay(events, now) }
    for event in events {
      let path = KeyPath(domain: event.domain, key: event.key)
      if event.kind == .removed {
        announce(path, .removed)
        continue
      }
      let time = (try? engine.resolve(event.key, in: event.domain))?.modified ?? now.time
      if event.kind == .created { announce(path, .created) }
      announce(path, .changed(time))
    }
  }
}
