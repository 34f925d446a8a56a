import PreferenceTree

/// The files whose pages the kernel has dropped, and that nobody has read or written through this
/// mount since. When such a file changes again, there is nothing to drop, and other mounts need not
/// wait for it: dropping takes a turn of the notifier's thread. Also: how far the notifier is.
///
/// Threads: the loop's alone.
struct DroppedPages {
  private var files: Set<NodeID> = []
  /// The last change after which pages were to be dropped, and the last for which that was done.
  private var (last, done): (UInt64, UInt64) = (0, 0)

  /// The most files that are kept; more of them change at a time only where whole domains do.
  private static let most = 256

  /// Whether pages are still being dropped.
  var isDropping: Bool { last > done }

  /// Notes that pages are to be dropped because of a change.
  mutating func noteDrop(_ version: UInt64) { last = max(last, version) }

  /// Notes that the pages of changes are dropped.
  mutating func noteDone(through version: UInt64) { done = max(done, version) }

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
