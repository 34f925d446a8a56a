import PreferenceModel
import PropertyList
import SystemCalls

/// One kind of directory: what its names mean, and what may be made, renamed and removed in it.
///
/// The tree passes look-ups, listings, mkdir, rmdir, unlink and rename to the directory of the
/// request. Files and links are made in the same way in all directories of files, so the tree does
/// that itself. A directory refuses what its kind does not have, with the errno that users of such
/// a directory expect.
///
/// Threads: the tree's alone.
protocol Directory: AnyObject {
  /// What log lines call the directory.
  var subject: String { get }
  /// Permission bits.
  var mode: UInt32 { get }
  /// The last listing of the directory.
  var listing: ListingState { get set }
  /// What a request about the name (without a name: about the directory itself) looks up: a key of
  /// a domain, or the domain. Returns nil if it looks nothing up.
  func listsNeeded(for name: [UInt8]?, _ tree: Tree) -> (domain: DomainName, key: Key?)?

  /// What a listing shows, beside the scratch files of `scratchParent`.
  var names: ListingPlan.Names { get }
  /// The directory, as part of the paths of the scratch files, links and directories in it.
  var scratchParent: ScratchPath.Parent { get }
  /// Finds a name, and counts the look-up.
  func lookup(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> LookupResult
  /// mkdir(2).
  func makeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> Entry
  /// rmdir(2).
  func removeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError)
  /// unlink(2).
  func unlink(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError)
  /// renameat2(2).
  func rename(
    _ name: String, to directory: any Directory, _ newName: String, _ mode: RenameMode,
    _ tree: Tree, _ now: Moment
  ) throws(TreeError)
}

extension Directory {
  var mode: UInt32 { 0o700 }

  func listsNeeded(for name: [UInt8]?, _ tree: Tree) -> (domain: DomainName, key: Key?)? { nil }
}

// MARK: - Directories of files

/// A directory that keys or scratch files lie in. At the root those are a few tools' files.
protocol FileDirectory: Directory {
  /// The key that the name means; nil if it means none. It need not exist, unless the name is one by
  /// pattern (`NameCodec.patternName`).
  func keyPath(_ name: String, _ engine: any Engine) throws(TreeError) -> KeyPath?
}

extension FileDirectory {
  func keyPath(_ name: String, _ engine: any Engine) throws(TreeError) -> KeyPath? { nil }

  func makeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) -> Entry {
    try tree.entry(tree.keys.makeScratchDirectory(in: self, name, now: now))
  }

  func removeDirectory(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) {
    switch try tree.keys.find(name, in: self, now: now) {
    case .nothing: throw .missing
    case .key: throw .notDirectory
    case .scratch(let node): try tree.keys.removeScratchDirectory(node, now: now)
    }
  }

  func unlink(_ name: String, _ tree: Tree, _ now: Moment) throws(TreeError) {
    if tree.transactor.made != nil {
      return try tree.keys.followUnlink(name, in: self, now: now)
    }
    switch try tree.keys.find(name, in: self, now: now) {
    case .nothing: throw .missing
    case .key(let path, let resolution):
      try tree.keys.unlink(path, Departures.Former(path, resolution), now: now)
    case .scratch(let node): try tree.keys.unlinkScratch(node, now: now)
    }
  }

  func rename(
    _ name: String, to directory: any Directory, _ newName: String, _ mode: RenameMode,
    _ tree: Tree, _ now: Moment
  ) throws(TreeError) {
    guard let directory = directory as? any FileDirectory, !(directory is RootDirectory) else {
      throw tree.log.refused(
        .refused("\(subject) \(name): a file cannot be moved to the root, which has only domains"))
    }
    if tree.transactor.made != nil {
      return try tree.keys.followRename(name, in: self, to: directory, newName, mode, now: now)
    }
    switch try tree.keys.find(name, in: self, now: now) {
    case .nothing: throw .missing
    case .scratch(let node):
      try tree.keys.renameScratch(node, to: directory, newName, mode, now: now)
    case .key(let path, _): try tree.keys.renameKey(path, to: directory, newName, mode, now: now)
    }
  }
}

extension Tree {
  /// Finds a scratch file, link or directory, and counts the look-up; nil if there is none.
  func lookupScratch(_ path: ScratchPath) throws(TreeError) -> LookupResult? {
    try table[path].map { node throws(TreeError) in .found(try entry(node)) }
  }
}
