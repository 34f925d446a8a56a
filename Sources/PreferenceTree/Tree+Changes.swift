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
      if case .set(let key, _, _) = item.edit {
        endHold(KeyPath(domain: item.location.domain, key: key))
        if table[item.location.domain] != nil { continue }
      } else if case .remove(let key) = item.edit {
        let path = KeyPath(domain: item.location.domain, key: key)
        if removals[path]?.holder != nil { endHold(path) }
        continue
      } else if case .describe = item.edit {
        continue
      }
      rootChanged(at: notice.changeset.time)
      dropEntry(NodeID.root, item.location.domain.key)
    }
    propagate(notice.changeset, known: [], addsEntries: true)
  }

  /// Takes back what the kernel knows of the keys.
  /// - Parameters:
  ///   - known: the keys through whose files the change was made: the kernel knows.
  ///   - addsEntries: whether names may have come or gone.
  func propagate(_ changeset: Changeset, known: Set<KeyPath>, addsEntries: Bool) {
    for item in changeset.items {
      switch item.edit {
      case .set(let key, _, _), .remove(let key):
        let own = KeyPath(domain: item.location.domain, key: key)
        if !known.contains(own) { refresh(own) }
        if addsEntries { entriesChanged(own.domain, at: changeset.time) }
        if addsEntries, options.listsInherited, own.domain == .global {
          for domain in table.domains { entriesChanged(domain, at: changeset.time) }
        }
        if let node = table[own] { dropCache(node) }
        guard own.domain == .global else { continue }
        for domain in answered[key] where domain != .global {
          refresh(KeyPath(domain: domain, key: key))
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
  private func refresh(_ path: KeyPath) {
    guard let parent = table[path.domain] else { return }
    let isThere = (try? engine.resolve(path.key, in: path.domain)) != nil
    if let node = table[path] {
      let text = node.editor?.text ?? node.cachedText?.text ?? []
      dropCache(node)
      node.editor = nil
      effects += [.dropAttributes(node.id), .dropContents(node.id)]
      if isThere {
        if !answered.note(path) { dropEntry(parent.id, path.key) }
        return
      }
      // The file is gone: who has it open keeps what it showed, and a new one gets a new node.
      table.detach(node, text: text)
      table.renewInode(of: path)
    }
    answered.forget(path)
    dropEntry(parent.id, path.key)
  }

  func dropEntry(_ parent: NodeID, _ key: Key) {
    effects.append(.dropEntry(parent: parent, name: NameCodec.encode(key)))
  }

  /// The entries of a domain's directory are others now.
  func entriesChanged(_ domain: DomainName, at time: Timestamp) {
    guard let node = table[domain] else { return }
    node.listing = nil
    node.modified = max(time, Timestamp(nanoseconds: node.modified.nanoseconds + 1))
    effects.append(.dropAttributes(node.id))
  }

  /// The domains at the root are others now.
  func rootChanged(at time: Timestamp) {
    guard let root = table[NodeID.root] else { return }
    root.listing = nil
    root.modified = max(time, Timestamp(nanoseconds: root.modified.nanoseconds + 1))
    effects.append(.dropAttributes(root.id))
  }
}
