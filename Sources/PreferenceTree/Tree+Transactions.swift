import PreferenceModel
import PropertyList
import SystemCalls

// The only way in which the tree changes the engine, and what is invalidated after a change.

extension Tree {
  /// Carries out the intents as one transaction, invalidates what the kernel has cached of their
  /// keys, and asks the driver to delay the reply until the other mounts have settled.
  /// - Parameters:
  ///   - touched: the keys of the request: what the kernel has cached of them is right already.
  ///   - changesNames: whether keys may come or go in their directories.
  ///   - remembers: whether the keys' present values are saved for a successor, which repeats a
  ///     request with them if it was carried out and not answered. Pass false for write(2), and for
  ///     a request whose repetition has the same effect.
  ///   - isJudged: whether schemas may refuse it.
  ///   - update: brings the tree's nodes up to date with the change. It is called before anything
  ///     is invalidated.
  /// - Throws: the engine's refusal, which has been logged. Then nothing was changed, and `update`
  ///   was not called.
  @discardableResult
  func transact(
    _ intents: [Intent], touching touched: Set<KeyPath>, changesNames: Bool = true,
    remembers: Bool = true, isJudged: Bool = true,
    _ update: (Changeset) throws(TreeError) -> Void = { _ in }
  ) throws(TreeError) -> Changeset {
    if remembers, let remember { remember(try values(of: touched)) }
    let makesDomain = changesNames && touched.contains { engine.isUnmade($0.domain) }
    let judged: [Intent] = isJudged && options.judges ? [.judged] : []
    let changeset = engine.shown(try apply(judged + intents))
    if remembers { past = [:] }
    if makesDomain { rootChanged(at: changeset.time) }
    try update(changeset)
    propagate(changeset, touched: touched, changesNames: changesNames)
    return changeset
  }

  private func values(of paths: Set<KeyPath>) throws(TreeError) -> [KeyPath: Resolution?] {
    var values: [KeyPath: Resolution?] = [:]
    for path in paths { values[path] = .some(try resolve(path)) }
    return values
  }

  /// Has the engine carry out the intents, and logs a refusal. Invalidates nothing: use `transact`
  /// for changes of keys.
  func apply(_ intents: [Intent]) throws(TreeError) -> Changeset {
    do {
      let changeset = try engine.apply(intents, by: author)
      guard !changeset.isEmpty else { return changeset }
      effects.append(.awaitSettlement(version: changeset.version))
      if hasNeighbours { changes.append(changeset) }
      return changeset
    } catch  where error.reason == .changedMeanwhile {
      throw .changedMeanwhile
    } catch {
      throw refused(TreeError(error))
    }
  }

  /// Invalidates what the kernel has cached of the keys of a change. Parameters: see `transact`.
  func propagate(_ changeset: Changeset, touched: Set<KeyPath>, changesNames: Bool) {
    let removed = RemovedValues(of: changeset)
    for location in changeset.invalidated {
      invalidate(location.domain, at: changeset.time, removed: removed)
    }
    for item in changeset.items {
      guard let key = item.edit.key else { continue }
      let path = KeyPath(domain: item.location.domain, key: key)
      if case .describe = item.edit {
        if !touched.contains(path), let id = table[path]?.id {
          effects.append(.invalidateAttributes(id))
        }
        continue
      }
      if !touched.contains(path) {
        invalidate(
          path, changeset.version, isGone: item.edit == .remove(key), isSet: item.sets,
          removed: removed[path])
      }
      if changesNames { namesChanged(path.domain, at: changeset.time) }
      if let file = table[path]?.keyFile { dropCachedText(file) }
      invalidateHeirs(
        of: path, isForced: item.location.place.isForced, at: changeset.time, removed: removed)
    }
  }

  private func namesChanged(_ domain: DomainName, at time: Timestamp) {
    entriesChanged(domain, at: time)
    guard options.listsInherited else { return }
    for heir in table.domains where engine.inherits(heir, from: domain) {
      entriesChanged(heir, at: time)
    }
  }

  /// Invalidates the key in the domains that may inherit it from its domain.
  /// - Parameter isForced: whether the domain's value stands before those of the heirs, so that it
  ///   reaches files of domains that have the key themselves.
  private func invalidateHeirs(
    of source: KeyPath, isForced: Bool, at time: Timestamp, removed: RemovedValues
  ) {
    let key = source.key
    let known = isForced ? answered[key].union(table.domains(with: key)) : answered[key]
    for domain in known where engine.inherits(domain, from: source.domain) {
      let path = KeyPath(domain: domain, key: key)
      invalidate(path, removed: removed[path])
      // A watcher may watch the file although the domain does not list it.
      guard table[path] != nil else { continue }
      announce(path, .changed(time))
    }
  }

  /// Invalidates everything that the kernel has cached of a key: its file, or that it is missing.
  /// - Parameters:
  ///   - version: the version of the change. The file's editor stays if a later change was made
  ///     through the file itself.
  ///   - isGone: whether the change removed the key. Only a generated text is not looked up again.
  ///   - isSet: whether the change set the key. If the key is gone all the same, a later notice
  ///     removes it, and has the value of which the file keeps a copy.
  ///   - removed: the value that the change removed; nil: none, or it is not known.
  func invalidate(
    _ path: KeyPath, _ version: UInt64 = .max, isGone: Bool = false, isSet: Bool = false,
    removed: StoredValue? = nil
  ) {
    // A watcher may hold the file's node where the kernel has forgotten the directory.
    let parent = table[path.domain]
    if let node = table[path], let file = node.keyFile {
      let text = lastText(file, removed)
      dropCachedText(file)
      if version > file.committedVersion { (file.editor, file.wantedKind) = (nil, nil) }
      let staysNamed = options.isGenerated ? !isGone : staysNamed(path)
      if staysNamed || isSet {
        invalidateFile(node.id)
        if staysNamed, !answered.note(path), let parent { invalidateEntry(parent.id, path.key) }
        return
      }
      loseName(path, node, text, mode: (file.lastShown ?? removed)?.metadata.mode)
    }
    answered.forget(path)
    if let parent { invalidateEntry(parent.id, path.key) }
  }

  /// Takes the name of a key that is gone from its file. A process that has the file open keeps a
  /// copy of what the file showed, because only the kernel's pages may still have it. A new key of
  /// the name gets a new node.
  private func loseName(_ path: KeyPath, _ node: Node, _ text: [UInt8], mode: UInt32?) {
    table.detach(node, text: text, mode: mode)
    effects.append(.invalidateAttributes(node.id))
    table.renewInode(of: path)
  }

  /// Returns whether the file of the key keeps its name: the key has a value, which the file shows
  /// from now on, or its list cannot be read, and the file is an error until it can. Keeps the
  /// value where `keepsShown` holds.
  private func staysNamed(_ path: KeyPath) -> Bool {
    do {
      guard let found = try engine.resolve(path.key, in: path.domain) else { return false }
      if let file = table[path]?.keyFile { note(shown: found, by: file) }
      return true
    } catch {
      return true
    }
  }

  /// The text that a file has shown last.
  /// - Parameter removed: the value that it showed, if it is known from the notice of its removal.
  private func lastText(_ file: KeyFile, _ removed: StoredValue?) -> [UInt8] {
    if let text = file.editor?.text ?? file.cachedText?.text { return text }
    guard let stored = file.lastShown ?? removed else { return [] }
    return stored.text ?? canonicalText(stored.value)
  }

  func invalidateEntry(_ parent: NodeID, _ key: Key) {
    effects.append(.invalidateEntry(parent: parent, name: NameCodec.encode(key)))
  }

  /// Invalidates the attributes and pages of a file whose text is different now.
  func invalidateFile(_ id: NodeID) {
    effects += [.invalidateAttributes(id), .invalidateContents(id)]
  }

  func announce(_ path: KeyPath, _ kind: Announcement.Kind) {
    let directory = position.directory(of: path.domain)
    effects.append(
      .announce(
        Announcement(
          directory, table[path.domain]?.id, name: NameCodec.encode(path.key), kind)))
  }
}

extension Changeset.Item {
  /// Whether the edit gives its key a value.
  fileprivate var sets: Bool {
    switch edit {
    case .set, .splice: true
    case .remove, .describe, .createDomain, .removeDomain: false
    }
  }
}

/// The values that a change removed, as far as they are known; of those of several places the one
/// that precedes the others in the search list.
struct RemovedValues {
  private var values: [KeyPath: (rank: Int, stored: StoredValue)] = [:]
  /// The domains that were removed as a whole, the first in the search list first.
  private var domains: [(rank: Int, name: DomainName, snapshot: DomainSnapshot)] = []

  /// Collects them. Cost: a look at each item.
  init(of changeset: Changeset) {
    for item in changeset.items {
      let domain = item.location.domain
      switch (item.edit, item.before) {
      case (.removeDomain, .domain(let snapshot)):
        domains.append((Self.rank(item), domain, snapshot))
      case (.remove(let key), .value(let stored)):
        let (path, rank) = (KeyPath(domain: domain, key: key), Self.rank(item))
        if values[path].map({ rank < $0.rank }) ?? true { values[path] = (rank, stored) }
      default: break
      }
    }
    domains.sort { $0.rank < $1.rank }
  }

  private static func rank(_ item: Changeset.Item) -> Int {
    SearchList.persistentPlaces.firstIndex(of: item.location.place) ?? .max
  }

  subscript(path: KeyPath) -> StoredValue? {
    if let value = values[path] { return value.stored }
    return domains.lazy.filter { $0.name == path.domain }.compactMap {
      $0.snapshot.entry(path.key)
    }.first
  }
}
