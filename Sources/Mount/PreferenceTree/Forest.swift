import PreferenceModel
import PropertyList
import SystemCalls

/// The trees of one mount: the one at the mount point, and those in the control directory `.prefs`.
/// Each request goes to the tree of its node; the number of a node says which that is.
///
/// Promises: a change that is made through one tree is shown by the others when `removeEffects` has
/// been called, thus before the request is answered. A tree is made by the first look-up of its
/// root and stays until the mount ends. One that nobody has looked up costs nothing.
///
/// Threads: all calls must be made by one thread at a time; there is no lock. Calls wait as long as
/// those of the engines do.
public final class Forest {
  /// What the mount point shows.
  public enum Root: Sendable {
    /// Preferences as the search list resolves them, and the control directory.
    case preferences
    /// The managed lists, those of each user, and the lists for any user: what `.prefs/places`
    /// shows in other mounts, without the user's places. There is no control directory.
    case machinePlaces
  }

  let service: any ControlService
  let options: TreeOptions
  /// The author of the trees' changes.
  package let author: Author
  let claims: (any NameClaims)?
  let log: (LogLine) -> Void
  /// The trees by their numbers.
  var mountedTrees: [any MountedTree] = []
  /// Where in the control directory the roots of the other trees stand, in the order of the trees'
  /// numbers; the control directory itself at [].
  var paths: [[Key]] = []
  /// How many of them were saved.
  var savedPaths = 0
  /// Told before each change whether it is the one that a request asks for; nil if nothing is
  /// saved.
  var setDecisive: ((Bool) -> Void)?
  /// The numbers of the trees whose roots stand there.
  var numbers: [[Key]: Int] = [:]
  /// The tree at the mount point, if it shows preferences.
  var main: Tree?
  /// The control directory, once somebody has looked it up; or the root of the machine's places.
  var control: ControlTree?

  /// The name of the control directory at the root, which no listing shows.
  public static let controlName = ".prefs"
  /// The most trees that a mount has.
  private static let most = 4096

  /// Creates the trees of a mount.
  /// - Parameters:
  ///   - engine: the search list, which the tree at the mount point shows.
  ///   - service: what the control directory shows, and the engines of its trees.
  ///   - options: the options of every tree. Some trees in the control directory replace a few.
  ///   - author: the author of the trees' changes. Notices of its changes must not be passed to
  ///     `changed`.
  ///   - claims: gives the names of files that are made exclusively; nil if there are no other
  ///     mounts.
  ///   - log: receives log lines.
  public init(
    _ root: Root, engine: any Engine, service: any ControlService, options: TreeOptions,
    author: Author, claims: (any NameClaims)? = nil, log: @escaping (LogLine) -> Void
  ) {
    (self.service, self.options, self.author, self.log) = (service, options, author, log)
    self.claims = claims
    switch root {
    case .preferences:
      let tree = Tree(
        engine: engine, options: options, author: author, claims: claims, now: .now, log: log)
      (main, mountedTrees) = (tree, [tree])
    case .machinePlaces:
      let tree = controlTree(TreePosition(), service.machineRoot())
      (control, mountedTrees) = (tree, [tree])
    }
  }

  // MARK: - Trees

  /// The tree of a node. A number of no tree gives the first one, which answers ENOENT.
  public subscript(id: NodeID) -> any MountedTree {
    let index = Int(id.tree)
    return index < mountedTrees.count ? mountedTrees[index] : mountedTrees[0]
  }

  /// Returns the tree of a node, which a request changes, or in which it makes, removes or renames
  /// the name. Throws EACCES, and logs it, where that is the control directory, and EROFS where it is
  /// the past.
  public func changing(_ id: NodeID, _ name: [UInt8]) throws(TreeError) -> Tree {
    if let tree = self[id] as? Tree { return tree }
    let subject = String(decoding: name, as: UTF8.self)
    throw (self[id] as? ControlTree)?.refusal(id, subject) ?? .missing
  }

  /// Returns what a listing of the directory is to be made of before `list` is called with the same
  /// arguments; nil where the tree has one, or makes one quickly.
  package func listingNeeded(
    _ id: NodeID, after cookie: UInt64, since version: UInt64?
  ) -> ListingPlan? {
    (self[id] as? Tree)?.listingNeeded(id, after: cookie, since: version)
  }

  /// Takes a listing that was made of what `listingNeeded` has returned.
  package func put(_ listing: Listing, of id: NodeID, version: UInt64) {
    (self[id] as? Tree)?.put(listing, of: id, version: version)
  }

  private func controlTree(_ position: TreePosition, _ root: ControlDirectory) -> ControlTree {
    ControlTree(
      root, service, position, options.style, now: .now,
      open: { [unowned self] path, root throws(TreeError) in try mountedTree(at: path, root) },
      log: log)
  }

  private func add(_ mounted: any MountedTree, at path: [Key]) {
    mountedTrees.append(mounted)
    paths.append(path)
    if isSaving { beginSaving(mounted) }
  }

  /// The control directory; it is made when somebody looks for it.
  func controlDirectory() -> ControlTree {
    if let control { return control }
    let position = TreePosition(
      number: UInt64(mountedTrees.count), path: Self.controlName, .domains)
    let own: [Key: ControlEntry] = [
      "status.json": ControlEntry { [unowned self] () throws(EngineError) in
        .bytes(try statusText(most: .max))
      },
      "apply": ControlEntry(
        .commands { [unowned self] document throws(EngineError) in try apply(document) }),
    ]
    let tree = controlTree(position, service.root(adding: own))
    control = tree
    add(tree, at: [])
    return tree
  }

  /// The tree whose root stands at the path in the control directory. Makes it at the first call;
  /// throws ENOSPC where the mount has too many trees.
  @discardableResult
  func mountedTree(at path: [Key], _ root: ControlRoot) throws(TreeError) -> any MountedTree {
    if let number = numbers[path] { return mountedTrees[number] }
    let name = controlDirectory().fullPath(path)
    guard mountedTrees.count < Self.most else {
      throw .system(.noSpace, "\(name): a mount has at most \(Self.most) directories of this kind")
    }
    var options = options
    options.listsInherited = false
    if let kind = root.kind {
      (options.kind, options.null, options.isGenerated) = (kind, root.null, true)
      options.isWatched = root.isWatched
      if kind == .dictionary { options.style = .json }
    }
    let position = TreePosition(
      number: UInt64(mountedTrees.count), path: name, root.isFlat ? .keys(of: .global) : .domains)
    numbers[path] = mountedTrees.count
    let tree = Tree(
      engine: root.engine(), options: options, position: position, author: author, claims: claims,
      now: .now, log: log)
    add(tree, at: path)
    return tree
  }

  // MARK: - Requests about two names

  /// Carries out FUSE_LOOKUP: finds a name. At the mount point, `.prefs` leads to the control
  /// directory. The look-up counts until `forget`.
  public func lookup(
    _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> LookupResult {
    if parent == .root, main != nil, name.elementsEqual(Self.controlName.utf8) {
      return .found(try controlDirectory().rootEntry())
    }
    return try self[parent].lookup(parent, name, now: now)
  }

  /// Carries out rename(2) and renameat2(2). Throws EXDEV between two trees; mv(1) then copies.
  public func rename(
    _ oldParent: NodeID, _ oldName: [UInt8], to newParent: NodeID, _ newName: [UInt8],
    _ mode: RenameMode, now: Moment
  ) throws(TreeError) {
    try requireSameTree(oldParent, newParent)
    for (parent, name) in [(oldParent, oldName), (newParent, newName)]
    where parent == .root && main != nil && name.elementsEqual(Self.controlName.utf8) {
      let sentence = "\(Self.controlName): the control directory cannot be renamed or replaced"
      let error = TreeError.refused(sentence)
      log(.refusal(sentence, error.errno))
      throw error
    }
    try changing(oldParent, oldName)
      .rename(oldParent, oldName, to: newParent, newName, mode, now: now)
  }

  /// Carries out link(2). Throws EXDEV between two trees.
  public func link(
    _ id: NodeID, _ parent: NodeID, _ name: [UInt8], now: Moment
  ) throws(TreeError) -> Entry {
    try requireSameTree(id, parent)
    return try changing(parent, name).link(id, parent, name, now: now)
  }

  private func requireSameTree(_ one: NodeID, _ other: NodeID) throws(TreeError) {
    guard one.tree == other.tree else {
      throw .system(.crossDevice, "a file cannot be renamed or linked to a different place")
    }
  }

  // MARK: - Changes and time

  /// When `tick` must be called next; nil if not before another call sets it.
  public var nextDeadline: Instant? {
    mountedTrees.count == 1
      ? mountedTrees[0].nextDeadline : mountedTrees.compactMap(\.nextDeadline).min()
  }

  /// Shows a change that was not made through this mount, in every tree.
  public func changed(_ notice: Notice, now: Moment) {
    main?.changed(notice, now: now)
    for mounted in mountedTrees where mounted !== main {
      mounted.changed(notice.changeset, now: now)
    }
  }

  /// Does everything that has become due.
  public func tick(now: Moment) { for mounted in mountedTrees { mounted.tick(now: now) } }

  /// Ends the trees with the mount.
  public func finish(now: Moment) { for mounted in mountedTrees { mounted.finish(now: now) } }

  /// Shows the changes that were made through one tree in the others. Removes and returns the
  /// effects of all trees since the last call. Cost: O(trees), and O(trees) more for each change.
  public func removeEffects() -> [Effect] {
    for mounted in mountedTrees {
      for change in mounted.removeChanges() {
        for other in mountedTrees where other !== mounted { other.changed(change, now: .now) }
      }
    }
    return mountedTrees.flatMap { $0.removeEffects() }
  }

  // MARK: - Status

  /// Returns the text of `status.json`: what the service says, and what the trees hold in memory.
  /// - Parameter most: the most bytes of the text. Where it would have more, long lists in it have
  ///   their first entries only.
  public func status(most: Int = .max) throws(TreeError) -> [UInt8] {
    try asTreeError { () throws(EngineError) in try statusText(most: most) }
  }

  private func statusText(most: Int) throws(EngineError) -> [UInt8] {
    var status = try service.status()
    let trees = mountedTrees.compactMap { $0 as? Tree }
    status["scratch files"] = .array(trees.flatMap(\.scratchPaths).sorted().map { .string($0) })
    status["held texts"] = .array(trees.flatMap(\.heldTexts).sorted().map { .string($0) })
    status["nodes"] = .integer(WideInteger(UInt64(trees.reduce(0) { $0 + $1.table.count })))
    var text = ValueText.canonical(.dictionary(status), style: .json)
    var count = 1024
    while text.count > most, count > 0 {
      count /= 2
      text = ValueText.canonical(.dictionary(Self.shortened(status, to: count)), style: .json)
    }
    return text
  }

  /// Returns the status with that many entries of each list in it at most, and the number of those
  /// that are left out.
  private static func shortened(_ status: ValueDictionary, to count: Int) -> ValueDictionary {
    var (shortened, leftOut) = (status, 0)
    for (name, list) in status {
      switch list {
      case .array(let items) where items.count > count:
        shortened[name] = .array(Array(items.prefix(count)))
        leftOut += items.count - count
      case .dictionary(let items) where items.count > count:
        var first = ValueDictionary()
        for (key, value) in items.prefix(count) { first[key] = value }
        shortened[name] = .dictionary(first)
        leftOut += items.count - count
      default: break
      }
    }
    shortened["left out"] = .integer(WideInteger(UInt64(leftOut)))
    return shortened
  }
}
