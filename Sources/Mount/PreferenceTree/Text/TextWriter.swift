import PreferenceModel
import SystemCalls

/// Writes text to files: write(2), truncate(2), and what ends them (fsync(2), close(2) of a key's
/// creator, time). Scratch files are `ScratchFiles`'s; the rest here is about the files of keys.
///
/// A file's `TextEditor` judges each step at once and says what is to be done. The value is in the
/// engine when a call returns, unless the text is held or waits for a decision
/// (`TextEditor.deadline`).
///
/// Promises: a step that is refused leaves the file with its value, or, where the text would be too
/// long, with the text before. Text that is computed from what the file showed is committed only if
/// the value has not changed meanwhile. All held texts together have at most 64 MiB. Where a text was
/// under way when a predecessor of this process ended, no write is laid over the value that the file
/// shows again: it is EIO for 5 s, unless it is the first one after a truncation, or a truncation
/// comes.
///
/// Threads: the tree's alone.
final class TextWriter {
  let engine: any Engine
  let options: TreeOptions
  let log: TreeLog
  let table: NodeTable
  let values: ValueReader
  let kernel: KernelCache
  let transactor: Transactor
  private let scratch: ScratchFiles
  /// The nodes of files with an editor, and when an editor whose text is complete is thrown away; or
  /// when it is forgotten where a refused text ended.
  var edited: [NodeID: Instant] = [:]
  /// When `tick` must be called; nil if it need not be.
  private(set) var deadline: Instant?

  init(
    _ parts: TreeParts, _ values: ValueReader, _ kernel: KernelCache, _ transactor: Transactor,
    _ scratch: ScratchFiles
  ) {
    (engine, options, log) = (parts.engine, parts.options, parts.log)
    (table, self.values) = (parts.table, values)
    (self.kernel, self.transactor, self.scratch) = (kernel, transactor, scratch)
  }

  /// Carries out write(2), and judges the text at once. Returns when the engine has the value, or
  /// the text is held or waits for a decision.
  ///
  /// A text that is computed from the text that the file shows (an append, a write in the middle)
  /// is committed only if the value has not changed meanwhile. If another mount or program was
  /// first, it is computed again, 1,000 times at most; then the write is EBUSY.
  func write(_ node: Node, _ write: WriteRequest, now: Moment) throws(TreeError) {
    let begins = write.offset == 0 && !write.appending && !write.isMapped
    try requireText(of: node, begins && node.keyFile?.beginsEmpty == true, now)
    try regainName(node)
    switch node.content {
    case .directory: throw .isDirectory
    case .scratch(let file), .detached(let file):
      try scratch.write(node, file, write, now: now)
    case .key(let path):
      try change(node, path) { file throws(TreeError) in
        try self.write(write, to: file, now)
      } copy: { file throws(TreeError) in
        try scratch.write(node, file, write, now: now)
      }
    }
  }

  /// Throws EIO where the file's text was under way when a predecessor ended.
  /// - Parameter begins: whether a new text begins.
  func requireText(of node: Node, _ begins: Bool, _ now: Moment) throws(TreeError) {
    guard let end = node.lostUntil else { return }
    guard begins || end <= now.instant else {
      throw log.refused(
        .system(
          .inputOutput,
          "\(node.subject): what was written of its text was lost when the driver of the mount ended; "
            + "write the whole text again"))
    }
    node.lostUntil = nil
  }

  /// Changes the text of a key's file. Where another mount has removed the key, and the notice of
  /// that has not been handled, the file is a private copy from now on, which is changed.
  private func change(
    _ node: Node, _ path: KeyPath, _ body: (KeyFile) throws(TreeError) -> Void,
    copy: (ScratchFile) throws(TreeError) -> Void
  ) throws(TreeError) {
    do throws(TreeError) {
      try body(KeyFile(node, path))
    } catch  where error == .missing {
      kernel.invalidate(path, isGone: true)
      guard case .detached(let file) = node.content else { throw error }
      try copy(file)
    }
  }

  private func write(
    _ write: WriteRequest, to file: KeyFile, _ now: Moment
  ) throws(TreeError) {
    try repeated { () throws(TreeError) -> Void in
      if write.appending { return try append(write, to: file, now) }
      // The pages that a program has mapped show the value, also where it was truncated before.
      if write.isMapped { file.editorMemory.startsEmpty = false }
      try step(file, write.handle, now) {
        $0.write(write.bytes, at: write.offset, appending: false, now: now.instant)
      }
    } again: {
      file.editor = nil
    }
  }

  /// Appends to the text as it is now, or directly behind an earlier part of the same write(2).
  private func append(
    _ write: WriteRequest, to file: KeyFile, _ now: Moment
  ) throws(TreeError) {
    let earlier = file.appended.flatMap { $0.goesOn(write.writer, at: write.offset) ? $0 : nil }
    var bytes = write.bytes
    var position = 0
    var holder: (editor: TextEditor, until: Instant)?
    do throws(TreeError) {
      try step(file, write.handle, now) { editor in
        position = editor.text.count
        if editor.isHeld {
          holder = editor.deadline.map { (editor, $0) }
        } else if let earlier {
          if earlier.lostUntil > now.instant { bytes = earlier.lost + write.bytes }
          // A character that is cut off can only be held at the end.
          let isCut = editor.judge.kind != .data && bytes.endsInsideCharacter
          if !isCut { position = earlier.next(in: editor.text) }
        }
        if position < editor.text.count {
          return editor.insert(bytes, at: position, now: now.instant)
        }
        return editor.write(bytes, at: position, appending: true, now: now.instant)
      }
    } catch {
      // Somebody else was first, and the editor that held the beginning is gone.
      if error == .changedMeanwhile, let earlier, let holder,
        let held = earlier.held, held.upperBound == position
      {
        file.appended = earlier.losing(Array(holder.editor.text[held]), holder.until)
      }
      throw error
    }
    noteAppended(
      position..<position + bytes.count, after: earlier, wasHeld: holder != nil, write, file)
  }

  /// Notes where an append is, for the next part of the same write(2), and tells the kernel if that
  /// is not where its pages have it.
  private func noteAppended(
    _ range: Range<Int>, after earlier: AppendedPart?, wasHeld: Bool, _ write: WriteRequest,
    _ file: KeyFile
  ) {
    let kernelEnd = TextEditor.end(of: write.bytes.count, at: write.offset)
    if range.upperBound != kernelEnd { kernel.append(.invalidateContents(file.id)) }
    file.appended = kernelEnd.flatMap { kernelEnd in
      file.editor.flatMap { editor in
        AppendedPart(
          range, of: editor, after: earlier, wasHeld: wasHeld, writer: write.writer,
          kernelEnd: kernelEnd)
      }
    }
  }

  /// Has the file's editor make a step, and carries out its action.
  private func step(
    _ file: KeyFile, _ handle: HandleID, _ now: Moment,
    _ body: (TextEditor) -> TextEditor.Action
  ) throws(TreeError) {
    try decideText(of: file, before: handle, now)
    let editor = try editor(of: file, handle: handle)
    let action = body(editor)
    try perform(action, editor, file, by: handle, isDecisive: true, now: now)
    if editor.isHeld { kernel.append(.invalidateContents(file.id)) }
  }

  /// Carries out truncate(2) and ftruncate(2).
  func truncate(
    _ node: Node, to size: Int, handle: HandleID, now: Moment
  ) throws(TreeError) {
    try requireText(of: node, size == 0, now)
    if size > 0 { try regainName(node) }
    switch node.content {
    case .directory: throw .isDirectory
    case .scratch(let file), .detached(let file):
      try scratch.truncate(node, file, to: size, now: now)
    case .key(let path):
      try change(node, path) { file throws(TreeError) in
        try truncate(file, to: size, handle, now)
      } copy: { file throws(TreeError) in
        try scratch.truncate(node, file, to: size, now: now)
      }
    }
  }

  private func truncate(
    _ file: KeyFile, to size: Int, _ handle: HandleID, _ now: Moment
  ) throws(TreeError) {
    try repeated { () throws(TreeError) -> Void in
      try decideText(of: file, before: handle, now)
      let editor = try editor(of: file, handle: handle)
      let action = editor.truncate(to: size, now: now.instant)
      try perform(action, editor, file, by: handle, now: now)
    } again: {
      file.editor = nil
    }
  }

  /// Decides text that waits for a decision: ends the phase of its editor. Throws EINVAL for
  /// incomplete text.
  func decide(_ file: KeyFile, now: Moment) throws(TreeError) {
    guard let editor = file.editor, editor.deadline != nil else { return }
    let incomplete = TreeError.notAValue(
      "\(file.path): the text is incomplete and is not saved")
    if editor.isHeld, !editor.isUndecided { throw log.refused(incomplete) }
    try expire(file, now: now)
    if file.editor?.isHeld == true { throw log.refused(incomplete) }
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

  /// Ends the phase of the text that is being written to the file.
  func expire(_ file: KeyFile, now: Moment) throws(TreeError) {
    guard let editor = file.editor else { return }
    let count = editor.text.count
    let action = editor.expire(now: now.instant)
    try perform(action, editor, file, now: now, written: file.uncommittedSince)
    // The kernel has the pages of an empty file where another mount has appended since.
    if editor.text.count > count { kernel.append(.invalidateContents(file.id)) }
    kernel.append(.invalidateAttributes(file.id))
  }

  /// Carries out the close(2) of a key's creator: the type that the key has at this moment is
  /// fixed.
  func release(_ file: KeyFile, now: Moment) {
    if file.creation?.awaited != nil, file.editor?.isTruncated == true {
      // No text comes. A refusal has been logged.
      do { try expire(file, now: now) } catch {}
    }
    // What is held may still be completed, by somebody else.
    if file.creation?.awaited != nil { return }
    // Text that ends inside a UTF-8 character is data, because nothing can complete it any more;
    // the tail behind new text counts if the text is a value with it. A refusal has been logged.
    if let editor = file.editor, editor.isInferred, editor.deadline != nil {
      do { try expire(file, now: now) } catch {}
    }
    file.creation = nil
    if file.editor?.isInferred == true { file.editor = nil }
  }

  /// Notes that a predecessor has carried a write out: the engine has the text.
  func noteWritten(_ node: Node) {
    if case .detached(let file) = node.content, let nameless = file.nameless,
      table[nameless.path] == nil
    {
      giveName(node, nameless, mode: file.mode)
    }
    guard let file = node.keyFile else { return }
    file.creation?.awaited = nil
    (node.lostUntil, file.editorMemory) = (nil, TextEditor.Memory())
    kernel.invalidateFile(file.id)
  }

  /// Sees to it that `tick` is called at the moment, or earlier.
  func wake(at moment: Instant) { deadline = min(deadline ?? moment, moment) }

  /// Ends the phases of texts that are due, and throws away editors whose text is complete and that
  /// nobody has used for a while.
  func tick(now: Moment) {
    for (id, end) in edited { tick(id, end, now) }
    deadline = edited.map { id, end in table[id]?.keyFile?.editor?.deadline ?? end }.min()
  }

  /// - Parameter end: when an editor whose text is complete may be thrown away.
  private func tick(_ id: NodeID, _ end: Instant, _ now: Moment) {
    guard let file = table[id]?.keyFile else {
      edited[id] = nil
      return
    }
    guard let editor = file.editor else {
      guard end <= now.instant else { return }
      file.editorMemory.droppedEnd = nil
      edited[id] = nil
      return takeName(ofAwaited: file)
    }
    if let deadline = editor.deadline, deadline <= now.instant {
      // A refusal has been logged, and the file shows its value again. No request waits for it.
      do { try expire(file, now: now) } catch {}
    } else if editor.deadline == nil, end <= now.instant {
      file.dropEditor()
      edited[id] = nil
    }
    if file.node.lookups == 0, file.editor?.deadline == nil { values.forget(id, 0) }
  }

  /// Decides all text that waits for a decision: the mount ends. Held text is lost.
  func finish(now: Moment) {
    for id in edited.keys {
      guard let file = table[id]?.keyFile, file.editor?.deadline != nil else { continue }
      // A refusal has been logged. No request waits for it.
      do { try expire(file, now: now) } catch {}
    }
  }
}
