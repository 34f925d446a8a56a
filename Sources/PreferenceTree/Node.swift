import PreferenceModel
import PropertyList
import SystemCalls

/// A domain and a key in it, which name a file.
struct KeyPath: Hashable, Sendable {
  var domain: DomainName
  var key: Key
}

extension KeyPath: CustomStringConvertible {
  /// For log lines, e.g. "com.example.editor TabWidth".
  var description: String { "\(domain) \(key)" }
}

/// One node: a file or directory that the kernel knows by a number (an inode of the mount).
///
/// A node lives from its first look-up to the last `forget`, or longer if it
/// `mustStay`. It may change its kind: a scratch file that is renamed over a key becomes the key's
/// file, and a key's file that loses its name keeps a private copy of its text.
///
/// Threads: the tree's alone.
final class Node {
  /// What a node is, with the state of that kind.
  enum Content {
    /// The root, a domain, or a tool's directory.
    case directory(any Directory)
    /// The file of a key.
    case key(KeyFile)
    /// A tool's temporary file or link, which lives in memory.
    case scratch(ScratchFile)
    /// A file whose name is gone, or belongs to a different file now: a private copy of its text.
    case detached(ScratchFile)
  }

  /// The times that few nodes have.
  private final class Times {
    var modified = Timestamp(nanoseconds: 0)
    var changed: Timestamp?
  }

  let id: NodeID
  /// `st_ino`.
  let inode: UInt64
  var content: Content { didSet { changes.note(id) } }

  /// Look-ups that the kernel has not forgotten yet (C: nlookup).
  var lookups: UInt64 = 0 { didSet { changes.note(id) } }
  private var times: Times?
  private let changes: ChangedNodes

  init(
    id: NodeID, inode: UInt64, _ content: Content, modified: Timestamp = Timestamp(nanoseconds: 0),
    changes: ChangedNodes
  ) {
    (self.id, self.inode, self.content, self.changes) = (id, inode, content, changes)
    self.modified = modified
    changes.note(id)
  }

  /// Returns the times for a change of them; nil where there are none, and the change is to what is
  /// usual.
  private func times(isUsual: Bool) -> Times? {
    if times == nil, !isUsual { times = Times() }
    return times
  }

  /// The modification time of a directory, scratch file or detached file. A key has its own.
  var modified: Timestamp {
    get { times?.modified ?? Timestamp(nanoseconds: 0) }
    set {
      times(isUsual: newValue == Timestamp(nanoseconds: 0))?.modified = newValue
      changes.note(id)
    }
  }

  /// When chmod(2), chown(2), truncate(2), utimensat(2), setxattr(2) or rename(2) last touched the
  /// node; nil: never.
  var changed: Timestamp? {
    get { times?.changed }
    set {
      times(isUsual: newValue == nil)?.changed = newValue
      changes.note(id)
    }
  }
}

extension Range<Int> {
  /// The smallest range that has both; this one where the other is nil.
  func joined(with other: Range<Int>?) -> Range<Int> {
    guard let other else { return self }
    return Swift.min(lowerBound, other.lowerBound)..<Swift.max(upperBound, other.upperBound)
  }
}

extension Node {
  /// The key's file; nil for other kinds.
  var keyFile: KeyFile? { if case .key(let file) = content { file } else { nil } }

  /// The scratch file or link; nil for other kinds, scratch directories among them.
  var scratch: ScratchFile? { if case .scratch(let file) = content { file } else { nil } }

  /// Whether the file has lost its name.
  var isDetached: Bool { if case .detached = content { true } else { false } }

  /// The text in memory of a scratch or detached file; nil for other kinds.
  var inMemory: ScratchFile? {
    switch content {
    case .scratch(let file), .detached(let file): file
    case .directory, .key: nil
    }
  }

  /// The directory; nil for other kinds.
  var directory: (any Directory)? {
    if case .directory(let directory) = content { directory } else { nil }
  }

  /// The file type that `st_mode` has.
  var type: FileType {
    switch content {
    case .directory: .directory
    case .key: .file
    case .scratch(let file), .detached(let file): file.isLink ? .link : .file
    }
  }

  /// Whether the node must stay although the kernel has forgotten it: it has text that waits for a
  /// decision, or is a scratch file or directory whose name is still there.
  var mustStay: Bool {
    switch content {
    case .key(let file): file.editor?.deadline != nil
    case .scratch: true
    case .directory(let directory): directory is ScratchDirectory
    case .detached: false
    }
  }

  /// What log lines call the node.
  var subject: String {
    switch content {
    case .directory(let directory): directory.subject
    case .key(let file): "\(file.path)"
    case .detached: "a removed file"
    case .scratch(let file): file.path.subject
    }
  }
}
