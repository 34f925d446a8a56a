import PreferenceModel
import PropertyList
import SystemCalls

// Keys that become scratch files, and scratch files that become keys (TOOLS.md, sections 2 and 3).
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
    guard case .domain = new.parent else {
      throw refused(.refused("\(old.domain) \(old.key): a key stays in a domain"))
    }
    guard let source = try settled(old, now: now) else { throw .missing }
    guard !source.isReadOnly, source.location.domain == old.domain,
      [.user, .host].contains(source.location.place)
    else {
      let place = source.location.source(seenFrom: old.domain)
      throw refused(
        .refused("\(old.domain) \(old.key): it comes from \(place), which a rename does not reach"))
    }
    if let existing = table[new] {
      if mode == .keep { throw .exists }
      removeScratch(existing)
    }
    let node = table.node(of: old)
    let text = try shownText(node)
    var scratch = Scratch(content: .file(text), mode: source.mode, modified: source.modified)
    scratch.movedFrom = old
    try checkRoom(for: scratch.size, new.name)
    dropCache(node)
    (node.editor, node.creation, node.modified) = (nil, nil, source.modified)
    table.move(node, to: new)
    table.setScratch(scratch, of: node)
    let until = now.advanced(milliseconds: Self.removalTime)
    removals[old] = Removal(until: until, kind: source.value.kind, holder: node.id)
    wake(at: until)
    entriesChanged(old.domain, at: .now)
    directoryChanged(new.parent)
  }

  /// The second is over and nobody made the key again: the scratch file becomes a key.
  func endMove(_ old: KeyPath, _ node: Node) {
    removals[old] = nil
    guard case .scratch(let path) = node.subject, case .domain(let domain) = path.parent,
      let text = node.scratch?.text, let source = try? resolve(old)
    else { return }
    node.scratch?.movedFrom = nil
    let isName: Bool
    let key: Key
    if case .key(let named) = NameCodec.decode(path.name) {
      (isName, key) = (true, named)
    } else {
      (isName, key) = (false, Key(path.name))
    }
    let new = KeyPath(domain: domain, key: key)
    do throws(TreeError) {
      let unchanged = text == self.text(source, of: node)
      let intent =
        unchanged
        ? Intent.set(key, domain, source.value, written(text, source.value))
        : try setting(new, to: text, existing: nil)
      let kept = Description(mode: source.mode, modified: unchanged ? source.modified : nil)
      let changeset = try apply([
        intent, .describe(key, domain, kept), .remove(old.key, old.domain),
      ])
      if isName {
        table.become(node, new)
      } else {
        removeScratch(node)
        effects.append(.dropEntry(parent: table[domain]?.id ?? .root, name: path.name))
      }
      propagate(changeset, known: isName ? [old, new] : [old], addsEntries: true)
      effects.append(.dropAttributes(node.id))
    } catch {
      // It has been logged; the key shows again under its own name, and nothing is lost.
      if let parent = table[old.domain] { dropEntry(parent.id, old.key) }
      entriesChanged(old.domain, at: .now)
    }
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
    if case .domain(let domain) = directory, node.type == .file,
      !isScratchName(name, in: directory, making, now: now)
    {
      let key = try newKey(name, "\(domain) \(name)")
      if case .scratch(let existing) = found { removeScratch(existing) }
      return try setKey(KeyPath(domain: domain, key: key), from: node, now: now)
    }
    if case .scratch(let existing) = found {
      guard (existing.type == .directory) == (node.type == .directory) else {
        throw existing.type == .directory ? .isDirectory : .notDirectory
      }
      removeScratch(existing)
    }
    if case .scratch(let old) = node.subject { directoryChanged(old.parent) }
    table.move(node, to: ScratchPath(parent: directory, name: name))
    directoryChanged(directory)
  }

  /// rename(2) of a scratch file over a key, or to a key's new name: sets it, in one step.
  private func setKey(_ path: KeyPath, from node: Node, now: Instant) throws(TreeError) {
    guard case .scratch(let old) = node.subject, let text = node.scratch?.text else {
      throw refused(.refused("\(path.domain) \(path.key): only a file can become a key"))
    }
    let isHeld = removals[path]?.holder != nil
    let existing = isHeld ? try resolve(path) : try resolve(path, now: now)
    // The text may come after the rename, by the descriptor that made the file.
    let isLate = text.isEmpty && existing.map { ![.string, .data].contains($0.value.kind) } == true
    var intents = isLate ? [] : [try setting(path, to: text, existing: existing)]
    let description = Description(
      mode: node.scratch?.mode,
      modified: node.scratch?.hasOwnTime == true ? node.modified : nil)
    if !description.isEmpty { intents.append(.describe(path.key, path.domain, description)) }
    let moved = node.scratch?.movedFrom
    if let moved, moved != path { intents.append(.remove(moved.key, moved.domain)) }
    let target = table[path]
    let targetText = try target.map { node throws(TreeError) in try shownText(node) }
    let changeset = try apply(intents)
    if let target {
      target.modified = existing?.modified ?? .now
      dropCache(target)
      table.detach(target, text: targetText ?? [])
    }
    endHold(path)
    if let moved, moved != path { endHold(moved) }
    table.become(node, path)
    if isLate { node.editorMemory = TextEditor.Memory(startsEmpty: true) }
    directoryChanged(old.parent)
    propagate(changeset, known: [path], addsEntries: true)
    entriesChanged(path.domain, at: .now)
    effects += [.dropAttributes(node.id), .dropContents(node.id)]
  }

  /// The intent that sets a key to a text: of the type that it has or had a moment ago; a new
  /// one's type follows from the text. EPERM, never EINVAL, where the text is none of the type.
  func setting(
    _ path: KeyPath, to text: [UInt8], existing: Resolution?
  ) throws(TreeError) -> Intent {
    guard text.count <= TextEditor.largest else {
      throw refused(
        .tooLarge("\(path.domain) \(path.key): a value's text is at most 16 MiB"))
    }
    if let existing, existing.isReadOnly {
      let why = existing.isForced ? "the administrator has set it" : "an argument sets it"
      throw refused(.refused("\(path.domain) \(path.key): \(why)"))
    }
    let template = options.style == .json ? existing?.value : nil
    let kind = existing?.value.kind ?? removals[path]?.kind
    let known = kind.flatMap { Recogniser.value(of: text, kind: $0, template: template) }
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
