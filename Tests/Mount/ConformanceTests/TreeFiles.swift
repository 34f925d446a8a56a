import Foundation
import PreferenceEngine
import PreferenceModel
import PreferenceSearch
import PreferenceStore
import PreferenceTree
import StoreAccess
import Support
import SystemCalls

/// File operations on the bare tree, without a kernel. It does what the kernel would do: it looks
/// up the names of a path, makes O_TRUNC a change of the size, and gives an O_APPEND write the size
/// as its offset. Time is a number, so that nothing waits.
final class TreeFiles: TestFiles {
  private struct OpenFile {
    var node: NodeID
    var handle: HandleID
    var flags: Int32
  }

  let places: LocalPlaces
  let engine: SearchEngine
  private(set) var tree: Tree
  /// The saved state of the tree; nil if the tree is not replaced.
  private var records: [[UInt8]]?
  private var instant = SystemCalls.Instant(nanoseconds: 0)
  /// Deadlines come when the cases say so; the engine takes the time of day.
  private var now: Moment { Moment(instant: instant, time: .now) }
  private var files: [Int: OpenFile] = [:]
  private var lastFile = 0

  /// - Parameter isReplaced: whether each request is carried out by a successor of the tree that
  ///   carried out the one before, if a successor shows the same.
  init(
    _ sandbox: Sandbox, options: TreeOptions = TreeOptions(), isReplaced: Bool = false
  ) throws {
    let layout = StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: sandbox.state + "/tree", hostIdentifier: "HOST", userName: "user")
    let store = try Store(layout) { _ in }
    places = try LocalPlaces(store: store, writeback: 3600) { _ in }
    engine = SearchEngine(places: places)
    tree = Tree(engine: engine, options: options, author: Author(number: 1), now: .now) { _ in }
    if isReplaced { records = [tree.saved()] }
  }

  /// Replaces the tree by a successor, which knows only what was saved of it, unless something is
  /// under way that is not saved.
  private func replaceTree() throws {
    guard tree.hasSavedAll else { return }
    // A case that fills the memory of scratch files would take minutes.
    guard var records, records.joined().count < 1 << 20 else { return }
    records.append(tree.saved())
    tree = try Tree(successorOf: tree, records, now: now)
    self.records = [tree.saved()]
  }

  func finish() { places.close() }

  private func checked<Result>(_ body: () throws(TreeError) -> Result) throws -> Result {
    try replaceTree()
    do { return try body() } catch { throw Refusal(error.errno.rawValue) }
  }

  private func find(_ parent: NodeID, _ name: String) throws -> NodeID {
    try checked { () throws(TreeError) in
      switch try tree.lookup(parent, Array(name.utf8), now: now) {
      case .found(let entry): entry.node
      case .missing: throw .missing
      }
    }
  }

  private func find(_ path: String) throws -> NodeID {
    try path.split(separator: "/").reduce(NodeID.root) { try find($0, String($1)) }
  }

  private func split(_ path: String) throws -> (parent: NodeID, name: [UInt8]) {
    let parts = path.split(separator: "/").map(String.init)
    return (try find(parts.dropLast().joined(separator: "/")), Array((parts.last ?? "").utf8))
  }

  func open(_ path: String, _ flags: Int32) throws -> Int {
    var file: OpenFile
    do {
      file = OpenFile(node: try find(path), handle: .none, flags: flags)
      if flags & O_CREAT != 0, flags & O_EXCL != 0 { throw Refusal(EEXIST) }
      if flags & O_TRUNC != 0 { try setSize(file, 0) }
    } catch let refusal as Refusal where refusal.number == ENOENT && flags & O_CREAT != 0 {
      let (parent, name) = try split(path)
      let (entry, handle) = try checked { () throws(TreeError) in
        var how = CreationFlags()
        how.exclusively = flags & O_EXCL != 0
        how.readsToo = flags & O_ACCMODE == O_RDWR
        return try tree.create(parent, name, how, now: now)
      }
      file = OpenFile(node: entry.node, handle: handle, flags: flags)
    }
    lastFile += 1
    files[lastFile] = file
    return lastFile
  }

  private func file(_ number: Int) throws -> OpenFile {
    guard let file = files[number] else { throw Refusal(EBADF) }
    return file
  }

  private func setSize(_ file: OpenFile, _ size: Int) throws {
    var change = AttributeChange()
    change.size = size
    _ = try checked { () throws(TreeError) in
      try tree.setAttributes(file.node, change, handle: file.handle, now: now)
    }
  }

  func write(_ number: Int, _ text: String, at offset: Int) throws {
    let file = try file(number)
    let isAppend = file.flags & O_APPEND != 0
    try checked { () throws(TreeError) in
      let position = isAppend ? try tree.attributes(file.node).size : offset
      var write = WriteRequest(Array(text.utf8), at: position)
      (write.appending, write.handle) = (isAppend, file.handle)
      try tree.write(file.node, write, now: now)
    }
  }

  func truncate(_ number: Int, to size: Int) throws { try setSize(try file(number), size) }

  func synchronize(_ number: Int) throws {
    let node = try file(number).node
    try checked { () throws(TreeError) in try tree.prepareSynchronize(node, now: now) }
    try places.makeDurable()
  }

  func read(_ number: Int) throws -> String {
    let node = try file(number).node
    return try checked { () throws(TreeError) in
      String(decoding: try tree.read(node, at: 0, count: 1 << 20), as: UTF8.self)
    }
  }

  func close(_ number: Int) {
    guard let file = files.removeValue(forKey: number) else { return }
    if file.handle != .none { tree.release(file.node, file.handle, now: now) }
  }

  func rename(_ old: String, _ new: String, flags: UInt32) throws {
    let (oldParent, oldName) = try split(old)
    let (newParent, newName) = try split(new)
    let mode: RenameMode = flags & 2 != 0 ? .exchange : flags & 1 != 0 ? .keep : .replace
    try checked { () throws(TreeError) in
      try tree.rename(oldParent, oldName, to: newParent, newName, mode, now: now)
    }
  }

  func unlink(_ path: String) throws {
    let (parent, name) = try split(path)
    try checked { () throws(TreeError) in try tree.unlink(parent, name, now: now) }
  }

  func makeDirectory(_ path: String) throws {
    let (parent, name) = try split(path)
    _ = try checked { () throws(TreeError) in try tree.makeDirectory(parent, name, now: now) }
  }

  func removeDirectory(_ path: String) throws {
    let (parent, name) = try split(path)
    try checked { () throws(TreeError) in try tree.removeDirectory(parent, name, now: now) }
  }

  func names(_ path: String) throws -> [String] {
    let node = try find(path)
    return try checked { () throws(TreeError) in
      try tree.list(node, after: 0, since: nil).map(\.name).sorted()
    }
  }

  func status(_ path: String) throws -> TestStatus {
    let node = try find(path)
    return try checked { () throws(TreeError) in
      let attributes = try tree.attributes(node)
      return TestStatus(
        inode: attributes.inode, size: attributes.size, mode: attributes.mode,
        modified: attributes.modified.nanoseconds)
    }
  }

  func attribute(_ path: String, _ name: String) throws -> String {
    let node = try find(path)
    return try checked { () throws(TreeError) in
      String(decoding: try tree.extendedAttribute(node, name), as: UTF8.self)
    }
  }

  func setAttribute(_ path: String, _ name: String, _ value: String) throws {
    let node = try find(path)
    try checked { () throws(TreeError) in
      try tree.setExtendedAttribute(node, name, Array(value.utf8), now: now)
    }
  }

  func link(_ old: String, _ new: String) throws {
    let node = try find(old)
    let (parent, name) = try split(new)
    _ = try checked { () throws(TreeError) in try tree.link(node, parent, name, now: now) }
  }

  func makeLink(_ path: String, to target: String) throws {
    let (parent, name) = try split(path)
    _ = try checked { () throws(TreeError) in
      try tree.makeLink(parent, name, to: Array(target.utf8), now: now)
    }
  }

  func readLink(_ path: String) throws -> String {
    let node = try find(path)
    return try checked { () throws(TreeError) in
      String(decoding: try tree.readLink(node), as: UTF8.self)
    }
  }

  private func change(_ path: String, _ change: AttributeChange) throws {
    let node = try find(path)
    _ = try checked { () throws(TreeError) in try tree.setAttributes(node, change, now: now) }
  }

  func changeMode(_ path: String, _ mode: UInt32) throws {
    var wish = AttributeChange()
    wish.mode = mode
    try change(path, wish)
  }

  func setTime(_ path: String, _ nanoseconds: Int64) throws {
    var wish = AttributeChange()
    wish.modified = Timestamp(nanoseconds: nanoseconds)
    try change(path, wish)
  }

  func pass(milliseconds: Int) {
    instant = instant.advanced(milliseconds: Int64(milliseconds))
    tree.tick(now: now)
    _ = tree.removeEffects()
  }
}
