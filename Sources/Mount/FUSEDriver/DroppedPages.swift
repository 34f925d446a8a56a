import PreferenceTree

/// The files whose pages the kernel has dropped, and that nobody has read or written through this
/// mount since. When such a file changes again, there is nothing to drop, and other mounts need not
/// wait for it: dropping takes a turn of the invalidator's thread. Also: how far the invalidator
/// is.
///
/// Threads: the loop's alone.
struct DroppedPages {
  private var files: Set<NodeID> = []
  /// The files whose pages are being dropped, and the last change for which they are.
  private var dropping: [NodeID: UInt64] = [:]
  /// The files whose pages are to be dropped once they are not locked, and the last change for
  /// which they are.
  private var postponed: [NodeID: UInt64] = [:]

  /// The most files that are kept; more of them change at a time only where whole domains do.
  private static let most = 256

  /// Whether pages are still being dropped.
  var isDropping: Bool { !dropping.isEmpty }

  /// Whether pages of one of the files are still being dropped.
  func isDropping(anyOf files: Set<NodeID>) -> Bool { files.contains { dropping[$0] != nil } }

  /// Whether pages of a file wait for a lock.
  var hasPostponed: Bool { !postponed.isEmpty }

  /// Notes that pages of files, which may be locked, are to be dropped later because of a change.
  /// - Parameter version: 0 if it is a change of this mount, which does not settle it.
  mutating func postpone(_ files: Set<NodeID>, _ version: UInt64) {
    for file in files { postponed[file] = max(version, postponed[file] ?? 0) }
  }

  /// Removes and returns the files whose pages wait for no lock any more, and the last change for
  /// which they are to be dropped.
  mutating func removePostponed(except locked: Set<NodeID>) -> (files: Set<NodeID>, version: UInt64)
  {
    let free = postponed.filter { !locked.contains($0.key) }
    for file in free.keys { postponed[file] = nil }
    return (Set(free.keys), free.values.max() ?? 0)
  }

  /// Notes that pages of files are to be dropped because of a change.
  mutating func noteDrop(of files: Set<NodeID>, _ version: UInt64) {
    for file in files where version > 0 { dropping[file] = max(version, dropping[file] ?? 0) }
  }

  /// Notes that the pages of changes are dropped.
  mutating func noteDone(through version: UInt64) {
    dropping = dropping.filter { $0.value > version }
  }

  /// Notes that the kernel drops a file's pages.
  /// - Returns: whether it may have some.
  mutating func noteDropped(_ file: NodeID) -> Bool {
    if files.contains(file) { return false }
    if files.count >= Self.most { files.removeAll() }
    files.insert(file)
    return true
  }

  /// Notes a request after which the kernel may have pages of the file.
  mutating func noteRequest(_ header: RequestHeader) {
    if header.operation == .read || header.operation == .write, !files.isEmpty {
      files.remove(header.node)
    }
  }
}
