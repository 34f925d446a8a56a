import PreferenceModel
import SystemCalls

// read(2), write(2), close(2) and fsync(2).

extension Tree {
  /// Carries out read(2). A value that was changed after the kernel was told its size is shown as it
  /// was, for this page, which the kernel then drops.
  /// - Returns: at most `count` bytes from the offset; none past the end.
  public func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8>
  {
    let (text, isOld) = try values.pageText(try node(id))
    if isOld { kernel.append(.invalidateContents(id)) }
    guard (0..<text.count).contains(offset) else { return [] }
    return text[offset...].prefix(max(count, 0))
  }

  /// Carries out write(2): see `TextWriter.write`.
  public func write(_ id: NodeID, _ write: WriteRequest, now: Moment) throws(TreeError) {
    let node = try node(id)
    try engine.requireWritable()
    values.forgetTold()
    try texts.write(node, write, now: now)
  }

  /// Carries out the close(2) of a key's creator: the type that the key has at this moment is
  /// fixed.
  public func release(_ id: NodeID, _ handle: HandleID, now: Moment) {
    guard let file = table[id]?.keyFile, file.creation?.handle == handle else { return }
    texts.release(file, now: now)
  }

  /// Carries out the tree's part of fsync(2), before the engine makes the journal durable: decides
  /// text that waits for a decision, and throws EINVAL for incomplete text.
  public func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError) {
    let node = try node(id)
    try texts.requireText(of: node, false, now)
    if let file = node.keyFile { return try texts.decide(file, now: now) }
    guard let nameless = node.inMemory?.nameless else { return }
    throw log.refused(.notAValue("\(nameless.path): its text was refused, and there is no key"))
  }
}
