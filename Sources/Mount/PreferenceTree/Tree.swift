import PreferenceModel
import SystemCalls

/// The file system of preferences, without FUSE: nodes, names, attributes and texts over an engine.
///
/// Promises: requests are Swift values; errors are `TreeError`s, each with its errno. What the
/// driver must do because of a call is in `removeEffects()` after it. A request that is refused
/// makes no change of its own, and the file shows its value (but see `KeyFiles` and
/// `TextWriter.perform`); a refusal that needs an explanation is logged with domain, key and
/// reason. Text that was accepted is in the engine when the call returns, unless it is held or
/// waits for a decision (`TextWriter`).
///
/// Threads: all calls must be made by one thread at a time; there is no lock. `Notice`s of other
/// threads must be handed over to that thread (`changed`). Time is a parameter, so that tests need
/// not wait: the caller passes the present moment, and calls `tick` when `nextDeadline` has come.
///
/// Parts, each of which uses only those above it:
///
/// - `NodeTable` (nodes by number and name), `RemovedNames` (names that left a moment ago);
/// - `ValueReader`: the values of keys, and their texts;
/// - `KernelCache`: what the kernel has cached, and the effects that make it right;
/// - `Transactor`: the only way in which the tree changes the engine;
/// - `ScratchFiles`: tools' temporary files;
/// - `TextWriter`: text that is being written, by a `TextEditor` for each file;
/// - `KeyFiles`: makes, removes and renames keys;
/// - `TreeSaver`: what a successor of the driver must know.
///
/// The tree itself answers requests: it finds their nodes, asks a `Directory` what names mean,
/// and makes the entries and attributes of the replies.
public final class Tree: MountedTree {
  let engine: any Engine
  let options: TreeOptions
  let log: TreeLog
  /// Where the tree stands in its mount.
  let position: TreePosition
  let table: NodeTable
  let removedNames: RemovedNames
  let values: ValueReader
  let kernel: KernelCache
  let transactor: Transactor
  let scratch: ScratchFiles
  let texts: TextWriter
  let keys: KeyFiles
  let saver: TreeSaver

  /// Creates a tree over an engine.
  /// - Parameters:
  ///   - position: where the tree stands in its mount.
  ///   - author: the author of the tree's own changes, whose notices it ignores.
  ///   - claims: gives the names of files that are made exclusively; nil if there are no other
  ///     mounts.
  ///   - log: receives log lines, e.g. one for each refusal that needs an explanation.
  public init(
    engine: any Engine, options: TreeOptions = TreeOptions(),
    position: TreePosition = TreePosition(), author: Author,
    claims: (any NameClaims)? = nil, now: Moment, log: @escaping (LogLine) -> Void
  ) {
    let table = NodeTable(position, now: now)
    let parts = TreeParts(
      engine: engine, options: options, log: TreeLog(write: log), position: position,
      author: author, claims: claims, table: table, removedNames: RemovedNames(table.changes))
    (self.engine, self.options, self.log) = (engine, options, parts.log)
    (self.position, self.table, removedNames) = (position, table, parts.removedNames)
    values = ValueReader(parts)
    kernel = KernelCache(parts, values)
    transactor = Transactor(parts, values, kernel, author: author)
    scratch = ScratchFiles(parts, kernel)
    texts = TextWriter(parts, values, kernel, transactor, scratch)
    keys = KeyFiles(parts, values, kernel, transactor, texts, scratch)
    saver = TreeSaver(parts, kernel)
  }

  public func rootEntry() throws(TreeError) -> Entry { try entry(table.root) }

  /// Removes and returns the effects of the calls since it was last called.
  public func removeEffects() -> [Effect] { kernel.removeEffects() }

  /// Removes and returns the changes that were made through the tree since the last call, in the
  /// terms of the store.
  public func removeChanges() -> [Changeset] { transactor.removeChanges() }

  /// Shows a change that was made through another tree of the mount.
  public func changed(_ changeset: Changeset, now: Moment) {
    changed(engine.notice(of: changeset), now: now)
  }

  /// Invalidates everything in the kernel that shows the change, and announces it to watchers. A
  /// notice of the tree's own change is ignored: `Transactor.transact` has done all that.
  public func changed(_ notice: Notice, now: Moment) {
    if notice.author != transactor.author { kernel.changed(notice, now: now) }
  }

  /// The paths of the scratch files, links and directories, from the mount point.
  var scratchPaths: [String] {
    table.scratchNodes.compactMap { node in
      guard let path = node.scratchPath else { return nil }
      if case .directory(let id) = path.parent {
        return "\(table[id]?.scratchPath?.name ?? "")/\(path.name)"
      }
      return position.path(of: path)
    }
  }

  /// The paths of files whose text is incomplete and held, from the mount point.
  var heldTexts: [String] { files(of: \.isHeld) }

  /// The paths of files that are written to, and whose editors are such, from the mount point.
  func files(of isWanted: (TextEditor) -> Bool) -> [String] {
    texts.edited.keys.compactMap { id in
      guard let file = table[id]?.keyFile, file.editor.map(isWanted) == true else { return nil }
      return "\(position.directory(of: file.path.domain))/\(NameCodec.encode(file.path.key))"
    }
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
}
