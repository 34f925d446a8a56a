import PreferenceModel
import PropertyList
import SystemCalls

// Reading and writing the text of keys.

extension Tree {
  /// read(2): at most `count` bytes from the offset.
  public func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8>
  {
    let node = try node(id)
    let text = try shownText(node)
    guard (0..<text.count).contains(offset) else { return [] }
    return text[offset...].prefix(max(count, 0))
  }

  /// The bytes that the file has now.
  func shownText(_ node: Node) throws(TreeError) -> [UInt8] {
    switch node.subject {
    case .root, .domain: throw .isDirectory
    case .detached(let text): return text
    case .scratch:
      guard let text = node.scratch?.text else { throw .isDirectory }
      return text
    case .key(let path):
      if let editor = node.editor { return editor.text }
      guard let resolution = try resolve(path) else { throw .missing }
      return text(resolution, of: node)
    }
  }

  /// The text of a value; kept for a while where making it costs something.
  func text(_ resolution: Resolution, of node: Node) -> [UInt8] {
    if let text = resolution.text { return text }
    if let cached = node.cachedText, cached.modified == resolution.modified,
      cached.location == resolution.location
    {
      return cached.text
    }
    let text = ValueText.canonical(resolution.value, style: options.style)
    dropCache(node)
    if text.count > 512 { cache(text, resolution, in: node) }
    return text
  }

  private func cache(_ text: [UInt8], _ resolution: Resolution, in node: Node) {
    if cachedBytes + text.count > 32 << 20 {
      for other in table.nodes.values { other.cachedText = nil }
      cachedBytes = 0
    }
    cachedBytes += text.count
    node.cachedText = (resolution.modified, resolution.location, text)
  }

  func dropCache(_ node: Node) {
    cachedBytes -= node.cachedText?.text.count ?? 0
    node.cachedText = nil
  }

  /// write(2), judged at once (law 4). Returns when the engine has the value, or the text is held.
  /// - Parameters:
  ///   - appending: the file was opened with O_APPEND.
  ///   - handle: the creator's, for a key that he has not closed yet.
  public func write(
    _ id: NodeID, _ bytes: [UInt8], at offset: Int, appending: Bool = false,
    handle: HandleID = .none, now: Instant
  ) throws(TreeError) {
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    if case .detached(let text) = node.subject {
      return try writeDetached(node, text, bytes, at: appending ? text.count : offset)
    }
    if node.scratch != nil {
      return try writeScratch(node, bytes, at: offset, appending: appending)
    }
    var editor = try editor(node, handle: handle)
    let before = editor.text.count
    let action = editor.write(bytes, at: offset, appending: appending, now: now)
    try perform(action, editor, node, now: now)
    if (appending && offset != before) || editor.isHeld { effects.append(.dropContents(id)) }
  }

  func truncate(
    _ node: Node, to size: Int, handle: HandleID, now: Instant
  ) throws(TreeError) {
    if case .detached(let text) = node.subject {
      guard (0...TextEditor.largest).contains(size) else { throw tooLarge(node) }
      node.subject = .detached(
        Array(text.prefix(size)) + repeatElement(0, count: max(0, size - text.count)))
      return
    }
    if node.scratch != nil { return try truncateScratch(node, to: size) }
    var editor = try editor(node, handle: handle)
    let action = editor.truncate(to: size, now: now)
    try perform(action, editor, node, now: now)
  }

  private func writeDetached(
    _ node: Node, _ text: [UInt8], _ bytes: [UInt8], at offset: Int
  ) throws(TreeError) {
    guard let end = TextEditor.end(of: bytes.count, at: offset) else { throw tooLarge(node) }
    var text = text
    if offset > text.count { text += repeatElement(0, count: offset - text.count) }
    text.replaceSubrange(offset..<min(end, text.count), with: bytes)
    node.subject = .detached(text)
    node.modified = .now
  }

  private func tooLarge(_ node: Node) -> TreeError {
    refused(.tooLarge("\(subjectText(node)): a value's text is at most 16 MiB"))
  }

  /// fsync(2), before the engine makes the journal durable: text that waits for a decision gets
  /// it; incomplete text is EINVAL.
  public func prepareSynchronize(_ id: NodeID, now: Instant) throws(TreeError) {
    let node = try node(id)
    guard let editor = node.editor, editor.deadline != nil else { return }
    if editor.isHeld {
      throw refused(
        .notAValue("\(subjectText(node)): the text is incomplete and is not saved"))
    }
    try expire(node, now: now)
  }

  // MARK: - Steps of the editor

  /// The node's editor; a new one begins with the text that the file shows.
  private func editor(_ node: Node, handle: HandleID) throws(TreeError) -> TextEditor {
    guard case .key(let path) = node.subject else { throw .isDirectory }
    guard let resolution = try resolve(path) else { throw .missing }
    try requireWritable(resolution, subjectText(node))
    node.editsOwnValue = isOwn(resolution, path)
    if let editor = node.editor, !editor.isInferred || handle == node.creation?.handle {
      // The node lets go of it, so that it changes in place.
      node.editor = nil
      return editor
    }
    let infers = node.creation != nil && handle == node.creation?.handle && !options.createsStrings
    let template = options.style == .json ? resolution.value : nil
    let judge =
      infers
      ? Judge(preferred: node.creation?.preferred)
      : Judge(kind: resolution.value.kind, template: template, shown: resolution.value)
    return TextEditor(
      text: text(resolution, of: node), judge: judge, memory: node.editorMemory)
  }

  func perform(
    _ action: TextEditor.Action, _ editor: TextEditor, _ node: Node, now: Instant
  ) throws(TreeError) {
    let memory = node.editorMemory
    node.editor = editor
    node.editorMemory = editor.memory
    let end = now.advanced(milliseconds: 5000)
    edited[node.id] = end
    wake(at: editor.deadline ?? end)
    node.textChanged = editor.deadline == nil ? nil : .now
    switch action {
    case .nothing: break
    case .cut:
      effects += [.dropAttributes(node.id), .dropContents(node.id)]
    case .commit(let value, let text):
      do throws(TreeError) {
        try commit(value, text, node)
      } catch {
        node.editorMemory = memory
        revert(node)
        throw error
      }
    case .revert(let reason):
      if let reason { log("\(subjectText(node)): \(reason)") }
      revert(node)
    case .refuse(let reason):
      revert(node)
      throw refused(.notAValue("\(subjectText(node)): \(reason)"))
    case .tooLarge: throw tooLarge(node)
    }
  }

  /// The file shows the value again.
  func revert(_ node: Node) {
    node.editor = nil
    effects += [.dropAttributes(node.id), .dropContents(node.id)]
  }

  private func commit(_ value: Value, _ text: [UInt8], _ node: Node) throws(TreeError) {
    guard case .key(let path) = node.subject else { return }
    let changeset = try apply([.set(path.key, path.domain, value, written(text, value))])
    propagate(changeset, known: [path], addsEntries: !node.editsOwnValue)
  }

  /// How the engine keeps a text.
  func written(_ text: [UInt8], _ value: Value) -> WrittenText {
    text == ValueText.canonical(value) ? .canonical : .exact(text)
  }

  /// Asks the engine for a change; refusals are logged.
  func apply(_ intents: [Intent]) throws(TreeError) -> Changeset {
    do {
      let changeset = try engine.apply(intents, by: author)
      if !changeset.isEmpty { effects.append(.awaitSettled(changeset.version)) }
      return changeset
    } catch {
      throw refused(TreeError(error))
    }
  }
}
