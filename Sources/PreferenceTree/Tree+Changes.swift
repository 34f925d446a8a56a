import PreferenceModel
import PropertyList
import SystemCalls

// How a change reaches the nodes and names that show it.

extension Tree {
  /// A change that others made (law 6): everything that shows it is taken back from the kernel.
  /// Notices of the tree's own changes are ignored, it knows of them.
  public func changed(_ notice: Notice) {
    guard notice.author != author else { return }
    for item in notice.changeset.items {
      switch item.edit {
      case .set(let key, _, _), .splice(let key, _):
        endHold(KeyPath(domain: item.location.domain, key: key))
        if table[item.location.domain] != nil { continue }
      case .remove(let key):
        let path = KeyPath(domain: item.location.domain, key: key)
        if removals[path]?.holder != nil { endHold(path) }
        continue
      case .describe: continue
      case .createDomain, .removeDomain: break
      }
      rootChanged(at: notice.changeset.time)
      dropEntry(NodeID.root, item.location.domain.key)
    }
    propagate(notice.changeset, known: [], addsEntries: true)
    for location in notice.changeset.invalidated {
      invalidate(location.domain, at: notice.changeset.time)
    }
    for item in notice.changeset.items {
      if case .removeDomain = item.edit { domainRemoved(item.location.domain) }
    }
    announce(notice)
  }

  /// A list of the domain cannot be read any more, or can again: so can its keys, those that were answered
  /// as missing among them, and what others inherit from them.
  private func invalidate(_ domain: DomainName, at time: Timestamp) {
    for domain in domain == .global ? table.domains : [domain] {
      entriesChanged(domain, at: time)
      for path in table.paths(in: domain) { refresh(path) }
      guard let directory = table[domain] else { continue }
      for key in answered.forget(domain) { dropEntry(directory.id, key) }
    }
  }

  /// A directory that is gone is another when it comes back, and so are the files in it.
  private func domainRemoved(_ domain: DomainName) {
    guard domain != .global, (try? engine.hasDomain(domain)) == false,
      table.scratchNodes(in: .domain(domain)).isEmpty
    else { return }
    for path in table.paths(in: domain) { refresh(path) }
    table.remove(domain)
  }

  /// Watchers hear of keys and domains that came, changed or went, after the kernel has dropped
  /// what it knew of them. A created key is also written, as `echo` does it.
  private func announce(_ notice: Notice) {
    for item in notice.changeset.items {
      let name = NameCodec.encode(item.location.domain.key)
      switch item.edit {
      case .createDomain: effects.append(.announce(Announcement(domain: name, key: nil, .created)))
      case .removeDomain: effects.append(.announce(Announcement(domain: name, key: nil, .removed)))
      case .set, .splice, .remove, .describe: break
      }
    }
    for event in notice.events {
      let (domain, key) = (NameCodec.encode(event.domain.key), NameCodec.encode(event.key))
      let time = (try? engine.resolve(event.key, in: event.domain))?.modified ?? .now
      let kinds: [Announcement.Kind] =
        switch event.kind {
        case .created: [.created, .changed(time)]
        case .changed: [.changed(time)]
        case .removed: [.removed]
        }
      for kind in kinds {
        effects.append(.announce(Announcement(domain: domain, key: key, kind)))
      }
    }
  }

  /// Takes back what the kernel knows of the keys.
  /// - Parameters:
  ///   - known: the keys through whose files the change was made: the kernel knows.
  ///   - addsEntries: whether names may have come or gone.
  func propagate(_ changeset: Changeset, known: Set<KeyPath>, addsEntries: Bool) {
    for item in changeset.items {
      switch item.edit {
      case .set(let key, _, _), .splice(let key, _), .remove(let key):
        let own = KeyPath(domain: item.location.domain, key: key)
        if !known.contains(own) { refresh(own, changeset.version) }
        if addsEntries { entriesChanged(own.domain, at: changeset.time) }
        if addsEntries, options.listsInherited, own.domain == .global {
          for domain in table.domains { entriesChanged(domain, at: changeset.time) }
        }
        if let node = table[own] { dropCache(node) }
        guard own.domain == .global else { continue }
        for domain in answered[key] where domain != .global {
          let path = KeyPath(domain: domain, key: key)
          refresh(path)
          announceInherited(path, at: changeset.time)
        }
      case .describe(let key, _):
        let path = KeyPath(domain: item.location.domain, key: key)
        if !known.contains(path), let node = table[path] {
          effects.append(.dropAttributes(node.id))
        }
      case .createDomain, .removeDomain: break
      }
    }
  }

  /// Whatever the kernel knows of the name is looked up again.
  /// - Parameter version: the number of the change; one that was made before the file's own last change is
  ///   in the text that the file shows.
  private func refresh(_ path: KeyPath, _ version: UInt64 = .max) {
    guard let parent = table[path.domain] else { return }
    let found = (try? engine.resolve(path.key, in: path.domain)) ?? nil
    if let node = table[path] {
      let text = lastText(node)
      dropCache(node)
      if version > node.committedVersion { node.editor = nil }
      if let found {
        effects += [.dropAttributes(node.id), .dropContents(node.id)]
        node.lastShown = found.stored
        if !answered.note(path) { dropEntry(parent.id, path.key) }
        return
      }
      // The file is gone: who has it open keeps what it showed, which the kernel's pages may be the
      // only copy of; and a new one gets a new node.
      table.detach(node, text: text)
      effects.append(.dropAttributes(node.id))
      table.renewInode(of: path)
    }
    answered.forget(path)
    dropEntry(parent.id, path.key)
  }

  /// What the file showed last.
  private func lastText(_ node: Node) -> [UInt8] {
    if let text = node.editor?.text ?? node.cachedText?.text { return text }
    guard let stored = node.lastShown else { return [] }
    return stored.text ?? ValueText.canonical(stored.value, style: options.style)
  }

  /// A file that somebody may watch although the domain does not list it.
  private func announceInherited(_ path: KeyPath, at time: Timestamp) {
    guard table[path] != nil else { return }
    let (domain, key) = (NameCodec.encode(path.domain.key), NameCodec.encode(path.key))
    effects.append(.announce(Announcement(domain: domain, key: key, .changed(time))))
  }

  func dropEntry(_ parent: NodeID, _ key: Key) {
    effects.append(.dropEntry(parent: parent, name: NameCodec.encode(key)))
  }

  /// The entries of a domain's directory are others now.
  func entriesChanged(_ domain: DomainName, at time: Timestamp) {
    guard let node = table[domain] else { return }
    node.listing = nil
    node.modified = max(time, node.modified.next)
    effects.append(.dropAttributes(node.id))
  }

  /// The domains at the root are others now.
  func rootChanged(at time: Timestamp) {
    guard let root = table[NodeID.root] else { return }
    root.listing = nil
    root.modified = max(time, root.modified.next)
    effects.append(.dropAttributes(root.id))
  }
}
