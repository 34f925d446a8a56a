import PreferenceModel
import PropertyList
import SystemCalls

// Keys that become scratch files, and scratch files that become keys.
//
// A key that is renamed to a scratch name (an editor's backup) is moved away: the mount shows the
// move at once, the engine still has the key. Made again within the second, by whatever call, it
// is a change of the key, and the backup stays a scratch file. If it is not, the move was meant,
// and the scratch file becomes a key under its new name: one changeset.

extension Tree {
  /// rename(2) of a key to a scratch name.
  func moveAway(
    _ old: KeyPath, to new: ScratchPath, _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    guard case .domain = new.parent, mode != .exchange else {
      throw refused(
        .refused("\(old.domain) \(old.key): a key stays in a domain, and changes places with keys"))
    }
    guard let source = try settled(old, now: now) else { throw .missing }
    guard !source.isReadOnly, source.location.domain == old.domain,
      [.user, .host].contains(source.location.place)
    else {
      let place = source.location.source(seenFrom: old.domain)
      throw refused(
        .refused("\(old.domain) \(old.key): it comes from \(place), which a rename does not reach"))
    }
    if table[new] != nil, mode == .keep { throw .exists }
    let node = table.node(of: old)
    let text = try shownText(node)
    var scratch = Scratch(content: .file(text), mode: source.mode, modified: source.modified)
    scratch.movedFrom = old
    try checkRoom(for: scratch.size, new.name)
    try replaceScratch(table[new], now: now)
    dropCache(node)
    (node.editor, node.creation, node.modified) = (nil, nil, source.modified)
    node.changed = .now
    table.move(node, to: new)
    table.setScratch(scratch, of: node)
    let until = now.advanced(milliseconds: Self.removalTime)
    removals[old] = Removal(until: until, kind: source.value.kind, holder: node.id)
    wake(at: until)
    entriesChanged(old.domain, at: .now)
    directoryChanged(new.parent)
  }

  /// What is renamed over goes, and a key that was moved away to it.
  private func replaceScratch(_ existing: Node?, now: Instant) throws(TreeError) {
    guard let existing else { return }
    guard existing.type != .directory || table.scratchNodes(in: .directory(existing.id)).isEmpty
    else { throw .notEmpty(subjectText(existing)) }
    if existing.type == .directory {
      removeScratch(existing)
    } else {
      try unlinkScratch(existing, now: now)
    }
  }

  /// The second is over and nobody made the key again: the scratch file becomes a key.
  func endMove(_ old: KeyPath, _ node: Node) {
    guard case .scratch(let path) = node.subject, case .domain(let domain) = path.parent,
      let scratch = node.scratch, let text = scratch.text, let source = try? resolve(old)
    else {
      node.scratch?.movedFrom = nil
      return endRemoval(old)
    }
    removals[old] = nil
    node.scratch?.movedFrom = nil
    let named: Key?
    if case .key(let key) = NameCodec.decode(path.name) { named = key } else { named = nil }
    let new = KeyPath(domain: domain, key: named ?? Key(path.name))
    if new == old { return table.become(node, new) }
    do throws(TreeError) {
      if named != nil, try resolve(new) != nil {
        throw refused(.refused("\(new.domain) \(new.key): somebody else made it meanwhile"))
      }
      let changeset = try apply(parking(old, as: new, scratch, text, source, node))
      if named != nil {
        table.become(node, new)
      } else {
        removeScratch(node)
        effects.append(.dropEntry(parent: table[domain]?.id ?? .root, name: path.name))
      }
      propagate(changeset, known: named == nil ? [old] : [old, new], addsEntries: true)
      effects.append(.dropAttributes(node.id))
    } catch {
      // It has been logged; the key shows again under its own name, and nothing is lost.
    }
    endRemoval(old)
  }

  /// The intents that make the key one of the new name, with what was written and changed since.
  private func parking(
    _ old: KeyPath, as new: KeyPath, _ scratch: Scratch, _ text: [UInt8], _ source: Resolution,
    _ node: Node
  ) throws(TreeError) -> [Intent] {
    let unchanged = text == self.text(source, of: node)
    let known = unchanged ? source.value : Recogniser.value(of: text, kind: source.value.kind)
    let set =
      if let known {
        Intent.set(new.key, new.domain, known, written(text, known))
      } else {
        try setting(new, to: text, existing: nil)
      }
    let modified = scratch.hasOwnTime ? node.modified : unchanged ? source.modified : nil
    let kept = Description(mode: scratch.mode ?? source.mode, modified: modified)
    return [set, .describe(new.key, new.domain, kept), .remove(old.key, old.domain)]
  }

  /// The key is there again, by whatever road: the move was an editor's.
  func endHold(_ path: KeyPath) {
    if let holder = removals[path]?.holder { table[holder]?.scratch?.movedFrom = nil }
    removals[path] = nil
  }

  /// open(2) with O_CREAT of a key that was moved away: the key as if it had been truncated.
  func remake(_ path: KeyPath, now: Instant) throws(TreeError) -> Entry {
    endHold(path)
    let node = table.node(of: path)
    try truncate(node, to: 0, handle: .none, now: now)
    entriesChanged(path.domain, at: .now)
    return try entry(node)
  }

  /// rename(2) of a scratch file.
  func renameScratch(
    _ node: Node, to parent: NodeID, _ name: String, _ mode: RenameMode, now: Instant
  ) throws(TreeError) {
    guard mode != .exchange else {
      throw refused(.invalid("\(subjectText(node)): temporary files cannot be exchanged"))
    }
    let directory = try scratchParent(parent)
    let found = try find(parent, name, now: now)
    if mode == .keep, case .nothing = found {} else if mode == .keep { throw .exists }
    if case .scratch(let existing) = found, existing === node { return }
    if case .key(let path, _) = found { return try setKey(path, from: node, now: now) }
    let making = ScratchName.Making.file(exclusively: false, readsToo: false)
    // A type that a tool has set on the file says that it is a key, whatever its new name looks like.
    let isKey = node.scratch?.wantedKind != nil && !NameCodec.isScratchPattern(name)
    if case .domain(let domain) = directory, node.type == .file,
      isKey || !isScratchName(name, in: directory, making)
    {
      let key = try newKey(name, "\(domain) \(name)")
      try setKey(KeyPath(domain: domain, key: key), from: node, now: now)
      if case .scratch(let existing) = found { try replaceScratch(existing, now: now) }
      return
    }
    if case .scratch(let existing) = found {
      guard (existing.type == .directory) == (node.type == .directory) else {
        throw existing.type == .directory ? .isDirectory : .notDirectory
      }
      try replaceScratch(existing, now: now)
    }
    if case .scratch(let old) = node.subject { directoryChanged(old.parent) }
    table.move(node, to: ScratchPath(parent: directory, name: name))
    directoryChanged(directory)
  }

  /// rename(2) of a scratch file over a key, or to a key's new name: sets it, in one step.
  func setKey(_ path: KeyPath, from node: Node, now: Instant) throws(TreeError) {
    guard case .scratch(let old) = node.subject, let text = node.scratch?.text else {
      throw refused(.refused("\(path.domain) \(path.key): only a file can become a key"))
    }
    let existing = try target(path, now: now)
    let moved = node.scratch?.movedFrom.flatMap { removals[$0]?.holder == node.id ? $0 : nil }
    // The text may come after the rename, by the descriptor that made the file.
    let isLate =
      text.isEmpty && moved == nil && existing?.isReadOnly == false
      && existing.map { ![.string, .data].contains($0.value.kind) } == true
    let wanted = node.scratch?.wantedKind
    var intents =
      isLate
      ? [] : [try setting(path, to: text, existing: existing, from: moved, wanted: wanted)]
    let description = Description(
      mode: node.scratch?.mode,
      modified: node.scratch?.hasOwnTime == true ? node.modified : nil)
    if !description.isEmpty { intents.append(.describe(path.key, path.domain, description)) }
    if let moved, moved != path { intents.append(.remove(moved.key, moved.domain)) }
    let displaced = try displaced(path)
    let changeset = try apply(intents)
    detach(displaced, at: existing?.modified)
    endHold(path)
    if let moved, moved != path { endHold(moved) }
    table.become(node, path)
    node.changed = .now
    if isLate { node.editorMemory = TextEditor.Memory(startsEmpty: true) }
    if text.isEmpty { node.wantedKind = wanted }
    directoryChanged(old.parent)
    propagate(changeset, known: [path], addsEntries: true)
    entriesChanged(path.domain, at: .now)
    effects += [.dropAttributes(node.id), .dropContents(node.id)]
  }

  /// The node of a key that a rename replaces, and what it shows.
  func displaced(_ path: KeyPath) throws(TreeError) -> (node: Node, text: [UInt8])? {
    try table[path].map { node throws(TreeError) in (node, try shownText(node)) }
  }

  /// Who has the replaced file open keeps what it showed.
  func detach(_ displaced: (node: Node, text: [UInt8])?, at time: Timestamp?) {
    guard let (node, text) = displaced else { return }
    node.modified = time ?? .now
    dropCache(node)
    table.detach(node, text: text)
  }

  /// The intent that sets a key to a text: of the type that it has or had a moment ago; a new
  /// one's type follows from the text. EPERM, never EINVAL, where the text is none of the type.
  /// - Parameters:
  ///   - moved: the key that the file was a moment ago; its type goes along to a new name.
  ///   - wanted: the type that a tool has asked for; it counts where the text is a value of it.
  func setting(
    _ path: KeyPath, to text: [UInt8], existing: Resolution?, from moved: KeyPath? = nil,
    wanted: Kind? = nil
  ) throws(TreeError) -> Intent {
    guard text.count <= TextEditor.largest else {
      throw refused(
        .tooLarge("\(path.domain) \(path.key): a value's text is at most 16 MiB"))
    }
    if let existing { try requireWritable(existing, "\(path.domain) \(path.key)") }
    if let wanted, let value = Recogniser.value(of: text, kind: wanted) {
      return .set(path.key, path.domain, value, written(text, value))
    }
    let template = options.style == .json ? existing?.value : nil
    let kind =
      existing?.value.kind ?? moved.flatMap { removals[$0]?.kind } ?? removals[path]?.kind
    let known = kind.flatMap {
      Recogniser.value(of: text, kind: $0, template: template, shown: existing?.value)
    }
    if let existing, known == nil {
      throw refused(
        .refused(
          "\(path.domain) \(path.key): the renamed file's text is no \(existing.value.kind.rawValue)"
        ))
    }
    let value = known ?? newValue(of: text)
    return .set(path.key, path.domain, value, written(text, value))
  }

  /// What a new key's text means.
  private func newValue(of text: [UInt8]) -> Value {
    guard options.createsStrings else { return Inference.value(of: text) }
    return Recogniser.value(of: text, kind: .string) ?? .data(text)
  }
}
