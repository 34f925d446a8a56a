import PreferenceModel
import PropertyList
import SystemCalls

/// The file system of preferences, without FUSE: nodes, names, attributes and texts over an engine.
///
/// Promises: requests are Swift values; errors are `TreeError`s, each with its errno. What the
/// driver must do because of a call is in `removeEffects()` after it, in order. A request that is
/// refused changes nothing, and the file shows its value; a refusal that needs an explanation is
/// logged with domain, key and reason. Text that was accepted is in the engine when the call
/// returns, unless it is held or waits for a decision (`TextEditor`).
///
/// Threads: all calls must be made by one thread at a time; there is no lock. `Notice`s of other
/// threads must be handed over to that thread (`changed`). Time is a parameter, so that tests need
/// not wait: the caller passes the present moment, and calls `tick` when `nextDeadline` has come.
///
/// Parts: `NodeTable` (nodes by number and name), `Directory` (what names mean), `TextEditor` (text
/// that is being written), `Departures` (names that left a moment ago), `AnsweredNames` (look-ups
/// that the kernel caches and that other domains' changes can make wrong). Every change of the
/// engine goes through `apply`, in most cases by `transact`.
public final class Tree {
  let engine: any Engine
  let options: TreeOptions
  let log: (LogLine) -> Void
  let author: Author
  /// Where the tree stands in its mount.
  let position: TreePosition
  let table: NodeTable
  /// The changes that were made through the tree and that other trees of the mount have not seen.
  var changes: [Changeset] = []
  /// Whether there are other trees in the mount, which must see the changes.
  public var hasNeighbours = false
  var effects: [Effect] = []
  var departures = Departures()
  var answered = AnsweredNames()
  var lastHandle: UInt64 = 0
  /// The nodes of files with an editor, and when an editor whose text is complete is thrown away.
  var edited: [NodeID: Instant] = [:]
  /// Scratch files that a person may take for keys, and when a log line says that they are not.
  var doubtfulScratch: [NodeID: Instant] = [:]
  /// Scratch files that may stay, and when they become keys.
  var unclaimed: [NodeID: Instant] = [:]
  /// Events of generated texts that are still to be announced, and when they are.
  var delayed: [KeyPath: KeyEvent.Kind] = [:]
  var delayedUntil: Instant?
  /// When `tick` must be called next; nil: not before another call sets it.
  public internal(set) var nextDeadline: Instant?
  /// The numbers that were saved last.
  var savedNumbers: TreeNumbers?
  /// Saves the present values of keys before a request changes them; nil: nobody does.
  var remember: (([KeyPath: Resolution?]) -> Void)?
  /// The values of keys before a request that a predecessor has carried out, while the request is
  /// repeated.
  var past: [KeyPath: Resolution?] = [:]
  /// The last look-up.
  var lastFound: LastLookup?
  /// Bytes of all texts that are cached in files (`KeyFile.cachedText`).
  var cachedBytes = 0

  /// Creates a tree over an engine.
  /// - Parameters:
  ///   - position: where the tree stands in its mount.
  ///   - author: the author of the tree's own changes, whose notices it ignores.
  ///   - log: receives log lines, e.g. one for each refusal that needs an explanation.
  public init(
    engine: any Engine, options: TreeOptions = TreeOptions(),
    position: TreePosition = TreePosition(), author: Author, now: Moment,
    log: @escaping (LogLine) -> Void
  ) {
    self.position = position
    self.engine = engine
    self.options = options
    self.author = author
    self.log = log
    table = NodeTable(position, now: now)
  }

  /// Removes and returns the effects of the calls since it was last called.
  public func removeEffects() -> [Effect] {
    defer { effects = [] }
    return effects
  }

  /// The paths of the scratch files, links and directories, from the mount point.
  var scratchPaths: [String] {
    table.scratchNodes.compactMap { node in
      guard let path = node.scratchPath else { return nil }
      switch path.parent {
      case .root: return position.path.isEmpty ? path.name : "\(position.path)/\(path.name)"
      case .domain(let domain):
        let directory = position.directory(of: domain)
        return directory.isEmpty ? path.name : "\(directory)/\(path.name)"
      case .directory(let id): return "\(table[id]?.scratchPath?.name ?? "")/\(path.name)"
      }
    }
  }

  /// The paths of files whose text is incomplete and held, from the mount point.
  var heldTexts: [String] {
    edited.keys.compactMap { id in
      guard let file = table[id]?.keyFile, file.editor?.isHeld == true else { return nil }
      return "\(position.directory(of: file.path.domain))/\(NameCodec.encode(file.path.key))"
    }
  }

  /// Removes and returns the changes that were made through the tree since the last call, in the
  /// terms of the store. There are none without `hasNeighbours`.
  public func removeChanges() -> [Changeset] {
    defer { changes = [] }
    return changes
  }

  /// Returns the node of a number; throws ENOENT if there is none.
  func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = table[id] else { throw .missing }
    return node
  }

  /// Returns the directory of a number; throws ENOTDIR for other nodes, and ENOENT for the
  /// directory of a domain that is gone, in which a process may still be.
  func directory(_ id: NodeID) throws(TreeError) -> any Directory {
    let node = try node(id)
    guard let directory = node.directory else { throw .notDirectory }
    if let domain = (directory as? DomainDirectory)?.domain, table[domain] !== node {
      throw .missing
    }
    return directory
  }

  /// Returns the directory of a number; throws EPERM for the root, in which no files may lie.
  func fileDirectory(_ id: NodeID) throws(TreeError) -> any FileDirectory {
    guard let directory = try directory(id) as? any FileDirectory else {
      throw refused(
        .refused("a file cannot be made at the root: a key is a file in its domain's directory"))
    }
    return directory
  }

  /// Throws EROFS if every change is refused.
  func requireWritable() throws(TreeError) {
    if engine.isReadOnly { throw .readOnly }
  }

  /// Logs a refusal, if it has a sentence, and returns it for the caller to throw.
  func refused(_ error: TreeError) -> TreeError {
    if let sentence = error.sentence { log(.refusal(sentence, error.errno)) }
    return error
  }
}
