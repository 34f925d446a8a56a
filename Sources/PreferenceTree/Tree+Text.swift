import PreferenceModel
import PropertyList
import SystemCalls

// read(2), write(2), ftruncate(2) and fsync(2).

extension Tree {
  /// Carries out read(2).
  /// - Returns: at most `count` bytes from the offset; none past the end.
  public func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8>
  {
    let text = try shownText(try node(id))
    guard (0..<text.count).contains(offset) else { return [] }
    return text[offset...].prefix(max(count, 0))
  }

  /// Returns the whole text that the file shows now.
  func shownText(_ node: Node) throws(TreeError) -> [UInt8] {
    switch node.content {
    case .directory: throw .isDirectory
    case .detached(let text): return text
    case .scratch(let file):
      guard let text = file.text else { throw .isDirectory }
      return text
    case .key(let file):
      if let editor = file.editor { return editor.text }
      return text(try requireValue(file.path), of: file)
    }
  }

  /// Returns the text of a value. A text of more than 512 bytes that had to be made is cached.
  func text(_ resolution: Resolution, of file: KeyFile) -> [UInt8] {
    let isWhole = resolution.stored.wholeValue != nil
    if isWhole, let text = resolution.text { return text }
    if let cached = file.cachedText, cached.modified == resolution.modified,
      cached.location == resolution.location
    {
      return cached.text
    }
    let text = (isWhole ? nil : resolution.text) ?? canonicalText(resolution.value)
    dropCachedText(file)
    if text.count > 512 { cache(text, resolution, in: file) }
    return text
  }

  /// Returns the canonical text of a value, in the mount's style.
  func canonicalText(_ value: Value) -> [UInt8] { ValueText.canonical(value, style: options.style) }

  /// Caches the text in the file. All cached texts are dropped once they have more than 32 MiB.
  private func cache(_ text: [UInt8], _ resolution: Resolution, in file: KeyFile) {
    if cachedBytes + text.count > 32 << 20 {
      for other in table.nodes.values { other.keyFile?.cachedText = nil }
      cachedBytes = 0
    }
    cachedBytes += text.count
    file.cachedText = KeyFile.CachedText(
      modified: resolution.modified, location: resolution.location, text: text)
  }

  func dropCachedText(_ file: KeyFile) {
    cachedBytes -= file.cachedText?.text.count ?? 0
    file.cachedText = nil
  }

  /// Carries out write(2), and judges the text at once. Returns when the engine has the value, or
  /// the text is held or waits for a decision.
  ///
  /// A text that is computed from the text that the file shows (an append, a write in the middle)
  /// is committed only if the value has not changed meanwhile. If another mount or program was
  /// first, it is computed again, 1,000 times at most; then the write is EBUSY.
  public func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError) {
    let node = try node(id)
    try requireWritable()
    switch node.content {
    case .directory: throw .isDirectory
    case .detached: try writeDetached(node, write, now)
    case .scratch(let file):
      try writeScratch(node, file, write, now: now)
    case .key(let file):
      try self.write(write, to: file, now)
    }
  }

  /// How often a write is computed while other processes keep changing the key.
  static let mostAttempts = 1000

  private func write(
    _ write: WriteRequest, to file: KeyFile, _ now: Moment
  ) throws(TreeError) {
    try repeating(file) { () throws(TreeError) in
      if write.appending { return try append(write, to: file, now) }
      try step(file, write.handle, now) {
        $0.write(write.bytes, at: write.offset, appending: false, now: now.instant)
      }
    }
  }

  /// Carries out a step of the file's text, and again where the value has changed since the text
  /// was read, 1,000 times at most.
  private func repeating(
    _ file: KeyFile, _ body: () throws(TreeError) -> Void
  ) throws(TreeError) {
    for attempt in 1...Self.mostAttempts {
      do throws(TreeError) {
        return try body()
      } catch  where error == .changedMeanwhile && attempt < Self.mostAttempts {
        file.editor = nil
      }
    }
  }

  /// Appends to the text as it is now, or directly behind an earlier part of the same write(2).
  private func append(
    _ write: WriteRequest, to file: KeyFile, _ now: Moment
  ) throws(TreeError) {
    let part = file.appended.flatMap { $0.goesOn(write.writer, at: write.offset) ? $0 : nil }
    let bytes = write.bytes
    var position = 0
    try step(file, write.handle, now) { editor in
      position = part?.end(in: editor.text) ?? editor.text.count
      if position < editor.text.count {
        return editor.insert(bytes, at: position, now: now.instant)
      }
      return editor.write(bytes, at: position, appending: true, now: now.instant)
    }
    if position != write.offset { effects.append(.invalidateContents(file.id)) }
    file.appended = AppendedPart(
      bytes, writer: write.writer, kernelOffset: write.offset, end: position + bytes.count)
  }

  /// Has the file's editor make a step, and carries out its action.
  private func step(
    _ file: KeyFile, _ handle: HandleID, _ now: Moment,
    _ body: (TextEditor) -> TextEditor.Action
  ) throws(TreeError) {
    try decideText(of: file, before: handle, now)
    let editor = try editor(of: file, handle: handle)
    let action = body(editor)
    try perform(action, editor, file, now: now)
    if editor.isHeld { effects.append(.invalidateContents(file.id)) }
  }

  /// Carries out truncate(2) and ftruncate(2).
  func truncate(
    _ node: Node, to size: Int, handle: HandleID, now: Moment
  ) throws(TreeError) {
    switch node.content {
    case .directory: throw .isDirectory
    case .detached(let text):
      guard (0...TextEditor.largest).contains(size) else { throw tooLarge(node.subject) }
      try checkRoom(forDetached: size - text.count)
      table.edit(detached: node, min(size, text.count)..<size) { $0.resize(to: size) }
    case .scratch(let file): try truncateScratch(node, file, to: size, now: now)
    case .key(let file):
      try repeating(file) { () throws(TreeError) in
        try decideText(of: file, before: handle, now)
        let editor = try editor(of: file, handle: handle)
        let action = editor.truncate(to: size, now: now.instant)
        try perform(action, editor, file, now: now)
      }
    }
  }

  private func writeDetached(
    _ node: Node, _ write: WriteRequest, _ now: Moment
  ) throws(TreeError) {
    let count = node.detachedCount
    let position = write.appending ? count : write.offset
    guard let end = TextEditor.end(of: write.bytes.count, at: position) else {
      throw tooLarge(node.subject)
    }
    try checkRoom(forDetached: end - count)
    table.edit(detached: node, min(position, count)..<end) {
      $0.overwrite(at: position, with: write.bytes)
    }
    node.modified = now.time
  }

  /// Throws ENOSPC if the text of a removed file grows, and all of them would have more than 64 MiB.
  private func checkRoom(forDetached growth: Int) throws(TreeError) {
    guard growth <= 0 || growth <= ScratchSpace.total - table.detachedBytes else {
      throw refused(.system(.noSpace, "removed files that are still open may take 64 MiB in all"))
    }
  }

  /// Returns, and logs, EFBIG for a text that would be longer than a value's may be.
  func tooLarge(_ subject: String) -> TreeError {
    refused(.tooLarge("\(subject): its text may have 16 MiB at most"))
  }

  /// Carries out the tree's part of fsync(2), before the engine makes the journal durable: decides
  /// text that waits for a decision, and throws EINVAL for incomplete text.
  public func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError) {
    if let file = try node(id).keyFile { try decide(file, now: now) }
  }

  /// Decides text that waits for a decision: ends the phase of its editor. Throws EINVAL for
  /// incomplete text.
  func decide(_ file: KeyFile, now: Moment) throws(TreeError) {
    guard let editor = file.editor, editor.deadline != nil else { return }
    let incomplete = TreeError.notAValue(
      "\(file.path): the text is incomplete and is not saved")
    if editor.isHeld, !editor.isUndecided { throw refused(incomplete) }
    let isInherited = file.isInherited
    do throws(TreeError) {
      try expire(file, now: now)
    } catch  where error == .changedMeanwhile && isInherited {
      // A predecessor has decided it already, and the file shows what became of it.
    }
    if file.editor?.isHeld == true { throw refused(incomplete) }
  }

  /// Decides the text that the key's creator has written and that waits for a decision, before
  /// another handle writes: that one goes on from what the engine has.
  private func decideText(
    of file: KeyFile, before handle: HandleID, _ now: Moment
  ) throws(TreeError) {
    guard let editor = file.editor, editor.isInferred, handle != file.creation?.handle,
      editor.deadline != nil
    else { return }
    try expire(file, now: now)
  }
}

extension [UInt8] {
  /// Puts the bytes in the place of what is at the position, which is not negative. NUL bytes fill
  /// a gap behind the end.
  mutating func overwrite(at position: Int, with bytes: [UInt8]) {
    if position > count { resize(to: position) }
    replaceSubrange(position..<Swift.min(position + bytes.count, count), with: bytes)
  }

  /// Cuts the end off, or adds NUL bytes.
  mutating func resize(to size: Int) {
    if size < count {
      removeLast(count - size)
    } else {
      append(contentsOf: repeatElement(0, count: size - count))
    }
  }
}
