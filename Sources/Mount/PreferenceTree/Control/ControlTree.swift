import PreferenceModel
import PropertyList
import SystemCalls

/// The control directory `.prefs`, or the root of a mount of the machine's places: directories
/// whose names lead to other trees, and reports. What there is, the entries say (`ControlService`); a
/// node is known by the keys that lead to it.
///
/// Promises: nothing in it can be made, changed or removed (EACCES), but `apply` takes documents that
/// change preferences; copying tools may set times, modes and attributes of this program's own,
/// which are not kept. A report's text is made when its name is looked up, which the kernel does for
/// each open(2) and stat(2), because it keeps no entries of reports. A node has one text: where it
/// differs from that of the last look-up, the name leads to a new node, with a new modification time
/// and the same `st_ino`, as after a rename(2) over the file. So a process goes on reading the text
/// that it began with; one of the history is given back when nobody has looked at the history for a
/// minute, and made anew for who still reads it. A report that nobody asks for costs nothing.
///
/// Threads: the loop's alone.
final class ControlTree {
  /// The text of a report, and when it became that.
  struct Report {
    var text: [UInt8]
    var modified: Timestamp
    /// The kind of a past value.
    var kind: Kind?
  }

  final class Node {
    /// The keys that lead to it from the root.
    let path: [Key]
    let entry: ControlEntry
    var lookups: UInt64 = 0
    var report: Report?

    init(_ path: [Key], _ entry: ControlEntry) { (self.path, self.entry) = (path, entry) }
  }

  let rootNode: NodeID
  private(set) var nextDeadline: Instant?
  private let service: any ControlService
  /// How texts of past values are written.
  private let style: ValueText.Style
  /// The path of the root from the mount point.
  let path: String
  /// Returns the tree whose root stands at the path.
  private let open: ([Key], ControlRoot) throws(TreeError) -> any MountedTree
  private let log: (LogLine) -> Void
  private(set) var nodes: [NodeID: Node] = [:]
  /// The node to which a path leads.
  private var ids: [[Key]: NodeID] = [:]
  /// The listing that is being read, until its end: it is made once, not for each request. It may show
  /// the past, so it goes with what is known of that, and with its node.
  private var lastListing: (id: NodeID, listing: Listing)?
  var effects: [Effect] = []
  /// What documents have changed that were written to `apply`, and other trees have not seen.
  var applied: [Changeset] = []
  /// The nodes that were made, looked up or forgotten since the tree was saved.
  let changes = TreeChanges()
  private var lastNumber: UInt64
  private let started: Timestamp

  /// Creates the tree with its root alone.
  /// - Parameters:
  ///   - root: what its root shows.
  ///   - style: how texts of past values are written.
  ///   - open: returns the tree whose root stands at the path.
  init(
    _ root: ControlDirectory, _ service: any ControlService, _ position: TreePosition,
    _ style: ValueText.Style, now: Moment,
    open: @escaping ([Key], ControlRoot) throws(TreeError) -> any MountedTree,
    log: @escaping (LogLine) -> Void
  ) {
    (self.service, self.style, self.open, self.log) = (service, style, open, log)
    (path, started, rootNode) = (position.path, now.time, position.rootNode)
    lastNumber = rootNode.rawValue
    nodes[rootNode] = Node([], ControlEntry(.directory(root)))
    ids[[]] = rootNode
  }

  private func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = nodes[id] else { throw .missing }
    return node
  }

  /// What stands at a path, without a look whether it is there; nil if nothing can.
  func entry(at path: [Key]) -> ControlEntry? {
    path.reduce(nodes[rootNode]?.entry) { $0?.directory?.entry($1) }
  }

  /// The node at a path. Makes it if there is none.
  private func id(of path: [Key], _ entry: ControlEntry) -> NodeID {
    if let known = ids[path] { return known }
    lastNumber += 1
    let id = NodeID(rawValue: lastNumber)
    nodes[id] = Node(path, entry)
    ids[path] = id
    changes.note(id)
    return id
  }

  /// `st_ino` of what stands at a path, which may be the root of another tree.
  private func inode(of path: [Key], _ entry: ControlEntry) -> UInt64 {
    let path = fullPath(path)
    if case .tree = entry.content {
      return TreePosition(number: 1, path: path, .domains).rootInode
    }
    return StableHash.of(path.utf8) >> 2 | 1 << 61
  }

  /// The path from the mount point.
  func fullPath(_ path: [Key]) -> String {
    ([self.path].filter { !$0.isEmpty } + path.map(NameCodec.encode)).joined(separator: "/")
  }

  // MARK: - Reports

  /// Makes the report of an entry anew; throws ENOENT if it has no subject: no place holds the key.
  /// An equal text keeps its modification time.
  private func report(_ entry: ControlEntry, after old: Report?) throws(TreeError) -> Report {
    guard case .report(let make) = entry.content, let made = try asTreeError(make) else {
      throw .missing
    }
    switch made {
    case .bytes(let text):
      if let old, old.text == text { return old }
      return Report(text: text, modified: max(.now, old?.modified.next ?? .now))
    case .value(let found):
      let text = found.text ?? ValueText.canonical(found.value, style: style)
      return Report(text: text, modified: found.modified, kind: found.kind)
    }
  }

  /// The report of a node. It is made anew where it was given back, or where a predecessor of this
  /// process had it.
  private func report(of node: Node) throws(TreeError) -> Report {
    if let report = node.report { return report }
    let report = try report(node.entry, after: nil)
    node.report = report
    return report
  }

  /// The node with the present text of a report: that of the last look-up, if the text is the same or
  /// the kernel does not know the node; else a new one.
  private func reportNode(_ last: NodeID) throws(TreeError) -> NodeID {
    let node = try node(last)
    let report = try report(node.entry, after: node.report)
    if node.lookups == 0 || node.report?.text == report.text {
      node.report = report
      return last
    }
    ids[node.path] = nil
    let new = id(of: node.path, node.entry)
    nodes[new]?.report = report
    return new
  }

  /// Returns EROFS for a change of the past; else returns, and logs, EACCES.
  /// - Parameter id: the node that is changed, or the directory in which something is.
  func refusal(_ id: NodeID, _ subject: String) -> TreeError {
    if nodes[id]?.entry.isPast == true { return .readOnly }
    let sentence = "\(subject): what the control directory shows here cannot be changed"
    log(.refusal(sentence, .permissionDenied))
    return .system(.permissionDenied, sentence)
  }
}

// MARK: - State

extension ControlTree {
  /// Appends records of the nodes that have changed since the tree was last saved, or of all.
  func save(all: Bool, _ writer: inout ByteWriter) {
    let changed = changes.removeNodes()
    for id in all ? Array(nodes.keys) : changed {
      if let node = nodes[id] {
        writer.begin(.control, id)
        writer.append(node.path)
        writer.append(variable: node.lookups)
      } else {
        writer.begin(.gone, id)
      }
    }
  }

  /// Adds a node that a predecessor of the driver has saved. Throws where nothing can stand at the
  /// path.
  func restore(_ id: NodeID, _ path: [Key], lookups: UInt64) throws {
    guard let entry = entry(at: path) else { throw ByteReader.Unknown() }
    let node = Node(path, entry)
    node.lookups = min(lookups, NodeTable.mostSaved)
    nodes[id] = node
    if ids[path].map({ $0.rawValue < id.rawValue }) ?? true { ids[path] = id }
    lastNumber = max(lastNumber, id.rawValue)
  }
}

// MARK: - Requests that read

extension ControlTree: MountedTree {
  func preparationNeeded(at id: NodeID, _ name: [UInt8]?) -> Preparation? {
    guard let node = nodes[id], case .prepared(let need)? = need(of: node, name) else { return nil }
    nextDeadline = .now.advanced(milliseconds: Self.patience)
    return name == nil && node.report != nil || need.isReady() ? nil : need
  }

  /// What must be in memory for a request about the node, or about the name in it.
  private func need(of node: Node, _ name: [UInt8]?) -> ControlNeed? {
    guard let directory = node.entry.directory, let name, let text = String(utf8: name[...]) else {
      return node.entry.ownNeed
    }
    // The key that a shortened name means is known when the names are.
    let key: Key? =
      if case .key(let key) = NameCodec.decode(text) {
        key
      } else {
        try? directory.key(named: text)
      }
    return key.flatMap(directory.entry).map(\.need) ?? node.entry.ownNeed
  }

  /// Milliseconds after which the memory of what was prepared and nobody looks at is given back.
  private static let patience: Int64 = 60_000

  func tick(now: Moment) {
    guard let end = nextDeadline, end <= now.instant else { return }
    (nextDeadline, lastListing) = (nil, nil)
    for node in nodes.values where node.entry.isPrivate { node.report = nil }
    service.release()
  }

  func domainsNeeded(at id: NodeID, _ name: [UInt8]?) -> [DomainName] {
    guard let node = nodes[id], case .lists(let domain)? = need(of: node, name) else { return [] }
    if name == nil, node.report != nil { return [] }
    return service.preferences.domainsNeeded(for: nil, in: domain)
  }

  func rootEntry() throws(TreeError) -> Entry { try entry(rootNode) }

  /// The node as an entry. Counts the look-up.
  private func entry(_ id: NodeID) throws(TreeError) -> Entry {
    var entry = Entry(node: id, attributes: try attributes(id))
    entry.isCacheable = entry.attributes.isCacheable
    nodes[id]?.lookups += 1
    changes.note(id)
    return entry
  }

  func lookup(_ parent: NodeID, _ name: [UInt8], now: Moment) throws(TreeError) -> LookupResult {
    let node = try node(parent)
    guard let directory = node.entry.directory else { throw .notDirectory }
    let text = try NameCodec.validated(name)
    let found = try asTreeError { () throws(EngineError) in try directory.key(named: text) }
    guard let key = found, let entry = directory.entry(key) else {
      let mayCome = !directory.isFixed || directory.entry(Key(text)) != nil
      return .missing(isCacheable: !mayCome)
    }
    let path = node.path + [key]
    if case .tree(let root) = entry.content { return .found(try open(path, root).rootEntry()) }
    let id = id(of: path, entry)
    do throws(TreeError) {
      return .found(try self.entry(entry.isReport ? reportNode(id) : id))
    } catch {
      forget(id, 0)
      guard error == .missing else { throw error }
      return .missing(isCacheable: false)
    }
  }

  func forget(_ id: NodeID, _ count: UInt64) {
    guard let node = nodes[id], id != rootNode else { return }
    changes.note(id)
    node.lookups = node.lookups > count ? node.lookups - count : 0
    guard node.lookups == 0 else { return }
    nodes[id] = nil
    if ids[node.path] == id { ids[node.path] = nil }
    if lastListing?.id == id { lastListing = nil }
  }

  func attributes(_ id: NodeID) throws(TreeError) -> Attributes {
    let node = try node(id)
    let (entry, inode) = (node.entry, inode(of: node.path, node.entry))
    var attributes: Attributes
    switch entry.content {
    case .commands:
      // The kernel takes what was written for a part of the text: its size is asked for again.
      attributes = Attributes(inode: inode, type: .file, mode: 0o200, size: 0, modified: started)
      attributes.isCacheable = false
    case .report:
      let report = try report(of: node)
      attributes = Attributes(
        inode: inode, type: .file, mode: 0o400, size: report.text.count, modified: report.modified)
      (attributes.isReadOnly, attributes.isCacheable) = (true, false)
      // A copy must be a file that can be written to.
      if entry.isPast { (attributes.isReadOnly, attributes.mode) = (false, 0o600) }
    case .directory(let directory):
      let time = try asTreeError { () throws(EngineError) in try directory.modified() }
      attributes = Attributes(
        inode: inode, type: .directory, mode: entry.isPast ? 0o700 : 0o500, size: 0,
        modified: time ?? started)
      // Its domain may go, or the settings of the history may change.
      attributes.isCacheable = entry.ownNeed == nil
    case .tree: throw .missing
    }
    attributes.isPrivate = entry.isPrivate
    return attributes
  }

  func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8> {
    let node = try node(id)
    guard node.entry.directory == nil else { throw .isDirectory }
    guard node.entry.isReport else { return [] }
    let text = try report(of: node).text
    guard (0..<text.count).contains(offset) else { return [] }
    return text[offset...].prefix(max(count, 0))
  }

  func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool { false }

  func list(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) throws(TreeError) -> Listing.SubSequence {
    let listing: Listing
    if let last = lastListing, last.id == id, cookie != 0 {
      listing = last.listing
    } else {
      listing = try makeListing(id)
    }
    let rest = listing.after(cookie)
    lastListing = rest.isEmpty ? nil : (id, listing)
    return rest
  }

  private func makeListing(_ id: NodeID) throws(TreeError) -> Listing {
    let node = try node(id)
    guard let directory = node.entry.directory else { throw .notDirectory }
    let items = try asTreeError { () throws(EngineError) in
      var items: [ListingItem] = []
      for name in try directory.names() {
        let key = directory.hasAliases ? try directory.find(name) : name
        guard let key, let entry = directory.entry(key) else { continue }
        let type: FileType =
          switch entry.content {
          case .report, .commands: .file
          case .directory, .tree: .directory
          }
        items.append(
          ListingItem(
            NameCodec.encode(name), inode: inode(of: node.path + [key], entry), type))
      }
      return items
    }
    return Listing(items)
  }

  /// A report is made anew for each look at it.
  func attributesGiven(_ id: NodeID, after cookie: UInt64) -> AttributesGiven { .none }

  func noteLookup(in parent: NodeID) {}

  func readLink(_ id: NodeID) throws(TreeError) -> [UInt8] { throw .invalid("not a symbolic link") }

  func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8] {
    let entry = try node(id).entry
    return entry.isPast && entry.isReport ? Array("\(Self.typeName)\0".utf8) : []
  }

  private static let typeName = "user.prefs.type"

  /// A past value has its type, so that copies with attributes keep it.
  func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8] {
    let node = try node(id)
    if name == Self.typeName, node.entry.isReport, let kind = try report(of: node).kind {
      return Array(kind.rawValue.utf8)
    }
    throw name.hasPrefix("user.") ? .noAttribute : .unsupported
  }

  func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError) {}

  func ghost(isDirectory: Bool, of file: NodeID?, now: Moment) throws(TreeError) -> Entry {
    throw .missing
  }

  /// Gives up what is known of the past where the history's settings have changed, or values were
  /// removed from it (`prefs history forget`). Other reports are made anew for each reader.
  func changed(_ changeset: Changeset, now: Moment) {
    guard changeset.concerns(.settings) else { return }
    lastListing = nil
    service.release()
    for (id, node) in nodes where node.entry.isPrivate {
      node.report = nil
      effects += [.invalidateAttributes(id), .invalidateContents(id)]
    }
  }

  func finish(now: Moment) {}

  func removeChanges() -> [Changeset] {
    defer { applied = [] }
    return applied
  }

  func removeEffects() -> [Effect] {
    defer { effects = [] }
    return effects
  }
}

extension ControlEntry {
  var directory: ControlDirectory? {
    if case .directory(let directory) = content { directory } else { nil }
  }

  var isReport: Bool { if case .report = content { true } else { false } }

  /// What must be in memory for a request about the entry itself.
  fileprivate var ownNeed: ControlNeed? { directory?.need ?? need }

  fileprivate var isPrivate: Bool { if case .prepared = ownNeed { true } else { false } }

  /// Whether it shows the past, which nobody changes.
  var isPast: Bool { if case .prepared(let need) = ownNeed { need.isPast } else { false } }
}

extension ControlDirectory {
  /// The key that a file name opens; nil if there is no such file. Cost: for a shortened name, that
  /// of a listing.
  fileprivate func key(named name: String) throws(EngineError) -> Key? {
    switch NameCodec.decode(name) {
    case .key(let key): return try find(key)
    case .shortened:
      return try names().first { NameCodec.encode($0).utf8.elementsEqual(name.utf8) }
    case .scratch, .none: return nil
    }
  }
}
