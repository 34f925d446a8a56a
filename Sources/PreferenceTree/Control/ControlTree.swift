import PreferenceModel
import PropertyList
import SystemCalls

/// The control directory `.prefs`, or the root of a mount of the machine's places: directories
/// whose names lead to other trees, and reports.
///
/// Promises: nothing in it can be made, changed or removed (EACCES), but `apply` takes documents that
/// change preferences; copying tools may set times,
/// modes and attributes of this program's own, which are not kept. A report's text is made when its
/// name is looked up, which the kernel does for each open(2) and stat(2), because it keeps no
/// entries of reports. A node has one text: where it differs from that of the last look-up, the name
/// leads to a new node, with a new modification time and the same `st_ino`, as after a rename(2)
/// over the file. So a process goes on reading the text that it began with; one of the history is
/// given back when nobody has looked at the history for a minute, and made anew for who still reads
/// it. A report that nobody asks for costs nothing.
///
/// Threads: the loop's alone.
final class ControlTree {
  /// The text of a report, and when it became that.
  struct Report {
    var text: [UInt8]
    var modified: Timestamp
  }

  final class Node {
    let item: ControlItem
    var lookups: UInt64 = 0
    var report: Report?

    init(_ item: ControlItem) { self.item = item }
  }

  let rootNode: NodeID
  private(set) var nextDeadline: Instant?
  let names: ControlNames
  /// How texts of past values are written.
  private let style: ValueText.Style
  let path: String
  /// Returns the tree whose root the item is.
  private let open: (ControlItem, String) throws(TreeError) -> any Branch
  /// Returns the text of `status.json`.
  private let status: () throws(TreeError) -> [UInt8]
  /// Carries out the document that was written to `apply`.
  let apply: ([UInt8]) throws(TreeError) -> Changeset
  private let log: (LogLine) -> Void
  private(set) var nodes: [NodeID: Node] = [:]
  /// The node to which the name of an item leads.
  private var ids: [ControlItem: NodeID] = [:]
  var effects: [Effect] = []
  /// What documents have changed that were written to `apply`, and other trees have not seen.
  var applied: [Changeset] = []
  /// The nodes that were made, looked up or forgotten since the tree was saved.
  let changes = ChangedNodes()
  private var lastNumber: UInt64
  private let started: Timestamp

  /// Creates the tree with its root alone.
  /// - Parameters:
  ///   - style: how texts of past values are written.
  ///   - open: returns the tree whose root the item is, given its path from the mount point.
  ///   - status: makes the text of `status.json`.
  ///   - apply: carries out a document that was written to `apply`.
  init(
    _ names: ControlNames, _ position: TreePosition, _ style: ValueText.Style, now: Moment,
    open: @escaping (ControlItem, String) throws(TreeError) -> any Branch,
    status: @escaping () throws(TreeError) -> [UInt8],
    apply: @escaping ([UInt8]) throws(TreeError) -> Changeset, log: @escaping (LogLine) -> Void
  ) {
    (self.names, self.open, self.status, self.log) = (names, open, status, log)
    self.apply = apply
    self.style = style
    (path, started, rootNode) = (position.path, now.time, position.rootNode)
    lastNumber = rootNode.rawValue
    nodes[rootNode] = Node(names.root)
    ids[names.root] = rootNode
  }

  private func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = nodes[id] else { throw .missing }
    return node
  }

  /// The node of an item. Makes it if there is none.
  private func id(of item: ControlItem) -> NodeID {
    if let known = ids[item] { return known }
    lastNumber += 1
    let id = NodeID(rawValue: lastNumber)
    nodes[id] = Node(item)
    ids[item] = id
    changes.note(id)
    return id
  }

  private func inode(of item: ControlItem) -> UInt64 {
    StableHash.of("\(path)\0\(item)".utf8) >> 2 | 1 << 61
  }

  /// `st_ino` of a name in a directory, which may be the root of another tree.
  private func inode(
    of item: ControlItem, _ name: String, in directory: ControlItem
  ) -> UInt64 {
    switch item {
    case .place, .documents, .suites, .declarations:
      TreePosition(number: 1, path: self.path(of: name, in: directory), .domains).rootInode
    default: inode(of: item)
    }
  }

  /// The path of a name in a directory, from the mount point.
  private func path(of name: String, in directory: ControlItem) -> String {
    let here =
      switch directory {
      case .places where !names.isMachine: "places"
      case .declaredPlaces: "declared"
      case .users: names.isMachine ? "managed-for" : "places/managed-for"
      default: ""
      }
    return [path, here, name].filter { !$0.isEmpty }.joined(separator: "/")
  }

  // MARK: - Reports

  /// The text of a report; nil if it has no subject: no place holds the key.
  private func text(_ item: ControlItem) throws(TreeError) -> [UInt8]? {
    if item == .status { return try status() }
    let service = names.service
    return try asTreeError { () throws(EngineError) -> [UInt8]? in
      switch item {
      case .search(let domain): Array(try service.searchList(of: domain).utf8)
      case .explanation(let domain, let key):
        try service.explanation(of: key, in: domain).map { Array($0.utf8) }
      case .description(let domain, let key):
        try service.description(of: key, in: domain).map { Array($0.utf8) }
      case .schema(let domain, let isJSON): try service.schema(of: domain, isJSON: isJSON)
      case .changes(let domain, let key):
        try service.history.changes(of: key, in: domain).map { Array($0.utf8) }
      default: nil
      }
    }
  }

  /// Makes the report of an item anew; throws ENOENT if it has no subject. An equal text keeps its
  /// modification time.
  private func report(_ item: ControlItem, after old: Report?) throws(TreeError) -> Report {
    if case .pastKey(let number, let domain, let key) = item {
      return try pastReport(number, domain, key)
    }
    guard let text = try text(item) else { throw .missing }
    if let old, old.text == text { return old }
    return Report(text: text, modified: max(.now, old?.modified.next ?? .now))
  }

  /// The report of a node. It is made anew where it was given back, or where a predecessor of this
  /// process had it.
  private func report(of node: Node) throws(TreeError) -> Report {
    if let report = node.report { return report }
    let report = try report(node.item, after: nil)
    node.report = report
    return report
  }

  /// The node with the present text of a report: that of the last look-up, if the text is the same or
  /// the kernel does not know the node; else a new one.
  private func reportNode(_ item: ControlItem) throws(TreeError) -> NodeID {
    let last = id(of: item)
    let node = try node(last)
    let report = try report(item, after: node.report)
    if node.lookups == 0 || node.report?.text == report.text {
      node.report = report
      return last
    }
    ids[item] = nil
    let new = id(of: item)
    nodes[new]?.report = report
    return new
  }

  /// The text of a past value, and when that value was set.
  private func pastReport(
    _ number: UInt64, _ domain: DomainName, _ key: Key
  ) throws(TreeError) -> Report {
    guard let found = try pastValue(number, domain, key) else { throw .missing }
    let text = found.text ?? ValueText.canonical(found.value, style: style)
    return Report(text: text, modified: found.modified)
  }

  /// The value of a key at a moment. Throws ENODATA where the history has not kept it.
  private func pastValue(
    _ number: UInt64, _ domain: DomainName, _ key: Key
  ) throws(TreeError) -> Resolution? {
    try asTreeError { () throws(EngineError) in
      try names.past(number, domain).resolve(key, in: domain)
    }
  }

  /// Returns EROFS for a change of the past; else returns, and logs, EACCES.
  /// - Parameter id: the node that is changed, or the directory in which something is.
  func refusal(_ id: NodeID, _ subject: String) -> TreeError {
    if nodes[id]?.item.moment != nil { return .readOnly }
    let sentence = "\(subject): what the control directory shows here cannot be changed"
    log(.refusal(sentence, .permissionDenied))
    return .system(.permissionDenied, sentence)
  }
}

// MARK: - State

extension ControlTree {
  /// Appends records of the nodes that have changed since the tree was last saved, or of all.
  func save(all: Bool, _ writer: inout ByteWriter) {
    let changed = changes.removeAll()
    for id in all ? Array(nodes.keys) : changed {
      if let node = nodes[id] {
        writer.begin(.control)
        writer.append(id)
        writer.append(node.item)
        writer.append(node.lookups)
      } else {
        writer.begin(.controlGone)
        writer.append(id)
      }
    }
  }

  /// Adds a node that a predecessor of the driver has saved.
  func restore(_ id: NodeID, _ item: ControlItem, lookups: UInt64) {
    let node = Node(item)
    node.lookups = min(lookups, NodeTable.mostSaved)
    nodes[id] = node
    if ids[item].map({ $0.rawValue < id.rawValue }) ?? true { ids[item] = id }
    lastNumber = max(lastNumber, id.rawValue)
  }
}

// MARK: - Requests that read

extension ControlTree: Branch {
  func historyNeeded(at id: NodeID, _ name: [UInt8]?) -> HistoryNeed? {
    guard let node = nodes[id], let need = names.historyNeeded(node.item, name) else { return nil }
    nextDeadline = .now.advanced(milliseconds: Self.patience)
    let isAsked = need == .changes || need == .moments
    let isThere =
      isAsked ? name == nil && node.report != nil : names.service.history.isPrepared(need)
    return isThere ? nil : need
  }

  /// Milliseconds after which the memory of a history that nobody looks at is given back.
  private static let patience: Int64 = 60_000

  func tick(now: Moment) {
    guard let end = nextDeadline, end <= now.instant else { return }
    nextDeadline = nil
    for node in nodes.values where node.item.isPrivate { node.report = nil }
    names.service.history.release()
  }

  func domainsNeeded(at id: NodeID, _ name: [UInt8]?) -> [DomainName] {
    guard let node = nodes[id], names.historyNeeded(node.item, name) == nil else { return [] }
    if name == nil, node.report != nil { return [] }
    let domain = name.flatMap { name in
      String(utf8: name[...]).flatMap { names.domainNeeded(for: $0, in: node.item) }
    }
    let search = names.service.preferences
    return (domain ?? node.item.domain).map { search.domainsNeeded(for: nil, in: $0) } ?? []
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
    let directory = try node(parent).item
    let text = try NameCodec.validated(name)
    guard let item = try names.item(text, in: directory) else {
      let mayCome = directory != .root && directory != .places || ControlNames.isHistory(text)
      return .missing(isCacheable: !mayCome)
    }
    switch item {
    case .place, .documents, .suites, .declarations:
      return .found(try open(item, path(of: text, in: directory)).rootEntry())
    default: break
    }
    let id = id(of: item)
    do throws(TreeError) {
      return .found(try entry(item.isReport ? reportNode(item) : id))
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
    if ids[node.item] == id { ids[node.item] = nil }
  }

  func attributes(_ id: NodeID) throws(TreeError) -> Attributes {
    let node = try node(id)
    let inode = inode(of: node.item)
    if node.item == .apply {
      // The kernel takes what was written for a part of the text: its size is asked for again.
      var attributes = Attributes(
        inode: inode, type: .file, mode: 0o200, size: 0, modified: started)
      attributes.isCacheable = false
      return attributes
    }
    guard node.item.isReport else {
      return try directoryAttributes(node.item, inode)
    }
    let report = try report(of: node)
    var attributes = Attributes(
      inode: inode, type: .file, mode: 0o400, size: report.text.count, modified: report.modified)
    (attributes.isReadOnly, attributes.isCacheable) = (true, false)
    // A copy must be a file that can be written to.
    if node.item.moment != nil { (attributes.isReadOnly, attributes.mode) = (false, 0o600) }
    attributes.isPrivate = node.item.isPrivate
    return attributes
  }

  private func directoryAttributes(
    _ item: ControlItem, _ inode: UInt64
  ) throws(TreeError) -> Attributes {
    var attributes = Attributes(
      inode: inode, type: .directory, mode: 0o500, size: 0, modified: started)
    attributes.isPrivate = item.isPrivate
    switch item {
    case .pastDomain(let number, let domain):
      let time = try asTreeError { () throws(EngineError) in
        try names.past(number, domain).modified(domain)
      }
      (attributes.mode, attributes.modified) = (0o700, time ?? started)
    case .moment: attributes.mode = 0o700
    // Its domain may go, or the settings of the history may change.
    case .explained, .described, .histories, .changed, .moments: break
    default: return attributes
    }
    attributes.isCacheable = false
    return attributes
  }

  func read(_ id: NodeID, at offset: Int, count: Int) throws(TreeError) -> ArraySlice<UInt8> {
    let node = try node(id)
    guard node.item.isFile else { throw .isDirectory }
    guard node.item.isReport else { return [] }
    let text = try report(of: node).text
    guard (0..<text.count).contains(offset) else { return [] }
    return text[offset...].prefix(max(count, 0))
  }

  func mayKeepListing(_ id: NodeID, now: Moment) throws(TreeError) -> Bool { false }

  func list(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) throws(TreeError) -> Listing.SubSequence {
    let directory = try node(id).item
    if directory.isFile { throw .notDirectory }
    let items = try names.entries(directory).map { name, item in
      ListingItem(
        name, inode: inode(of: item, name, in: directory), item.isFile ? .file : .directory)
    }
    return Listing(items).after(cookie)
  }

  /// A report is made anew for each look at it.
  func attributesGiven(_ id: NodeID, after cookie: UInt64) -> AttributesGiven { .none }

  func noteLookup(in parent: NodeID) {}

  func readLink(_ id: NodeID) throws(TreeError) -> [UInt8] { throw .invalid("not a symbolic link") }

  func extendedAttributeNames(_ id: NodeID) throws(TreeError) -> [UInt8] {
    if case .pastKey = try node(id).item { return Array("\(Self.typeName)\0".utf8) }
    return []
  }

  private static let typeName = "user.prefs.type"

  /// A past value has its type, so that copies with attributes keep it.
  func extendedAttribute(_ id: NodeID, _ name: String) throws(TreeError) -> [UInt8] {
    if name == Self.typeName, case .pastKey(let number, let domain, let key) = try node(id).item,
      let found = try pastValue(number, domain, key)
    {
      return Array(found.kind.rawValue.utf8)
    }
    throw name.hasPrefix("user.") ? .noAttribute : .unsupported
  }

  func prepareSynchronize(_ id: NodeID, now: Moment) throws(TreeError) {}

  func ghost(isDirectory: Bool, of file: NodeID?, now: Moment) throws(TreeError) -> Entry {
    throw .missing
  }

  /// Gives up what is known of the past where the history's settings have changed, or values were
  /// removed from it (`defaults history forget`). Other reports are made anew for each reader.
  func changed(_ changeset: Changeset, now: Moment) {
    guard changeset.concerns(.settings) else { return }
    names.service.history.release()
    for (id, node) in nodes where node.item.isPrivate {
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
