import PreferenceModel
import PropertyList
import SystemCalls

/// The values of keys, and the texts that files show of them.
///
/// Promises: nothing here changes the engine, or what the kernel has cached. An error of the engine
/// is logged before it is thrown. A text that was costly to make is kept in its file, all of them
/// together up to 32 MiB.
///
/// Threads: the tree's alone.
final class ValueReader {
  private let engine: any Engine
  private let options: TreeOptions
  private let log: TreeLog
  private let table: NodeTable
  private let removedNames: RemovedNames
  /// The last look-up.
  private var lastFound: LastLookup?
  /// Bytes of all texts that are cached in files (`KeyFile.cachedText`).
  private var cachedBytes = 0
  /// What the file showed of which the kernel was told the size last, a value or the text of an
  /// editor, and when that counts no more: see `pageText`.
  private var told: (node: NodeID, value: Resolution?, edited: [UInt8], end: Instant)?
  /// Milliseconds for which a size that the kernel was told counts.
  var sizePatience: Int64 = 5

  /// What a look-up of the engine found, and the engine's generation before it.
  private struct LastLookup {
    let path: KeyPath
    let generation: UInt64
    let resolution: Resolution?
  }

  init(_ parts: TreeParts) {
    (engine, options, log) = (parts.engine, parts.options, parts.log)
    (table, removedNames) = (parts.table, parts.removedNames)
  }

  // MARK: - Values

  /// Returns the key's value; nil if no place has the key, or its name was removed a moment ago.
  func resolve(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    removedNames.hides(path, at: now.instant) ? nil : try resolve(path)
  }

  /// Returns the value that a rename to the name replaces. A key that was moved away still has its
  /// value.
  func target(_ path: KeyPath, now: Moment) throws(TreeError) -> Resolution? {
    let isHidden = removedNames.hides(path, at: now.instant) && !removedNames.isMovedAway(path)
    return isHidden ? nil : try found(path)
  }

  /// Returns the key's value, whether or not its name was removed a moment ago; nil if no place has
  /// the key. An awaited key (`KeyFile.Awaited`) is empty. Cost: as of `found`.
  func resolve(_ path: KeyPath) throws(TreeError) -> Resolution? {
    let found = try found(path)
    guard let awaited = awaited(path, over: found) else { return found }
    let metadata = Metadata(text: [], modified: awaited.since, mode: awaited.mode)
    let empty = options.kind == .dictionary ? Value.dictionary([:]) : .string("")
    return Resolution(
      StoredValue(empty, metadata), location: awaited.location, isReadOnly: false)
  }

  /// Returns what is awaited of the key; nil where the domain has it, or nobody is making it.
  func awaited(_ path: KeyPath) throws(TreeError) -> KeyFile.Awaited? {
    awaited(path, over: try found(path))
  }

  private func awaited(_ path: KeyPath, over found: Resolution?) -> KeyFile.Awaited? {
    if let found, found.isReadOnly || isOwn(found, path) { return nil }
    return table[path]?.keyFile?.creation?.awaited
  }

  /// Returns the value that places have for the key; nil if none has it. Cost: a few loads, if the
  /// key is that of the last call and nothing has changed since.
  func found(_ path: KeyPath) throws(TreeError) -> Resolution? {
    let generation = engine.generation
    if let lastFound, lastFound.generation == generation, lastFound.path == path {
      return lastFound.resolution
    }
    do {
      let found = try engine.resolve(path.key, in: path.domain)
      lastFound = generation.map { LastLookup(path: path, generation: $0, resolution: found) }
      return found
    } catch {
      throw log.refused(TreeError(error))
    }
  }

  /// Forgets the last look-up. A generated text follows from the store, and may have other bytes after
  /// a change that leaves its value, and so the engine's generation, as they were.
  func forgetLast() { lastFound = nil }

  /// Returns the key's value; throws ENOENT if no place has the key.
  func requireValue(_ path: KeyPath) throws(TreeError) -> Resolution {
    guard let resolution = try resolve(path) else { throw .missing }
    return resolution
  }

  /// Throws EPERM for a value that a write cannot replace: a forced one, one of a locked domain, or an
  /// argument.
  func requireWritable(_ resolution: Resolution, _ path: KeyPath) throws(TreeError) {
    guard resolution.isReadOnly else { return }
    let why =
      if resolution.isForced {
        "the administrator has set it"
      } else if options.isGenerated {
        "its text is made of values elsewhere"
      } else if resolution.location.place == .arguments {
        "an argument of the mount has set it"
      } else {
        "the administrator has locked the domain"
      }
    throw log.refused(.refused("\(path): \(why)"))
  }

  /// The type that a schema demands of a key whose value has another one: the empty string, which
  /// its creator has left there (`touch`), or what a program has set that no schema judges. Is nil
  /// if none does, or the value has it.
  func demandedKind(of path: KeyPath, over value: Value?) -> Kind? {
    guard let value, options.judges,
      let known = engine.newKind(of: path.key, in: path.domain), known.isCertain,
      known.kind != value.kind
    else { return nil }
    return known.kind
  }

  /// The value that tells which strings of a text are dates and data, if the file may show JSON: in
  /// `-o format=json`, and where a text is kept, which may have been written there. It is nil if the
  /// file shows texts that say it.
  func template(_ shown: Resolution?) -> Value? {
    guard let shown, options.style == .json || shown.text != nil else { return nil }
    return shown.value
  }

  /// Whether the value is the domain's own and not inherited. Listings show only keys with such
  /// values.
  func isOwn(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    let place = resolution.location.place
    return resolution.location.domain == path.domain && place != .arguments && place != .schema
  }

  /// Whether the file must keep what it shows, because a notice of a removal would lack it.
  private func keepsShown(_ resolution: Resolution, _ path: KeyPath) -> Bool {
    options.isGenerated || !isOwn(resolution, path)
  }

  /// Keeps the value that the kernel is told of, if `keepsShown` holds.
  func note(shown resolution: Resolution, by file: KeyFile) {
    file.lastShown = keepsShown(resolution, file.path) ? resolution.stored : nil
  }

  /// Returns how the engine stores the text of a value: not at all, if it is the canonical one.
  func written(_ text: [UInt8], _ value: Value) -> WrittenText {
    guard text == ValueText.canonical(value) else { return .exact(text) }
    // In `-o format=xml` and `json` the file would read back differently without it.
    return options.style == .automatic || text == canonicalText(value) ? .canonical : .exact(text)
  }

  // MARK: - Texts

  /// Notes that getattr tells the kernel how long the text of a key's file is.
  func note(told node: Node, size: Int) {
    // A longer text is read in several pages, which may be of several texts.
    guard size <= 4096, let file = node.keyFile else { return }
    let value = file.editor == nil ? try? resolve(file.path) : nil
    let end = Instant.now.advanced(milliseconds: sizePatience)
    told = (node.id, value, file.editor?.text ?? [], end)
  }

  /// Forgets what the kernel was told: it has another size, or knows of the change.
  /// - Parameter node: the node; nil means any.
  func forgetTold(_ node: Node? = nil) { if node == nil || told?.node == node?.id { told = nil } }

  /// Returns the text of which a page is asked for, and whether it is an older one than the file
  /// shows now. The kernel must drop the page of that once it was read.
  ///
  /// A read(2) that finds nothing in the cache asks for the size, and then for a page. Where another
  /// program sets the key in between, the kernel would show as much of the new text as the old one
  /// had bytes, or fill it up with zeros. So the page is the one of the text that has the size. That
  /// counts for some milliseconds, as a mapping and sendfile(2) ask for pages alone and must see
  /// changes, and for one file, the last one: another one shows what it has.
  func pageText(_ node: Node) throws(TreeError) -> (text: [UInt8], isOld: Bool) {
    let shown = try shownText(node)
    if let told, told.node == node.id, Instant.now < told.end {
      let text = told.value.map(sourceText) ?? told.edited
      if text.count != shown.count { return (text, true) }
    }
    forgetTold(node)
    return (shown, false)
  }

  /// Returns the whole text that the file shows now.
  func shownText(_ node: Node) throws(TreeError) -> [UInt8] {
    switch node.content {
    case .directory: throw .isDirectory
    case .scratch(let file), .detached(let file):
      guard let text = file.text else { throw .isDirectory }
      return text
    case .key(let path):
      let file = KeyFile(node, path)
      if let editor = file.editor { return editor.text }
      return text(try requireValue(path), of: file)
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

  /// Returns the text that a key takes along when it is renamed.
  func sourceText(_ source: Resolution) -> [UInt8] { source.text ?? canonicalText(source.value) }

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

  /// Subtracts look-ups of a node. A node that goes with the last one takes its cached text along.
  func forget(_ id: NodeID, _ count: UInt64) {
    guard let node = table.forget(id, count) else { return }
    if let file = node.keyFile { dropCachedText(file) }
  }

  // MARK: - Files that lose their names

  /// Returns the file of a key that is about to lose its name, with the text that it shows; nil if
  /// the kernel does not know the file.
  func displaced(_ path: KeyPath) throws(TreeError) -> Displaced? {
    guard let node = table[path] else { return nil }
    do {
      return Displaced(node: node, text: try shownText(node), mode: try resolve(path)?.mode)
    } catch  where error == .missing {
      // The key is gone, and the notice of that has not been handled.
      return Displaced(node: node, text: [], mode: nil)
    }
  }

  /// A file that is about to lose its name, with the text and the permission bits that it shows.
  struct Displaced {
    let node: Node
    let text: [UInt8]
    let mode: UInt32?
  }

  /// Detaches a displaced file: a process that has it open keeps reading the text that it showed.
  func detach(_ displaced: Displaced?, at time: Timestamp) {
    guard let displaced else { return }
    let node = displaced.node
    node.modified = time
    if let file = node.keyFile { dropCachedText(file) }
    table.detach(node, text: displaced.text, mode: displaced.mode)
  }
}
