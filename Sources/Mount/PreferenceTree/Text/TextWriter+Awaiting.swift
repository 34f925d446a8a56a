import PreferenceModel
import PropertyList
import SystemCalls

// Files of awaited keys: see `KeyFile.Awaited`. One whose first text is refused, or does not come,
// loses its name, so that nobody finds an empty key. What is written to it later, through a
// descriptor that is still open, is a first text again: each write makes the key or is refused.

extension TextWriter {
  /// Milliseconds for which the name of an awaited key is there without a text, if the empty text
  /// is not a value of it.
  private static let awaiting: Int64 = 1000

  /// Waits for the first text of an awaited key. Without one, the key gets the empty text soon, if
  /// that is a value of it.
  func awaitText(of file: KeyFile, by handle: HandleID, now: Moment) throws(TreeError) {
    let editor = try editor(of: file, handle: handle)
    let wait = editor.judge.emptyValue == nil ? Self.awaiting : TextEditor.patience
    editor.phase = .truncated(until: now.instant.advanced(milliseconds: wait))
    try perform(.nothing, editor, file, by: handle, now: now)
  }

  /// Goes on waiting for the first text of an awaited key, for a predecessor of this process.
  func awaitAgain(_ id: NodeID, _ now: Instant) {
    let end = now.advanced(milliseconds: Self.awaiting)
    edited[id] = end
    wake(at: end)
  }

  /// Whether the key of the file is awaited. Where somebody else has made the key meanwhile, the
  /// file is that key's from now on; throws ESTALE for a creator that wanted to be the first.
  func isAwaited(_ file: KeyFile, by handle: HandleID) throws(TreeError) -> Bool {
    guard let creation = file.creation, let awaited = creation.awaited else { return false }
    if try values.awaited(file.path) != nil { return true }
    if awaited.isExclusive {
      guard handle == creation.handle else { return false }
      throw log.refused(
        .replaced(
          "\(file.path): somebody else has made the key since this file was opened with O_EXCL"))
    }
    file.creation?.awaited = nil
    return false
  }

  /// Returns the intents that make an awaited key with its first value; nil if the key is there.
  func making(_ file: KeyFile, _ set: Intent) throws(TreeError) -> [Intent]? {
    let path = file.path
    guard let awaited = try values.awaited(path) else { return nil }
    var intents = [set]
    if let mode = awaited.mode {
      intents.append(.describe(path.key, path.domain, Description(mode: mode)))
    }
    if awaited.location.place == .host { intents = intents.map { .at(.host, $0) } }
    guard !options.isGenerated, engine.reaches(awaited.location, of: path.domain) else {
      return intents
    }
    return [.expectUnchanged(path.key, awaited.location, since: nil)] + intents
  }

  /// Takes the name of an awaited key from its file; does nothing where the key is there.
  func takeName(ofAwaited file: KeyFile) {
    let path = file.path
    guard let creation = file.creation, creation.awaited != nil,
      let found = try? values.awaited(path), found == creation.awaited,
      let displaced = try? values.displaced(path)
    else { return }
    takeName(path, displaced, creation, file.editorMemory)
  }

  /// Takes the name of a key that no place has from its file.
  /// - Parameter creation: what is needed to make the key after all.
  func takeName(
    _ path: KeyPath, _ displaced: ValueReader.Displaced?, _ creation: KeyFile.Creation,
    _ memory: TextEditor.Memory
  ) {
    guard let displaced else { return }
    values.detach(displaced, at: creation.awaited?.since ?? displaced.node.modified)
    displaced.node.inMemory?.nameless = KeyFile.Nameless(
      path: path, creation: creation, memory: memory)
    table.renewInode(of: path)
    kernel.append(.invalidateAttributes(displaced.node.id))
    if let parent = table[path.domain]?.id { kernel.invalidateEntry(parent, path.key) }
  }

  /// Gives a file its name again whose key was awaited, because it is written to. Throws ESTALE if
  /// somebody else has the name meanwhile, or the domain is gone; does nothing for other files.
  func regainName(_ node: Node) throws(TreeError) {
    guard case .detached(let file) = node.content, let nameless = file.nameless else { return }
    let path = nameless.path
    let found = try values.found(path)
    let isTaken = found.map { $0.isReadOnly || values.isOwn($0, path) } ?? false
    let hasDomain = try asTreeError { () throws(EngineError) in
      try engine.hasDomain(path.domain)
    }
    guard !isTaken, table[path] == nil, hasDomain else {
      throw log.refused(
        .replaced(
          "\(path): the first text of this file was refused, and its name has been used or removed "
            + "since; open the file again"))
    }
    giveName(node, nameless, mode: file.mode)
  }

  /// Makes the file that of its key again.
  func giveName(_ node: Node, _ nameless: KeyFile.Nameless, mode: UInt32?) {
    let path = nameless.path
    table.makeKey(node, path)
    let file = KeyFile(node, path)
    (file.creation, file.editorMemory) = (nameless.creation, nameless.memory)
    file.creation?.awaited?.mode = mode
    kernel.append(.invalidateAttributes(node.id))
    if let parent = table[path.domain]?.id { kernel.invalidateEntry(parent, path.key) }
  }
}
