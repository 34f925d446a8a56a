import PreferenceModel
import PropertyList
import SystemCalls

// Turns keys into scratch files, and scratch files into keys: see `Departures`.

extension Tree {
  /// Carries out rename(2) of a key to a scratch name. The mount shows the move at once; the engine
  /// keeps the key until it is clear whether the tool makes the key again.
  func moveAway(
    _ old: KeyPath, to new: ScratchPath, _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    guard case .domain = new.parent, mode != .exchange else {
      throw refused(
        .refused("\(old): a key can be moved only to a domain, and exchanged only with a key"))
    }
    guard let source = try decided(old, now: now) else { throw .missing }
    guard !source.isReadOnly, source.location.domain == old.domain,
      engine.reaches(source.location, of: old.domain)
    else {
      let place = source.location.source(seenFrom: old.domain)
      throw refused(
        .refused("\(old): its value comes from the place \(place), which a rename cannot change"))
    }
    if table[new] != nil, mode == .keep { throw .exists }
    let (node, file) = table.file(of: old)
    let text = try shownText(node)
    try checkRoom(for: text.count + ScratchSpace.overhead, new.name)
    try replaceScratch(table[new], now: now)
    dropCachedText(file)
    (node.modified, node.changed) = (source.modified, now.time)
    table.makeScratch(node, file, new, text: text, mode: source.mode)
    departures.noteMove(old, Departures.Former(old, source), to: node.id, at: now.instant)
    wake(at: departures.deadline ?? now.instant)
    entriesChanged(old.domain, at: now.time)
    entriesChanged(new.parent, at: now.time)
  }

  /// Completes the move of a key that was not made again within 5 s: the scratch file
  /// becomes a key under its own name. If that is refused, the key is there again under its old
  /// name, and the scratch file stays.
  func completeMove(_ old: KeyPath, _ holder: NodeID, now: Moment) {
    guard let node = table[holder], let scratch = node.scratch, let text = scratch.text,
      case .domain(let domain) = scratch.path.parent, let source = try? resolve(old)
    else { return show(old, now: now) }
    let named: Key? =
      if case .key(let key) = NameCodec.decode(scratch.path.name) { key } else { nil }
    let new = KeyPath(domain: domain, key: named ?? Key(scratch.path.name))
    if new == old {
      table.makeKey(node, new)
      return
    }
    do throws(TreeError) {
      if named != nil, try resolve(new) != nil {
        throw refused(.refused("\(new): the key was made meanwhile, so \(old) is not moved to it"))
      }
      let intents = try renaming(old, to: new, scratch, text, source, node)
      try transact(intents, touching: named == nil ? [old] : [old, new]) { _ in
        if named != nil {
          table.makeKey(node, new)
        } else {
          removeScratch(node, now: now)
          effects.append(
            .invalidateEntry(parent: table[domain]?.id ?? table.root.id, name: scratch.path.name))
        }
      }
      effects.append(.invalidateAttributes(node.id))
    } catch {
      // The refusal has been logged.
    }
    show(old, now: now)
  }

  /// Returns the intents that rename a key that was moved away, with the text, mode and time that
  /// the scratch file has now.
  private func renaming(
    _ old: KeyPath, to new: KeyPath, _ scratch: ScratchFile, _ text: [UInt8],
    _ source: Resolution, _ node: Node
  ) throws(TreeError) -> [Intent] {
    let isUnchanged = text == sourceText(source)
    let value = isUnchanged ? source.value : Recogniser.value(of: text, kind: source.kind)
    let set =
      if let value {
        Intent.set(new.key, new.domain, value, written(text, value))
      } else {
        try setting(new, to: text, existing: nil)
      }
    let modified = scratch.hasOwnTime ? node.modified : isUnchanged ? source.modified : nil
    let kept = Description(mode: scratch.mode ?? source.mode, modified: modified)
    let made = [set, .describe(new.key, new.domain, kept)]
    return inFormerPlace(new, made, from: Departures.Former(old, source))
      + [.remove(old.key, old.domain)]
  }

  /// Makes a key again that was moved away: open(2) with O_CREAT. The key is as if it had been
  /// truncated.
  func remake(_ path: KeyPath, now: Moment) throws(TreeError) -> Entry {
    departures.forget(path)
    let node = table.file(of: path).node
    try truncate(node, to: 0, handle: .none, now: now)
    entriesChanged(path.domain, at: now.time)
    return try entry(node)
  }

  /// Carries out rename(2) of a scratch file, link or directory.
  func renameScratch(
    _ node: Node, to directory: any FileDirectory, _ name: String, _ mode: RenameMode,
    now: Moment
  ) throws(TreeError) {
    guard mode != .exchange else {
      throw refused(.invalid("\(node.subject): temporary files cannot be exchanged"))
    }
    let found = try find(name, in: directory, now: now)
    if mode == .keep, case .nothing = found {} else if mode == .keep { throw .exists }
    if case .scratch(let existing) = found, existing === node { return }
    if case .key(let path, _) = found { return try setKey(path, from: node, now: now) }
    if case .domain(let domain) = directory.filesParent, becomesKey(node, name, directory) {
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
    if let old = node.scratchPath { entriesChanged(old.parent, at: now.time) }
    table.rename(node, to: ScratchPath(parent: directory.filesParent, name: name))
    // A tool uses the file.
    node.scratch?.mayStay = false
    unclaimed[node.id] = nil
    entriesChanged(directory.filesParent, at: now.time)
  }

  /// Whether a scratch file becomes a key under the new name: the name is not a scratch name, or a
  /// tool has set a type on the file and the name is not a scratch name by its pattern alone.
  private func becomesKey(
    _ node: Node, _ name: String, _ directory: any FileDirectory
  ) -> Bool {
    guard node.type == .file else { return false }
    if node.scratch?.wantedKind != nil, !NameCodec.isScratchPattern(name) { return true }
    let making = ScratchName.Making.file(exclusively: false, readsToo: false)
    return !isScratchName(name, in: directory, making)
  }

  /// Sets a key to the text of a scratch file, in one transaction, and makes the file the key's
  /// file: rename(2) over a key or to a new key's name, and setxattr(2) on the file.
  func setKey(_ path: KeyPath, from node: Node, now: Moment) throws(TreeError) {
    guard let scratch = node.scratch, let text = scratch.text else {
      throw refused(.refused("\(path): only a file can become a key"))
    }
    let existing = try target(path, now: now)
    let source = departures.source(of: node.id)
    let isLate = source == nil && mayComeLater(text, existing, scratch.wantedKind)
    var intents =
      isLate
      ? []
      : [
        try setting(path, to: text, existing: existing, from: source, wanted: scratch.wantedKind)
      ]
    let formerMode = existing == nil ? departures.former(path)?.mode : nil
    let description = Description(
      mode: scratch.mode ?? formerMode, modified: scratch.hasOwnTime ? node.modified : nil)
    if !description.isEmpty { intents.append(.describe(path.key, path.domain, description)) }
    if existing == nil {
      intents = inFormerPlace(path, intents, from: source.flatMap { departures.former($0) })
    }
    if let source, source != path { intents.append(.remove(source.key, source.domain)) }
    let displaced = try displaced(path)
    try transact(intents, touching: [path]) { _ in
      detach(displaced, at: existing?.modified ?? now.time)
      departures.forget(path)
      if let source { departures.forget(source) }
      let file = table.makeKey(node, path)
      node.changed = now.time
      if isLate { file.editorMemory = TextEditor.Memory(startsEmpty: true) }
      if text.isEmpty { file.wantedKind = scratch.wantedKind }
      entriesChanged(scratch.path.parent, at: now.time)
    }
    entriesChanged(path.domain, at: now.time)
    invalidateFile(node.id)
  }

  /// Whether an empty file that replaces a key leaves the value as it is, because its text may be
  /// written after the rename, through the descriptor that made the file. Not where a tool has set
  /// a type on the file that an empty text is a value of: `rsync -X` of an empty string.
  private func mayComeLater(
    _ text: [UInt8], _ existing: Resolution?, _ wanted: Kind?
  ) -> Bool {
    guard let existing, text.isEmpty, !existing.isReadOnly else { return false }
    let kinds: [Kind] = [.string, .data]
    return !kinds.contains(existing.kind) && wanted.map { !kinds.contains($0) } ?? true
  }

  /// Returns the intent that sets a key to a text. The value gets the type that the key has, or had
  /// a moment ago if the text is a value of that; otherwise the type of a new key follows from the
  /// text. Throws EPERM, never EINVAL, if the text is not a value of an existing key's type.
  /// - Parameters:
  ///   - existing: the key's value; nil: the key is new.
  ///   - moved: the key that the file was a moment ago; a new key gets its type.
  ///   - wanted: the type that a tool has set on the file; it counts if the text is a value of it.
  func setting(
    _ path: KeyPath, to text: [UInt8], existing: Resolution?, from moved: KeyPath? = nil,
    wanted: Kind? = nil
  ) throws(TreeError) -> Intent {
    guard text.count <= TextEditor.largest else { throw tooLarge("\(path)") }
    if let existing { try requireWritable(existing, path) }
    if let wanted, let value = Recogniser.value(of: text, kind: wanted) {
      return .set(path.key, path.domain, value, written(text, value))
    }
    let template = options.style == .json ? existing?.value : nil
    let known = engine.newKind(of: path.key, in: path.domain)
    let kind =
      existing?.kind ?? known?.kind ?? moved.flatMap { departures.former($0)?.kind }
      ?? departures.former(path)?.kind
    let read = kind.flatMap {
      Recogniser.value(
        of: text, kind: $0, template: template, shown: existing?.value, null: options.null)
    }
    if let kind, read == nil, existing != nil || known?.isCertain == true && options.judges {
      throw wrongType(path, kind)
    }
    let value = read ?? newValue(of: text)
    return .set(path.key, path.domain, value, written(text, value))
  }

  /// Returns, and logs, EPERM for a file that is renamed over a key whose type its text does not
  /// have.
  func wrongType(_ path: KeyPath, _ kind: Kind) -> TreeError {
    refused(.refused("\(path): the renamed file's text is not of the key's type, \(kind.rawValue)"))
  }

  /// Returns the value of a new key's text.
  private func newValue(of text: [UInt8]) -> Value {
    guard options.createsStrings else { return Inference.value(of: text) }
    return Recogniser.value(of: text, kind: .string) ?? .data(text)
  }
}
