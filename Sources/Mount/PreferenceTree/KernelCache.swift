import PreferenceModel
import PropertyList
import SystemCalls

/// What the kernel has cached of a tree, and the effects that make it right after a change.
///
/// The kernel caches the entries of names, also of missing ones, the attributes and pages of files,
/// and listings. A change of the engine makes some of them wrong: those of the key, those of the
/// domains that inherit it (`AnsweredNames` knows which of them the kernel has asked for), and the
/// entries of directories. The driver carries the effects out (`Effect`).
///
/// Promises: what is not invalidated is right. A file whose key is gone is detached with the text
/// that it has shown last, for the processes that have it open.
///
/// Threads: the tree's alone.
final class KernelCache {
  let engine: any Engine
  let options: TreeOptions
  let position: TreePosition
  let table: NodeTable
  let removedNames: RemovedNames
  let values: ValueReader
  private let log: TreeLog
  /// What the driver must do, in this order.
  private(set) var effects: [Effect] = []
  /// The files that have lost these names since the effects were last removed.
  private(set) var nameless: [KeyPath: NodeID] = [:]
  /// The look-ups that other domains' changes can make wrong.
  var answered: AnsweredNames
  /// Events of generated texts that are still to be announced.
  var delayed: [KeyPath: KeyEvent.Kind] = [:]
  /// When `announceDelayed` must be called; nil if it need not be.
  var deadline: Instant?

  init(_ parts: TreeParts, _ values: ValueReader) {
    (engine, options, position) = (parts.engine, parts.options, parts.position)
    (table, removedNames, self.values) = (parts.table, parts.removedNames, values)
    (log, answered) = (parts.log, AnsweredNames(parts.table.changes))
  }

  /// Adds an effect behind the others.
  func append(_ effect: Effect) { effects.append(effect) }

  /// Removes and returns the effects since it was last called.
  func removeEffects() -> [Effect] {
    if !nameless.isEmpty { nameless = [:] }
    defer { effects = [] }
    return effects
  }

  /// Invalidates what the kernel has cached of the keys of a change.
  /// - Parameters:
  ///   - touched, changesNames: see `Transactor.transact`.
  ///   - isOutside: whether the change was not made through this tree. Then a key that had a value,
  ///     and gets another one, neither comes nor goes.
  func propagate(
    _ changeset: Changeset, touched: Set<KeyPath>, changesNames: Bool, isOutside: Bool = false
  ) {
    let removed = RemovedValues(of: changeset)
    if !changeset.invalidated.isEmpty {
      let domains = Set(changeset.invalidated.map(\.domain))
      invalidate(domains, at: changeset.time, removed: removed)
    }
    for item in changeset.items {
      guard let key = item.edit.key else { continue }
      let path = KeyPath(domain: item.location.domain, key: key)
      if case .describe = item.edit {
        if !touched.contains(path), let id = table[path]?.id {
          append(.invalidateAttributes(id))
        }
        continue
      }
      if !touched.contains(path) {
        if item.sets, table.hasScratch { dropScratch(of: path) }
        invalidate(
          path, changeset.version, isGone: item.edit == .remove(key), isSet: item.sets,
          removed: removed[path])
      }
      // A request knows one of the two names that such a key has.
      if changesNames, touched.contains(path), NameCodec.patternName(of: key) != nil,
        let parent = table[path.domain]
      {
        invalidateEntry(parent.id, key)
      }
      if changesNames, !(isOutside && item.sets && item.hadKey) {
        namesChanged(path.domain, at: changeset.time)
      }
      if let file = table[path]?.keyFile { values.dropCachedText(file) }
      invalidateHeirs(
        of: path, isForced: item.location.place.isForced, at: changeset.time, removed: removed)
    }
  }

  /// Takes the name of a scratch file, or a link, that a key has now: the file is neither listed
  /// beside the key nor there again after it. A process that has it open keeps its text.
  private func dropScratch(of path: KeyPath) {
    let names = [NameCodec.encode(path.key), NameCodec.patternName(of: path.key)]
    let parent = ScratchPath.Parent.domain(path.domain)
    let nodes = names.compactMap { $0 }.compactMap { table[ScratchPath(parent: parent, name: $0)] }
    guard let node = nodes.first, node.scratch != nil else { return }
    log(.notice("\(node.subject): a temporary file was replaced by a preference of that name"))
    table.detach(node)
    append(.invalidateAttributes(node.id))
    if let parent = table[path.domain] { invalidateEntry(parent.id, path.key) }
    values.forget(node.id, 0)
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
  ///   - removed: the value that the change removed; nil if it removed none, or the value is not known.
  func invalidate(
    _ path: KeyPath, _ version: UInt64 = .max, isGone: Bool = false, isSet: Bool = false,
    removed: StoredValue? = nil
  ) {
    // A watcher may hold the file's node where the kernel has forgotten the directory.
    let parent = table[path.domain]
    if let node = table[path], let file = node.keyFile {
      let text = lastText(file, removed)
      values.dropCachedText(file)
      if version > file.committedVersion, !isSet || !keepsTruncation(file) {
        file.yield(isChanged: isSet || isGone)
      }
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

  /// Whether a truncation of the file a moment ago stays, although somebody else has set the key:
  /// see `TextEditor.keepsTruncation`.
  private func keepsTruncation(_ file: KeyFile) -> Bool {
    guard let editor = file.editor, editor.isTruncated,
      let found = try? engine.resolve(file.path.key, in: file.path.domain),
      editor.keepsTruncation(before: values.sourceText(found))
    else { return false }
    file.origin = KeyFile.EditedVersion(location: found.location, modified: found.modified)
    return true
  }

  /// Takes the name of a key that is gone from its file. A process that has the file open keeps a
  /// copy of what the file showed, because only the kernel's pages may still have it. A new key of
  /// the name gets a new node.
  private func loseName(_ path: KeyPath, _ node: Node, _ text: [UInt8], mode: UInt32?) {
    table.detach(node, text: text, mode: mode)
    nameless[path] = node.id
    append(.invalidateAttributes(node.id))
    table.renewInode(of: path)
  }

  /// Returns whether the file of the key keeps its name: the key has a value, which the file shows
  /// from now on, or its list cannot be read, and the file is an error until it can. Keeps the
  /// value where `keepsShown` holds.
  private func staysNamed(_ path: KeyPath) -> Bool {
    do {
      guard let found = try engine.resolve(path.key, in: path.domain) else {
        // An awaited key of a domain that is gone is not made any more.
        guard table[path]?.keyFile?.creation?.awaited != nil else { return false }
        return try engine.hasDomain(path.domain)
      }
      if let file = table[path]?.keyFile { values.note(shown: found, by: file) }
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
    return stored.text ?? values.canonicalText(stored.value)
  }

  /// Invalidates the entry of a key's name in the directory, and of its name by pattern.
  func invalidateEntry(_ parent: NodeID, _ key: Key) {
    append(.invalidateEntry(parent: parent, name: NameCodec.encode(key)))
    if let name = NameCodec.patternName(of: key) {
      append(.invalidateEntry(parent: parent, name: name))
    }
  }

  /// Invalidates the attributes and pages of a file whose text is different now.
  func invalidateFile(_ id: NodeID) {
    effects += [.invalidateAttributes(id), .invalidateContents(id)]
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
