import PreferenceModel
import PropertyList
import SystemCalls

// Carries out the actions of a file's `TextEditor`: changes the engine, or throws the text away.

extension Tree {
  /// Returns the file's editor, or a new one of the text that the file shows if there is none.
  /// A new one is not the file's before `perform` gives it to the file.
  func editor(of file: KeyFile, handle: HandleID) throws(TreeError) -> TextEditor {
    let resolution = try requireValue(file.path)
    try requireWritable(resolution, file.path)
    file.editsOwnValue = isOwn(resolution, file.path)
    if let editor = file.editor, !editor.isInferred || handle == file.creation?.handle {
      return editor
    }
    (file.isInherited, file.hasSavedDraft) = (false, false)
    // What is read under a former name is no value of the key that the engine could expect.
    file.origin =
      resolution.formerName != nil
      ? nil
      : KeyFile.EditedVersion(location: resolution.location, modified: resolution.modified)
    let committed = resolution.stored.byteCount.map {
      TextEditor.Committed(kind: resolution.kind, count: $0)
    }
    return TextEditor(
      text: text(resolution, of: file), rule: rule(of: file, resolution, handle),
      memory: file.editorMemory, committed: file.editsOwnValue ? committed : nil)
  }

  /// Returns what text that is written to the file must be: that of a value of the file's type, or,
  /// from the creator of a new key, anything.
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
    let isPlain = [.string, .data].contains(resolution.kind)
    return .kind(
      file.wantedKind ?? resolution.kind,
      template: options.style == .json ? resolution.value : nil,
      shown: isPlain ? nil : resolution.value)
  }

  /// Gives the editor to the file, and carries out the action of its step. If the engine or the
  /// editor refuses the text, the text is thrown away and the file shows its value again.
  /// - Parameter written: when the text was last written, if that was before: the value gets that
  ///   time, which stat(2) has shown since.
  func perform(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile, now: Moment,
    written: Timestamp? = nil
  ) throws(TreeError) {
    let memory = file.editorMemory
    file.editor = editor
    file.editorMemory = editor.memory
    let end = now.instant.advanced(
      milliseconds: editor.text.count > Self.largeText ? 200 : 5000)
    edited[file.id] = end
    if editor.isHeld { try checkHeldText(file) }
    wake(at: editor.deadline ?? end)
    file.uncommittedSince = editor.deadline == nil ? nil : now.time
    do throws(TreeError) {
      try carryOut(action, editor, file, written)
    } catch {
      if case .tooLarge = action { throw error }
      if action.commits { file.editorMemory = memory }
      revert(file)
      if case .notAValue = error { removeRefused(file) }
      throw error
    }
  }

  private func carryOut(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile, _ time: Timestamp?
  ) throws(TreeError) {
    let path = file.path
    switch action {
    case .nothing: break
    case .cut: invalidateFile(file.id)
    case .commit(let value, let text):
      let set = Intent.set(path.key, path.domain, value, written(text, value))
      try commit(set, of: editor, isComputed: editor.isComputed, file, time)
      if value.kind == file.wantedKind { file.wantedKind = nil }
    case .splice(let splice):
      try commit(.splice(path.key, path.domain, splice), of: editor, isComputed: true, file, time)
    case .revert(let reason):
      if let reason { log(.refusal("\(path): \(reason)", .invalidArgument)) }
      revert(file)
    case .refuse(let reason): throw refused(.notAValue("\(path): \(reason)"))
    case .tooLarge: throw tooLarge("\(path)")
    }
  }

  /// Throws away the text that is being written: the file shows its value again.
  func revert(_ file: KeyFile) {
    file.editor = nil
    invalidateFile(file.id)
  }

  /// Has the engine make a change of the file's key, and notes what the engine has now.
  /// - Parameter isComputed: whether the change was computed from the text that the file showed.
  ///   The engine then refuses it if the value has changed since.
  /// - Parameter written: see `perform`. A value that somebody else has changed later gets the time
  ///   of the change.
  private func commit(
    _ intent: Intent, of editor: TextEditor, isComputed: Bool, _ file: KeyFile,
    _ written: Timestamp?
  ) throws(TreeError) {
    let path = file.path
    var intents = isComputed || file.isInherited ? expectations(file) + [intent] : [intent]
    var time: Timestamp?
    if let written, try resolve(path).map({ $0.modified < written }) ?? true {
      intents.append(.describe(path.key, path.domain, Description(modified: written)))
      time = written
    }
    let changeset = try transact(
      intents, touching: [path], changesNames: !file.editsOwnValue, remembers: false)
    (file.editsOwnValue, file.isInherited) = (true, false)
    guard let item = changeset.items.last else { return }
    file.origin = KeyFile.EditedVersion(
      location: item.location, modified: time ?? changeset.time)
    file.committedVersion = max(file.committedVersion, changeset.version)
    if time == nil { noteSet(intent, path, at: item.location, changeset) }
    if let shown = try resolve(file.path) { note(shown: shown, by: file) }
  }

  /// Keeps what the next look-up of the key finds after a set, so that the engine need not be
  /// asked, if nothing else has changed meanwhile and the value stands where it stood before.
  private func noteSet(
    _ intent: Intent, _ path: KeyPath, at location: Location, _ changeset: Changeset
  ) {
    guard let last = lastFound, last.path == path, let found = last.resolution,
      found.location == location, let present = engine.generation,
      present.follows(last.generation, by: changeset),
      case .set(_, _, let value, let written) = intent
    else { return }
    let text: [UInt8]?
    switch written {
    case .canonical: text = nil
    case .exact(let exact): text = exact
    case .unknown: return
    }
    let stored = StoredValue(
      value, Metadata(text: text, modified: changeset.time, mode: found.mode))
    lastFound = LastLookup(
      path: path, generation: present,
      resolution: Resolution(stored, location: location, isReadOnly: found.isReadOnly))
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
  /// The most bytes that all held texts may have together.
  private static let mostHeldBytes = 64 << 20

  /// Throws ENOSPC if held texts take too much memory; the file then shows its value again.
  private func checkHeldText(_ file: KeyFile) throws(TreeError) {
    let held = edited.keys.compactMap { table[$0]?.keyFile?.editor }.filter(\.isHeld)
    guard held.reduce(0, { $0 + $1.text.count }) > Self.mostHeldBytes else { return }
    revert(file)
    throw refused(
      .system(.noSpace, "\(file.path): incomplete texts may take 64 MiB in all"))
  }

  /// Returns how the engine stores the text of a value: not at all, if it is the canonical one.
  func written(_ text: [UInt8], _ value: Value) -> WrittenText {
    guard text == ValueText.canonical(value) else { return .exact(text) }
    // In `-o format=xml` and `json` the file would read back differently without it.
    return options.style == .automatic || text == canonicalText(value) ? .canonical : .exact(text)
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
