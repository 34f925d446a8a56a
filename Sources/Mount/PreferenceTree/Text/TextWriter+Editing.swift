import PreferenceModel
import PropertyList
import SystemCalls

// Carries out the actions of a file's `TextEditor`: changes the engine, or throws the text away.

extension TextWriter {
  /// Returns the file's editor, or a new one of the text that the file shows if there is none.
  /// A new one is not the file's before `perform` gives it to the file.
  func editor(of file: KeyFile, handle: HandleID) throws(TreeError) -> TextEditor {
    let resolution = try values.requireValue(file.path)
    try values.requireWritable(resolution, file.path)
    let isAwaited = try isAwaited(file, by: handle)
    file.editsOwnValue = !isAwaited && values.isOwn(resolution, file.path)
    if let editor = file.editor, !editor.isInferred || handle == file.creation?.handle {
      return editor
    }
    file.origin =
      isAwaited
      ? nil
      : KeyFile.EditedVersion(location: resolution.location, modified: resolution.modified)
    let committed = resolution.stored.byteCount.map {
      TextEditor.Committed(kind: resolution.kind, count: $0)
    }
    return TextEditor(
      text: values.text(resolution, of: file), rule: rule(of: file, resolution, handle),
      memory: file.editorMemory, committed: file.editsOwnValue ? committed : nil)
  }

  /// Returns what text that is written to the file must be: that of a value of the file's type, or,
  /// from the creator of a new key, anything. A key that its creator has left empty, as `touch` does,
  /// has the type that its schema demands.
  private func rule(of file: KeyFile, _ resolution: Resolution, _ handle: HandleID) -> Judge.Rule {
    if let creation = file.creation, handle == creation.handle, options.kind == nil {
      let known = engine.newKind(of: file.path.key, in: file.path.domain)
      if let known, known.isCertain, options.judges { return .kind(known.kind) }
      if let known { return .inferred(preferred: known.kind) }
      if !options.createsStrings { return .inferred(preferred: creation.preferredKind) }
    }
    if let kind = options.kind {
      return .kind(kind, template: resolution.value, null: options.null)
    }
    if let kind = values.demandedKind(of: file.path, over: resolution.value) { return .kind(kind) }
    let isPlain = [.string, .data].contains(resolution.kind)
    return .kind(
      file.wantedKind ?? resolution.kind,
      template: values.template(resolution),
      shown: isPlain ? nil : resolution.value)
  }

  /// Gives the editor to the file, and carries out the action of its step. If the engine or the
  /// editor refuses the text, the text is thrown away and the file shows its value again.
  /// - Parameters:
  ///   - handle: that of who writes the text; nil if nobody does at the moment, and the text of a
  ///     key that is still being created is its creator's.
  ///   - isDecisive: see `Transactor.transact`.
  ///   - written: when the text was last written, if that was before: the value gets that time,
  ///     which stat(2) has shown since.
  func perform(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile, by handle: HandleID? = nil,
    isDecisive: Bool = false, now: Moment, written: Timestamp? = nil
  ) throws(TreeError) {
    let memory = file.editorMemory
    file.editor = editor
    file.editorMemory = editor.memory
    let end = now.instant.advanced(
      milliseconds: editor.memory.droppedEnd != nil
        ? Self.refusing : editor.text.count > Self.largeText ? 200 : 5000)
    edited[file.id] = end
    if editor.isHeld { try checkHeldText(file) }
    wake(at: editor.deadline ?? end)
    file.uncommittedSince = editor.deadline == nil ? nil : now.time
    do throws(TreeError) {
      do throws(TreeError) {
        try carryOut(action, editor, file, written, isDecisive)
      } catch {
        // A schema may refuse a value that ends with the rest of the old one.
        guard error.isOfText, let head = editor.withoutTail() else { throw error }
        try carryOut(head, editor, file, written, isDecisive)
      }
    } catch {
      if case .tooLarge = action { throw error }
      if action.commits { file.editorMemory = memory }
      revert(file)
      let isCreators = handle == nil || editor.isInferred || handle == file.creation?.handle
      let isRefusal = [.invalidArgument, .notPermitted].contains(error.errno)
      if isCreators, options.isGenerated && isRefusal || error.isOfText { removeRefused(file) }
      throw error
    }
  }

  private func carryOut(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile, _ time: Timestamp?,
    _ isDecisive: Bool
  ) throws(TreeError) {
    let path = file.path
    switch action {
    case .nothing: break
    case .cut: kernel.invalidateFile(file.id)
    case .commit(let value, let text):
      let set = Intent.set(path.key, path.domain, value, values.written(text, value))
      try commit(set, isComputed: editor.isComputed, file, time, isDecisive)
      if value.kind == file.wantedKind { file.wantedKind = nil }
    case .splice(let splice):
      let set = Intent.splice(path.key, path.domain, splice)
      try commit(set, isComputed: true, file, time, isDecisive)
    case .revert(let reason) where (try? values.awaited(path)) != nil:
      let why = reason ?? "no text came, and an empty one is not a value of its type"
      file.appended = nil
      throw log.refused(.notAValue("\(path): \(why); the key is not made"))
    case .revert(let reason):
      if let reason { log(.refusal("\(path): \(reason)", .invalidArgument)) }
      file.appended = nil
      revert(file)
    case .refuse(let reason): throw log.refused(.notAValue("\(path): \(reason)"))
    case .tooLarge: throw log.refused(.textTooLarge("\(path)"))
    }
  }

  /// Throws away the text that is being written: the file shows its value again.
  private func revert(_ file: KeyFile) {
    file.editor = nil
    kernel.invalidateFile(file.id)
  }

  /// Has the engine make a change of the file's key, and notes what the engine has now.
  /// - Parameter isComputed: whether the change was computed from the text that the file showed.
  ///   The engine then refuses it if the value has changed since.
  /// - Parameter written: see `perform`. A value that somebody else has changed later gets the time
  ///   of the change.
  private func commit(
    _ intent: Intent, isComputed: Bool, _ file: KeyFile, _ written: Timestamp?,
    _ isDecisive: Bool
  ) throws(TreeError) {
    let path = file.path
    // A key that was removed in another mount does not come back by the text of its creator.
    let expects = isComputed || file.creation != nil
    var intents =
      try making(file, intent) ?? (expects ? expectations(file) + [intent] : [intent])
    var time: Timestamp?
    if let written, try values.resolve(path).map({ $0.modified < written }) ?? true {
      intents.append(.describe(path.key, path.domain, Description(modified: written)))
      time = written
    }
    let changeset = try transactor.transact(
      intents, touching: [path], changesNames: !file.editsOwnValue, isDecisive: isDecisive)
    file.editsOwnValue = true
    file.creation?.awaited = nil
    guard let item = changeset.items.last else { return }
    file.origin = KeyFile.EditedVersion(
      location: item.location, modified: time ?? changeset.time)
    file.committedVersion = max(file.committedVersion, changeset.version)
    if let shown = try values.resolve(file.path) { values.note(shown: shown, by: file) }
  }

  /// Returns the intents by which the engine refuses a change that was computed from the file's
  /// text, if the value of that text has changed since, or another place now has precedence.
  private func expectations(_ file: KeyFile) -> [Intent] {
    guard let origin = file.origin else { return [] }
    let path = file.path
    var expected: [Intent] = []
    if origin.location.place.isPersistent {
      expected.append(.expectUnchanged(path.key, origin.location, since: origin.modified))
    }
    if !engine.reaches(origin.location, of: path.domain) {
      expected.append(.expectUnchanged(path.key, Location(.user, path.domain), since: nil))
    }
    return expected
  }

  /// Bytes above which the editor of a complete text is kept for 200 ms after the last write, not
  /// for 5 s.
  private static let largeText = 1 << 20
  /// Milliseconds for which a write is refused that goes on where text was dropped or refused.
  private static let refusing: Int64 = 60_000
  /// The most bytes that all held texts may have together.
  private static let mostHeldBytes = 64 << 20

  /// Throws ENOSPC if held texts take too much memory; the file then shows its value again.
  private func checkHeldText(_ file: KeyFile) throws(TreeError) {
    let held = edited.keys.compactMap { table[$0]?.keyFile?.editor }.filter(\.isHeld)
    guard held.reduce(0, { $0 + $1.text.count }) > Self.mostHeldBytes else { return }
    revert(file)
    throw log.refused(
      .system(.noSpace, "\(file.path): incomplete texts may take 64 MiB in all"))
  }

  /// Removes a key, or a document, that has just been created and is still empty, because its first
  /// text was refused. So no empty value stays.
  private func removeRefused(_ file: KeyFile) {
    if file.creation?.awaited != nil { return takeName(ofAwaited: file) }
    let path = file.path
    let empty = options.kind == .dictionary ? Value.dictionary([:]) : .string("")
    guard var creation = file.creation, let found = try? values.resolve(path),
      found.value == empty, options.isGenerated || values.isOwn(found, path)
    else { return }
    creation.awaited = KeyFile.Awaited(
      location: found.location, since: found.modified, mode: found.mode, isExclusive: false)
    let memory = file.editorMemory
    do throws(TreeError) {
      let displaced = try values.displaced(path)
      try transactor.transact([.remove(path.key, path.domain)], touching: [path]) { _ in
        takeName(path, displaced, creation, memory)
      }
    } catch {
      // The refusal of the text has been logged; the key stays empty.
    }
  }

  /// Converts the value of a key to another type; throws EINVAL if it has no meaning in that type.
  func convert(
    _ file: KeyFile, to kind: Kind, now: Moment
  ) throws(TreeError) {
    if file.creation?.awaited != nil, file.editor?.text.isEmpty != false {
      // tar sets the attributes of a file before it writes it.
      file.wantedKind = kind
      return
    }
    try decide(file, now: now)
    let path = file.path
    let found = try values.requireValue(path)
    if found.kind == kind {
      // From here on the type is fixed, also for the creator of the key.
      (file.creation, file.wantedKind) = (nil, nil)
      return
    }
    let text = values.text(found, of: file)
    guard let value = ValueText.convert(found.value, text: text, to: kind) else {
      if text.isEmpty {
        // tar sets the attributes of a file before it writes it.
        (file.creation, file.wantedKind) = (nil, kind)
        return
      }
      throw log.refused(
        .notAValue("\(path): its \(found.kind.rawValue) cannot be read as \(kind.noun)"))
    }
    let keepsText = Recogniser.value(of: text, kind: kind) == value
    let written = keepsText ? values.written(text, value) : .canonical
    // setxattr(2) must not change the modification time: `cp -a` and restic have set it before.
    let kept = Description(modified: found.modified)
    let intents: [Intent] = [
      .set(path.key, path.domain, value, written), .describe(path.key, path.domain, kept),
    ]
    try transactor.transact(
      intents, touching: [path], changesNames: !values.isOwn(found, path)
    ) { _ in
      file.node.changed = now.time
      (file.creation, file.wantedKind) = (nil, nil)
      revert(file)
    }
  }
}

extension TextEditor.Action {
  /// Whether the action changes the engine.
  fileprivate var commits: Bool {
    switch self {
    case .commit, .splice: true
    case .nothing, .cut, .revert, .refuse, .tooLarge: false
    }
  }
}
