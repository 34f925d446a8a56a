import PreferenceModel
import PropertyList
import SystemCalls

// Entries of directories, and events for those who watch them.

extension KernelCache {
  // MARK: - Entries

  /// Notes that the entries of a domain's directory changed: makes its listing anew when it is next
  /// asked for, and invalidates its attributes.
  func entriesChanged(_ domain: DomainName, at time: Timestamp) {
    if let node = table[domain] { entriesChanged(node, at: time) }
  }

  /// Notes that the entries of the root changed.
  func rootChanged(at time: Timestamp) { entriesChanged(table.root, at: time) }

  /// Notes that the entries of a directory in which scratch files lie changed.
  func entriesChanged(_ parent: ScratchPath.Parent, at time: Timestamp) {
    switch parent {
    case .root: rootChanged(at: time)
    case .domain(let domain): entriesChanged(domain, at: time)
    case .directory(let id): if let node = table[id] { entriesChanged(node, at: time) }
    }
  }

  private func entriesChanged(_ node: Node, at time: Timestamp) {
    node.directory?.listing.entriesChanged()
    node.modified = max(time, node.modified.next)
    append(.invalidateAttributes(node.id))
  }

  /// Shows the value again that places have for a removed name, if any.
  func show(_ path: KeyPath, now: Moment) {
    guard let parent = table[path.domain] else { return }
    guard let found = try? engine.resolve(path.key, in: path.domain) else { return }
    invalidateEntry(parent.id, path.key)
    entriesChanged(path.domain, at: now.time)
    if found.location.domain == path.domain || options.listsInherited { announce(path, .created) }
  }

  /// Has everything dropped that the kernel has cached of the tree: something may have changed
  /// while no driver was there to hear of it.
  func invalidateAll() {
    for node in table.nodes.values {
      append(.invalidateAttributes(node.id))
      // The kernel may have kept a listing.
      if case .directory = node.content { append(.invalidateContents(node.id)) }
    }
    for path in table.paths() {
      guard let id = table[path]?.id else { continue }
      invalidateFile(id)
      if let parent = table[path.domain] { invalidateEntry(parent.id, path.key) }
    }
    for path in answered.all {
      if let parent = table[path.domain] { invalidateEntry(parent.id, path.key) }
    }
    guard case .domains = position.root, let domains = try? engine.domains() else { return }
    for domain in domains where table[domain] == nil { invalidateEntry(table.root.id, domain.key) }
    // Of a domain that was removed meanwhile. One that is there keeps its directory, because a mount
    // may lie in it.
    let none = RemovedValues(of: Changeset())
    for domain in table.domains where !domains.contains(domain) && endIfGone(domain, none) {
      invalidateEntry(table.root.id, domain.key)
    }
  }

  // MARK: - Events

  /// Announces what happened to a key to those who watch its file or directory.
  func announce(_ path: KeyPath, _ kind: Announcement.Kind) {
    let directory = position.directory(of: path.domain)
    let removed = kind == .removed ? nameless[path] : nil
    append(
      .announce(
        Announcement(
          directory, table[path.domain]?.id, name: NameCodec.encode(path.key), kind,
          removed: removed)))
  }

  /// Announces that a domain came or went.
  func announceDomain(_ name: String, _ kind: Announcement.Kind) {
    append(
      .announce(
        Announcement(position.path, table.root.id, name: name, isDomain: true, kind)))
  }

  /// Announces what happened to keys; that of generated texts later (`eventDelay`). A created key is
  /// announced as created and then written, as after `echo`.
  func announce(_ events: [KeyEvent], _ now: Moment) {
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

  /// Notes events that are announced later, each once.
  private func delay(_ events: [KeyEvent], _ now: Moment) {
    if events.isEmpty { return }
    for event in events {
      let path = KeyPath(domain: event.domain, key: event.key)
      // What was made and changed since is announced as made.
      let isNew = delayed[path] == .created && event.kind == .changed
      delayed[path] = isNew ? .created : event.kind
    }
    deadline = deadline ?? now.instant.advanced(milliseconds: eventDelay)
  }

  /// Milliseconds between the change of a generated text and its announcement.
  private var eventDelay: Int64 { options.isWatched ? 10 : 1000 }

  /// Announces the events that were delayed, if they are due.
  func announceDelayed(_ now: Moment) {
    guard let end = deadline, end <= now.instant else { return }
    for (path, kind) in delayed {
      if kind == .created { announce(path, .created) }
      if kind == .removed {
        announce(path, .removed)
      } else if kind == .created || table[path] != nil {
        announce(path, .changed(now.time))
      }
    }
    (delayed, deadline) = ([:], nil)
  }
}
