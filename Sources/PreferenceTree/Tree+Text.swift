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
    let isWhole = resolution.stored.wholeValue != nil
    if isWhole, let text = resolution.text { return text }
    if let cached = node.cachedText, cached.modified == resolution.modified,
      cached.location == resolution.location
    {
      return cached.text
    }
    let text =
      (isWhole ? nil : resolution.text)
      ?? ValueText.canonical(resolution.value, style: options.style)
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
  ///
  /// What is computed from the text that the file shows (an append, a write in the middle) is committed
  /// against that text; where another mount was first, it is computed again.
  /// - Parameters:
  ///   - appending: the file was opened with O_APPEND.
  ///   - handle: the creator's, for a key that it has not closed yet.
  ///   - writer: the thread that writes; 0: not known.
  public func write(
    _ id: NodeID, _ bytes: [UInt8], at offset: Int, appending: Bool = false,
    handle: HandleID = .none, writer: Int32 = 0, now: Instant
  ) throws(TreeError) {
    let node = try node(id)
    if engine.isReadOnly { throw .readOnly }
    if case .detached(let text) = node.subject {
      return try writeDetached(node, text, bytes, at: appending ? text.count : offset)
    }
    if node.scratch != nil {
      return try writeScratch(node, bytes, at: offset, appending: appending)
    }
    for attempt in 1...Self.mostAttempts {
      do throws(TreeError) {
        guard appending else {
          return try writeOnce(node, handle, now) {
            $0.write(bytes, at: offset, appending: false, now: now)
          }
        }
        return try append(bytes, to: node, offset, writer, handle, now)
      } catch  where error == .changedMeanwhile && attempt < Self.mostAttempts {
        node.editor = nil
      }
    }
  }

  /// How often a write is computed again while others keep changing the key.
  private static let mostAttempts = 1000

  /// - Parameter offset: where the kernel believes that the bytes go.
  private func append(
    _ bytes: [UInt8], to node: Node, _ offset: Int, _ writer: Int32, _ handle: HandleID,
    _ now: Instant
  ) throws(TreeError) {
    let part = node.appended.flatMap { $0.goesOn(writer, at: offset) ? $0 : nil }
    var position = 0
    try writeOnce(node, handle, now) { editor in
      position = part?.end(in: editor.text) ?? editor.text.count
      if position < editor.text.count { return editor.insert(bytes, at: position, now: now) }
      return editor.write(bytes, at: position, appending: true, now: now)
    }
    if position != offset { effects.append(.dropContents(node.id)) }
    node.appended = AppendedPart(
      bytes, writer: writer, kernelOffset: offset, end: position + bytes.count)
  }

  private func writeOnce(
    _ node: Node, _ handle: HandleID, _ now: Instant,
    _ step: (inout TextEditor) -> TextEditor.Action
  ) throws(TreeError) {
    var editor = try editor(node, handle: handle)
    let action = step(&editor)
    try perform(action, editor, node, now: now)
    if editor.isHeld { effects.append(.dropContents(node.id)) }
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
    if editor.isHeld, !editor.isUndecided {
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
    node.origin = Node.Origin(location: resolution.location, modified: resolution.modified)
    let infers = node.creation != nil && handle == node.creation?.handle && !options.createsStrings
    let isPlain = [.string, .data].contains(resolution.kind)
    let judge =
      infers
      ? Judge(preferred: node.creation?.preferred)
      : Judge(
        kind: node.wantedKind ?? resolution.kind,
        template: options.style == .json ? resolution.value : nil,
        shown: isPlain ? nil : resolution.value)
    let text = text(resolution, of: node)
    let committed = resolution.stored.byteCount.map {
      TextEditor.Committed(kind: resolution.kind, count: $0)
    }
    return TextEditor(
      text: text, judge: judge, memory: node.editorMemory,
      committed: node.editsOwnValue ? committed : nil)
  }

  func perform(
    _ action: TextEditor.Action, _ editor: TextEditor, _ node: Node, now: Instant
  ) throws(TreeError) {
    let memory = node.editorMemory
    node.editor = editor
    node.editorMemory = editor.memory
    let end = now.advanced(milliseconds: editor.text.count > Self.largeText ? 200 : 5000)
    edited[node.id] = end
    if editor.isHeld { try checkHeldText(node) }
    wake(at: editor.deadline ?? end)
    node.textChanged = editor.deadline == nil ? nil : .now
    switch action {
    case .nothing: break
    case .cut:
      effects += [.dropAttributes(node.id), .dropContents(node.id)]
    case .commit(let value, let text):
      try reverting(node, to: memory) { () throws(TreeError) in
        try commit(value, text, editor, node)
      }
    case .splice(let splice):
      try reverting(node, to: memory) { () throws(TreeError) in
        guard case .key(let path) = node.subject else { return }
        try commit(.splice(path.key, path.domain, splice), isComputed: true, path, node)
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

  /// Where the engine refuses, the editor goes.
  private func reverting(
    _ node: Node, to memory: TextEditor.Memory, _ body: () throws(TreeError) -> Void
  ) throws(TreeError) {
    do throws(TreeError) {
      try body()
    } catch {
      node.editorMemory = memory
      revert(node)
      throw error
    }
  }

  private func commit(
    _ value: Value, _ text: [UInt8], _ editor: TextEditor, _ node: Node
  ) throws(TreeError) {
    guard case .key(let path) = node.subject else { return }
    let set = Intent.set(path.key, path.domain, value, written(text, value))
    if value.kind == node.wantedKind { node.wantedKind = nil }
    try commit(set, isComputed: editor.isComputed, path, node)
  }

  /// - Parameter isComputed: whether the change holds for the text alone that it was computed from.
  private func commit(
    _ intent: Intent, isComputed: Bool, _ path: KeyPath, _ node: Node
  ) throws(TreeError) {
    let changeset = try apply((isComputed ? expectations(path, node) : []) + [intent])
    propagate(changeset, known: [path], addsEntries: !node.editsOwnValue)
    node.editsOwnValue = true
    guard let item = changeset.items.last else { return }
    node.origin = Node.Origin(location: item.location, modified: changeset.time)
    node.committedVersion = max(node.committedVersion, changeset.version)
    node.lastShown = try resolve(path)?.stored
  }

  /// What must still be so for a change that was computed from the file's text.
  private func expectations(_ path: KeyPath, _ node: Node) -> [Intent] {
    guard let origin = node.origin else { return [] }
    let isStored = SearchList.persistentPlaces.contains(origin.location.place)
    var expected: [Intent] = []
    if isStored {
      expected.append(.expectUnchanged(path.key, origin.location, since: origin.modified))
    }
    if origin.location.domain != path.domain || ![.user, .host].contains(origin.location.place) {
      expected.append(.expectUnchanged(path.key, Location(.user, path.domain), since: nil))
    }
    return expected
  }

  /// Longer texts are kept for a moment only after the last write.
  private static let largeText = 1 << 20
  /// Bytes that held texts may have together.
  private static let mostHeldBytes = 64 << 20

  /// Throws ENOSPC where held texts take too much memory; the file then shows its value again.
  private func checkHeldText(_ node: Node) throws(TreeError) {
    let held = edited.keys.compactMap { table[$0]?.editor }.filter(\.isHeld)
    guard held.reduce(0, { $0 + $1.text.count }) > Self.mostHeldBytes else { return }
    revert(node)
    throw refused(
      .system(.noSpace, "\(subjectText(node)): texts that are incomplete may take 64 MiB together"))
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
    } catch  where error.reason == .changedMeanwhile {
      throw .changedMeanwhile
    } catch {
      throw refused(TreeError(error))
    }
  }
}
