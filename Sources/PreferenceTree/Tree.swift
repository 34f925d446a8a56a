import PreferenceModel
import PropertyList
import SystemCalls

/// Preferences as a file system, without the file system: nodes, names, attributes and bytes.
///
/// Promises: requests are Swift values; errors are `TreeError`s, each with its errno. What the
/// kernel must be told because of a call is in `removeEffects()` after it, in order. A refused
/// request changes nothing, is logged with domain, key and reason, and the file shows the value as
/// it was. Text that was accepted is in the engine when the call returns, except for held text.
///
/// Threads: one, the caller's; there is no lock. Another thread's `Notice`s must be handed over to
/// it (`changed`). Time is a parameter, so that tests need not wait: the caller passes the present
/// moment, and calls `tick` when `nextDeadline` has come.
///
/// Parts: `NodeTable` (what the kernel knows by number), `Directory` (what names mean),
/// `TextEditor` (text that is being written), `Departures` (names that left a moment ago),
/// `AnsweredNames` (which answers the kernel may remember). `transact` is the one way to the engine.
public final class Tree {
  let engine: any Engine
  let options: TreeOptions
  let log: (String) -> Void
  let author: Author
  var table: NodeTable
  var effects: [Effect] = []
  var departures = Departures()
  var answered = AnsweredNames()
  var lastHandle: UInt64 = 0
  /// Files with an editor, and when one whose text is complete may be thrown away.
  var edited: [NodeID: Instant] = [:]
  /// Scratch files that a person may take for keys, and when the log says that they are not.
  var doubtfulScratch: [NodeID: Instant] = [:]
  /// When `tick` must be called next, at the latest; nil: not before the next request.
  public internal(set) var nextDeadline: Instant?
  /// Bytes of all cached texts.
  var cachedBytes = 0

  /// Makes a tree over an engine.
  /// - Parameters:
  ///   - author: tells the tree's own changes from those of others.
  ///   - log: gets a line for each refusal.
  public init(
    engine: any Engine, options: TreeOptions = TreeOptions(), author: Author, now: Moment,
    log: @escaping (String) -> Void
  ) {
    self.engine = engine
    self.options = options
    self.author = author
    self.log = log
    table = NodeTable(now: now)
  }

  /// Removes and returns what the kernel must be told because of the calls since the last time.
  public func removeEffects() -> [Effect] {
    defer { effects.removeAll(keepingCapacity: true) }
    return effects
  }

  /// The node of a number; throws ENOENT.
  func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = table[id] else { throw .missing }
    return node
  }

  /// The directory of a number; throws ENOTDIR.
  func directory(_ id: NodeID) throws(TreeError) -> any Directory {
    guard let directory = try node(id).directory else { throw .notDirectory }
    return directory
  }

  /// The same for a directory that files may lie in.
  func fileDirectory(_ id: NodeID) throws(TreeError) -> any FileDirectory {
    guard let directory = try directory(id) as? any FileDirectory else {
      throw refused(.refused("files at the root: keys lie in the directory of their domain"))
    }
    return directory
  }

  /// Throws EROFS where nothing may be changed.
  func requireWritable() throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
  }

  /// Logs a refusal and returns it, to be thrown.
  func refused(_ error: TreeError) -> TreeError {
    if let sentence = error.sentence { log(sentence) }
    return error
  }
}
