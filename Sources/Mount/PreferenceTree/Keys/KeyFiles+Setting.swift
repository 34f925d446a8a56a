import PreferenceModel
import PropertyList
import SystemCalls

// Makes keys of scratch files.

extension KeyFiles {
  /// Sets a key to the text of a scratch file, in one transaction, and makes the file the key's
  /// file: rename(2) over a key or to a new key's name, and setxattr(2) on the file.
  /// - Parameter isNew: whether the key must be new; throws EEXIST if somebody else has made it.
  func setKey(
    _ path: KeyPath, from node: Node, isNew: Bool = false, now: Moment
  ) throws(TreeError) {
    guard let scratch = node.scratch, let text = scratch.text else {
      throw log.refused(.refused("\(path): only a file can become a key"))
    }
    let existing = try values.target(path, now: now)
    if isNew, existing != nil { throw .exists }
    let source = removedNames.source(of: node.id)
    let isLate = source == nil && mayComeLater(text, existing, scratch.wantedKind)
    var intents =
      isLate ? [] : [try setting(path, to: text, existing: existing, of: scratch, from: source)]
    let formerMode = existing == nil ? removedNames.former(path)?.mode : nil
    let description = Description(
      mode: scratch.mode ?? formerMode, modified: scratch.hasOwnTime ? node.modified : nil)
    if !description.isEmpty { intents.append(.describe(path.key, path.domain, description)) }
    if isNew { intents = expectNone(path) + intents }
    if existing == nil {
      intents = inFormerPlace(path, intents, from: source.flatMap { removedNames.former($0) })
    }
    if let source, source != path { intents.append(.remove(source.key, source.domain)) }
    let displaced = try values.displaced(path)
    try transactor.transact(intents, touching: [path], isDecisive: true, isNew: isNew) { _ in
      values.detach(displaced, at: existing?.modified ?? now.time)
      removedNames.forget(path)
      if let source { removedNames.forget(source) }
      table.makeKey(node, path)
      let file = KeyFile(node, path)
      node.changed = now.time
      if isLate { file.editorMemory = TextEditor.Memory(startsEmpty: true) }
      if text.isEmpty { file.wantedKind = scratch.wantedKind }
      kernel.entriesChanged(scratch.path.parent, at: now.time)
    }
    kernel.entriesChanged(path.domain, at: now.time)
    kernel.invalidateFile(node.id)
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

  /// Returns the intent that sets a key to a text. The value gets the type that the key has; that
  /// of a new key is the schema's, or what the key had a moment ago if the text is a value of that,
  /// or follows from the text. Throws EPERM, never EINVAL, if the text is not a value of an
  /// existing key's type, or of the type that a schema demands.
  /// - Parameters:
  ///   - existing: the key's value; nil if the key is new.
  ///   - file: the file. The type that a tool has set on it counts if the text is a value of it. A
  ///     new key gets the type of the key whose text it is a copy of.
  ///   - moved: the key that the file was a moment ago; a new key gets its type.
  func setting(
    _ path: KeyPath, to text: [UInt8], existing: Resolution?, of file: ScratchFile? = nil,
    from moved: KeyPath? = nil
  ) throws(TreeError) -> Intent {
    guard text.count <= TextEditor.largest else { throw log.refused(.textTooLarge("\(path)")) }
    if let existing { try values.requireWritable(existing, path) }
    if let wanted = file?.wantedKind, let value = Recogniser.value(of: text, kind: wanted) {
      return .set(path.key, path.domain, value, values.written(text, value))
    }
    let template = values.template(existing)
    let known = engine.newKind(of: path.key, in: path.domain)
    let kind =
      values.demandedKind(of: path, over: existing?.value) ?? existing?.kind ?? known?.kind
      ?? moved.flatMap { removedNames.former($0)?.kind }
      ?? removedNames.former(path)?.kind ?? file?.formerKind
    let read = kind.flatMap {
      Recogniser.value(
        of: text, kind: $0, template: template, shown: existing?.value, null: options.null)
    }
    if let kind, read == nil, existing != nil || known?.isCertain == true && options.judges {
      throw wrongType(path, kind)
    }
    let value = read ?? newValue(of: text)
    return .set(path.key, path.domain, value, values.written(text, value))
  }

  /// Returns, and logs, EPERM for a file that is renamed over a key whose type its text does not
  /// have.
  func wrongType(_ path: KeyPath, _ kind: Kind) -> TreeError {
    log.refused(
      .refused("\(path): the renamed file's text is not of the key's type, \(kind.rawValue)"))
  }

  /// Returns the value of a new key's text.
  private func newValue(of text: [UInt8]) -> Value {
    guard options.createsStrings else { return Inference.value(of: text) }
    return Recogniser.value(of: text, kind: .string) ?? .data(text)
  }
}
