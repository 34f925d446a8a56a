import PreferenceModel
import PropertyList
import SystemCalls

/// Makes, removes and renames the files of keys, and makes keys of scratch files and scratch files
/// of keys.
///
/// Tools replace a file by several requests: they remove or rename it and make it anew, or write a
/// temporary file and rename it over the old one. `RemovedNames` remembers the names that left a
/// moment ago, so that the key is the same one afterwards, with its type, mode and place.
///
/// Promises: what a request does to keys is one transaction of the engine, or none where a key is
/// moved away. Text that waited for a decision before is decided first, and moves are completed
/// before a domain is renamed, by transactions of their own, whatever becomes of the request.
///
/// Threads: the tree's alone.
final class KeyFiles {
  let engine: any Engine
  let options: TreeOptions
  let log: TreeLog
  let table: NodeTable
  let removedNames: RemovedNames
  let values: ValueReader
  let kernel: KernelCache
  let transactor: Transactor
  let texts: TextWriter
  let scratch: ScratchFiles

  init(
    _ parts: TreeParts, _ values: ValueReader, _ kernel: KernelCache, _ transactor: Transactor,
    _ texts: TextWriter, _ scratch: ScratchFiles
  ) {
    (engine, options, log) = (parts.engine, parts.options, parts.log)
    (table, removedNames) = (parts.table, parts.removedNames)
    (self.values, self.kernel, self.transactor) = (values, kernel, transactor)
    (self.texts, self.scratch) = (texts, scratch)
  }

  // MARK: - What names mean

  /// What a name in a directory of files means.
  enum Found {
    case key(KeyPath, Resolution)
    case scratch(Node)
    case nothing

    var isScratch: Bool { if case .scratch = self { true } else { false } }
  }

  /// What the name means now; a key wins over a scratch file.
  func find(
    _ name: String, in directory: any Directory, now: Moment
  ) throws(TreeError) -> Found {
    if let path = try directory.keyPath(name, engine),
      let resolution = try values.resolve(path, now: now)
    {
      return .key(path, resolution)
    }
    let path = ScratchPath(parent: directory.scratchParent, name: name)
    return table[path].map { .scratch($0) } ?? .nothing
  }

  /// Returns the key that a new name stands for; throws EPERM for a scratch name, and EINVAL for a
  /// name that is not a key's.
  /// - Parameter subject: what log lines call the key.
  func newKey(_ name: String, _ subject: String) throws(TreeError) -> Key {
    switch NameCodec.decode(name) {
    case .key(let key): return key
    case .scratch:
      throw log.refused(
        .refused(
          "\(subject): this is a temporary file's name; to make a key of it, write its first "
            + "character as % and two hexadecimal digits"))
    case .none, .shortened:
      throw log.refused(
        .invalid("\(subject): not the canonical name of a key ('%' begins an escape)"))
    }
  }

  /// Returns the path of a key that is about to be made in the directory; throws as `newKey` does.
  func newPath(_ name: String, in directory: any Directory) throws(TreeError) -> KeyPath {
    guard case .domain(let domain) = directory.scratchParent else {
      throw log.refused(
        .refused("a file cannot be made at the root: a key is a file in its domain's directory"))
    }
    if let key = NameCodec.keyOfEscaped(name) { return KeyPath(domain: domain, key: key) }
    return KeyPath(domain: domain, key: try newKey(name, "\(domain) \(name)"))
  }

  // MARK: - Requests

  /// Carries out open(2) with O_CREAT of a name that the kernel did not find. Makes a scratch file
  /// if a tool makes files so (`ScratchName`). A key that was moved away a moment ago is opened as
  /// if it had been truncated. Otherwise makes a key whose value is the empty string, or, where every
  /// key is a dictionary (`TreeOptions.kind`), an empty one; its type follows from what its creator
  /// writes, until the creator closes it.
  /// - Returns: the handle is `.none` unless a new key was made.
  func create(
    _ name: String, in directory: any Directory, _ flags: CreationFlags, now: Moment
  ) throws(TreeError) -> (node: Node, handle: HandleID) {
    try repeated { () throws(TreeError) in
      try make(name, in: directory, flags, now)
    } again: { () throws(TreeError) -> Void in
      // Somebody else has made the key, and it is opened.
      if let path = try directory.keyPath(name, engine) { removedNames.forget(path) }
    }
  }

  private func make(
    _ name: String, in directory: any Directory, _ flags: CreationFlags, _ now: Moment
  ) throws(TreeError) -> (node: Node, handle: HandleID) {
    if transactor.made != nil {
      return try createKey(try newPath(name, in: directory), CreationFlags(), mode: nil, now: now)
    }
    switch try find(name, in: directory, now: now) {
    case .nothing: break
    case _ where flags.exclusively: throw .exists
    case .key(let path, _): return (try reopen(table.node(of: path), flags, now), .none)
    case .scratch(let node): return (try reopen(node, flags, now), .none)
    }
    if let path = try directory.keyPath(name, engine), removedNames.isMovedAway(path) {
      return (try remake(path, now: now), .none)
    }
    let making = ScratchName.Making.file(
      exclusively: flags.exclusively, readsToo: flags.readsToo)
    let verdict = scratch.judge(name, in: directory, making)
    if verdict != .key {
      let path = ScratchPath(parent: directory.scratchParent, name: name)
      let node =
        flags.exclusively
        ? try scratch.addExclusively(path, now: now) { () throws(TreeError) in
          if case .nothing = try find(name, in: directory, now: now) { true } else { false }
        } : try scratch.add(path, .file([]), mode: nil, now: now)
      scratch.note(verdict, of: node, at: now.instant)
      return (node, .none)
    }
    let mode = flags.mode & 0o200 == 0 ? flags.mode & 0o777 : nil
    return try createKey(try newPath(name, in: directory), flags, mode: mode, now: now)
  }

  /// Opens a file that was made after the kernel's look-up. Truncates it if open(2) asks for that,
  /// because the kernel sends no SETATTR after a CREATE.
  private func reopen(
    _ node: Node, _ flags: CreationFlags, _ now: Moment
  ) throws(TreeError) -> Node {
    if flags.truncating { try texts.truncate(node, to: 0, handle: .none, now: now) }
    return node
  }

  /// Makes a key whose value is the empty string or dictionary; the file of an awaited key if a
  /// schema decides what the key may be. Throws `.changedMeanwhile` if the key is there: somebody
  /// else has made it, and this mount has not heard of it yet.
  private func createKey(
    _ path: KeyPath, _ flags: CreationFlags, mode: UInt32?, now: Moment
  ) throws(TreeError) -> (node: Node, handle: HandleID) {
    let former = removedNames.former(path)
    if let location = placeOfAwaited(path) {
      let awaited = KeyFile.Awaited(
        location: location, since: now.time, mode: mode ?? former?.mode,
        isExclusive: flags.exclusively)
      return try awaitText(of: path, awaited, former, now: now)
    }
    let empty: [UInt8] = []
    let value = options.kind == .dictionary ? Value.dictionary([:]) : .string("")
    var intents = expectNone(path) + [.set(path.key, path.domain, value, .exact(empty))]
    if let mode = mode ?? former?.mode {
      intents.append(.describe(path.key, path.domain, Description(mode: mode)))
    }
    intents = inFormerPlace(path, intents)
    let handle = nextHandle()
    // No schema decides.
    try transactor.transact(intents, touching: [path], isDecisive: true, isJudged: false) { _ in
      begin(path, KeyFile.Creation(handle: handle, preferredKind: former?.kind))
    }
    return (table.node(of: path), handle)
  }

  private func nextHandle() -> HandleID {
    HandleID(rawValue: table.nextNumber())
  }

  /// Gives a key that is being made its node.
  private func begin(_ path: KeyPath, _ creation: KeyFile.Creation) {
    removedNames.forget(path)
    // Where the notice of a removal has not been handled, there is a node. It keeps its number.
    if table[path] == nil { table.renewInode(of: path) }
    KeyFile(table.node(of: path), path).creation = creation
  }

  /// Where the key will be, if a schema decides what it may be; nil if none does, and the key is
  /// made at once.
  private func placeOfAwaited(_ path: KeyPath) -> Location? {
    guard options.judges, options.kind == nil, transactor.made == nil,
      engine.newKind(of: path.key, in: path.domain)?.isCertain == true
    else { return nil }
    let location = placeOfNew(path)
    return engine.reaches(location, of: path.domain) ? location : nil
  }

  /// Makes the file of an awaited key, which waits for its first text.
  private func awaitText(
    of path: KeyPath, _ awaited: KeyFile.Awaited, _ former: RemovedNames.Former?, now: Moment
  ) throws(TreeError) -> (node: Node, handle: HandleID) {
    let handle = nextHandle()
    begin(
      path,
      KeyFile.Creation(handle: handle, preferredKind: former?.kind, awaited: awaited))
    let node = table.node(of: path)
    try texts.awaitText(of: KeyFile(node, path), by: handle, now: now)
    return (node, handle)
  }

  /// Where a key that is made is kept: where it was, if it left a moment ago, or else where
  /// new ones are.
  private func placeOfNew(_ path: KeyPath) -> Location {
    let usual = engine.placeOfNew
    let former = removedNames.former(path)?.place
    return Location(usual == .user && former?.isOwn == true ? former ?? usual : usual, path.domain)
  }

  /// The intent by which the engine refuses to make a key that somebody else has made: none is
  /// where a new one is kept.
  func expectNone(_ path: KeyPath) -> [Intent] {
    let target = placeOfNew(path)
    guard !options.isGenerated, engine.reaches(target, of: path.domain) else { return [] }
    return [.expectUnchanged(path.key, target, since: nil)]
  }

  /// Carries out unlink(2) of a key.
  func unlink(_ path: KeyPath, _ former: RemovedNames.Former, now: Moment) throws(TreeError) {
    let displaced = try values.displaced(path)
    if try values.awaited(path) != nil {
      // No place has the key.
      values.detach(displaced, at: now.time)
      return hideName(path, former, now: now)
    }
    let removal = Intent.remove(path.key, path.domain)
    try transactor.transact([removal], touching: [path], isDecisive: true) { _ in
      values.detach(displaced, at: now.time)
      hideName(path, former, now: now)
    }
  }

  /// Hides the name of a key that was removed or renamed, for a second: see `RemovedNames`.
  func hideName(_ path: KeyPath, _ former: RemovedNames.Former, now: Moment) {
    removedNames.noteRemoval(path, former, at: now.instant)
    table.renewInode(of: path)
  }

  /// Returns the intents that make a key, for the place of the key that had its name a moment ago:
  /// tools replace a file by removing it, or renaming it, and making it anew. The engine would make
  /// it in the user's list where the host's was.
  /// - Parameter source: the key that it is made of; it tells the place where no key had the name.
  func inFormerPlace(
    _ path: KeyPath, _ intents: [Intent], from source: RemovedNames.Former? = nil
  ) -> [Intent] {
    let place = removedNames.former(path)?.place ?? source?.place
    return place == .host ? intents.map { .at(.host, $0) } : intents
  }
}
