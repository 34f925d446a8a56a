import PreferenceModel
import PropertyList
import SystemCalls

// Steps of a file's `TextEditor`, and what they change in the engine.

extension Tree {
  /// Takes the file's editor out of it, so that the editor changes in place; a new one begins with
  /// the text that the file shows. `perform` puts it back.
  func removeEditor(_ file: KeyFile, handle: HandleID) throws(TreeError) -> TextEditor {
    let resolution = try requireValue(file.path)
    try requireWritable(resolution, file.path)
    file.editsOwnValue = isOwn(resolution, file.path)
    if let editor = file.editor, !editor.isInferred || handle == file.creation?.handle {
      file.editor = nil
      return editor
    }
    file.origin = KeyFile.Origin(location: resolution.location, modified: resolution.modified)
    let committed = resolution.stored.byteCount.map {
      TextEditor.Committed(kind: resolution.kind, count: $0)
    }
    return TextEditor(
      text: text(resolution, of: file), judge: judge(of: file, resolution, handle),
      memory: file.editorMemory, committed: file.editsOwnValue ? committed : nil)
  }

  /// What judges text that is written to the file: the type of its value, or for the creator of a
  /// new key the text itself.
  private func judge(of file: KeyFile, _ resolution: Resolution, _ handle: HandleID) -> Judge {
    if let creation = file.creation, handle == creation.handle, !options.createsStrings {
      return Judge(preferred: creation.preferred)
    }
    let isPlain = [.string, .data].contains(resolution.kind)
    return Judge(
      kind: file.wantedKind ?? resolution.kind,
      template: options.style == .json ? resolution.value : nil,
      shown: isPlain ? nil : resolution.value)
  }

  /// Puts the editor back and carries out what its step asks for. Where the engine refuses, the
  /// text is thrown away and the file shows its value again.
  func perform(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile, now: Moment
  ) throws(TreeError) {
    let memory = file.editorMemory
    file.editor = editor
    file.editorMemory = editor.memory
    let end = now.instant.advanced(
      milliseconds: editor.text.count > Self.largeText ? 200 : 5000)
    edited[file.id] = end
    if editor.isHeld { try checkHeldText(file) }
    wake(at: editor.deadline ?? end)
    file.textChanged = editor.deadline == nil ? nil : now.time
    do throws(TreeError) {
      try carryOut(action, editor, file)
    } catch {
      if case .tooLarge = action { throw error }
      if action.commits { file.editorMemory = memory }
      revert(file)
      throw error
    }
  }

  private func carryOut(
    _ action: TextEditor.Action, _ editor: TextEditor, _ file: KeyFile
  ) throws(TreeError) {
    let path = file.path
    switch action {
    case .nothing: break
    case .cut: invalidateFile(file.id)
    case .commit(let value, let text):
      if value.kind == file.wantedKind { file.wantedKind = nil }
      let set = Intent.set(path.key, path.domain, value, written(text, value))
      try commit(set, isComputed: editor.isComputed, file)
    case .splice(let splice):
      try commit(.splice(path.key, path.domain, splice), isComputed: true, file)
    case .revert(let reason):
      if let reason { log("\(path): \(reason)") }
      revert(file)
    case .refuse(let reason): throw refused(.notAValue("\(path): \(reason)"))
    case .tooLarge: throw tooLarge("\(path)")
    }
  }

  /// Throws away text that is being written: the file shows its value again.
  func revert(_ file: KeyFile) {
    file.editor = nil
    invalidateFile(file.id)
  }

  /// - Parameter isComputed: whether the change is right only for the text it was computed from.
  private func commit(_ intent: Intent, isComputed: Bool, _ file: KeyFile) throws(TreeError) {
    let changeset = try transact(
      (isComputed ? expectations(file) : []) + [intent], touching: [file.path],
      changesNames: !file.editsOwnValue)
    file.editsOwnValue = true
    guard let item = changeset.items.last else { return }
    file.origin = KeyFile.Origin(location: item.location, modified: changeset.time)
    file.committedVersion = max(file.committedVersion, changeset.version)
    file.lastShown = try resolve(file.path)?.stored
  }

  /// What must still be so for a change that was computed from the file's text.
  private func expectations(_ file: KeyFile) -> [Intent] {
    guard let origin = file.origin else { return [] }
    let path = file.path
    var expected: [Intent] = []
    if SearchList.persistentPlaces.contains(origin.location.place) {
      expected.append(.expectUnchanged(path.key, origin.location, since: origin.modified))
    }
    if origin.location.domain != path.domain || ![.user, .host].contains(origin.location.place) {
      expected.append(.expectUnchanged(path.key, Location(.user, path.domain), since: nil))
    }
    return expected
  }

  /// Texts of more bytes are kept for only a moment after the last write.
  private static let largeText = 1 << 20
  /// Bytes that all held texts may have.
  private static let mostHeldBytes = 64 << 20

  /// Throws ENOSPC where held texts take too much memory; the file then shows its value again.
  private func checkHeldText(_ file: KeyFile) throws(TreeError) {
    let held = edited.keys.compactMap { table[$0]?.keyFile?.editor }.filter(\.isHeld)
    guard held.reduce(0, { $0 + $1.text.count }) > Self.mostHeldBytes else { return }
    revert(file)
    throw refused(
      .system(.noSpace, "\(file.path): incomplete texts may take 64 MiB in all"))
  }

  /// How the engine keeps a text that denotes the value.
  func written(_ text: [UInt8], _ value: Value) -> WrittenText {
    text == ValueText.canonical(value) ? .canonical : .exact(text)
  }
}

extension TextEditor.Action {
  fileprivate var commits: Bool {
    switch self {
    case .commit, .splice: true
    case .nothing, .cut, .revert, .refuse, .tooLarge: false
    }
  }
}
