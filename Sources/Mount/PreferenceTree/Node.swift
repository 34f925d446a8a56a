import PreferenceModel
import PropertyList
import SystemCalls

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
    /// The file of a key: see `KeyFile`.
    case key(KeyPath)
    /// A tool's temporary file or link, which lives in memory.
    case scratch(ScratchFile)
    /// A file whose name is gone, or belongs to a different file now: a private copy of its text.
    case detached(ScratchFile)
  }

  /// The state that few nodes have.
  private final class Rare {
    var modified = Timestamp(nanoseconds: 0)
    var changed: Timestamp?
    var lostUntil: Instant?
    var keyState: KeyFile.State?
  }

  let id: NodeID
  /// `st_ino`.
  let inode: UInt64
  var content: Content {
    didSet {
      if case .key = content {} else { keyState = nil }
      noteChange()
    }
  }

  /// Look-ups that the kernel has not forgotten yet (C: nlookup).
  var lookups: UInt64 = 0 { didSet { noteChange() } }
  private var rare: Rare?
  private let changes: TreeChanges

  init(
    id: NodeID, inode: UInt64, _ content: Content, modified: Timestamp = Timestamp(nanoseconds: 0),
    changes: TreeChanges
  ) {
    (self.id, self.inode, self.content, self.changes) = (id, inode, content, changes)
    self.modified = modified
    noteChange()
  }

  /// Notes that something has changed that a successor of the driver must know.
  func noteChange() { changes.note(id) }

  /// Changes the rare state. Where there is none, and the change is to what is usual, there is
  /// nothing to change.
  private func change(toUsual isUsual: Bool, _ body: (Rare) -> Void) {
    if rare == nil, !isUsual { rare = Rare() }
    if let rare { body(rare) }
  }

  /// The modification time of a directory, scratch file or detached file. A key has its own.
  var modified: Timestamp {
    get { rare?.modified ?? Timestamp(nanoseconds: 0) }
    set {
      change(toUsual: newValue.nanoseconds == 0) { $0.modified = newValue }
      noteChange()
    }
  }

  /// When chmod(2), chown(2), truncate(2), utimensat(2), setxattr(2) or rename(2) last touched the
  /// node; nil means never.
  var changed: Timestamp? {
    get { rare?.changed }
    set {
      change(toUsual: newValue == nil) { $0.changed = newValue }
      noteChange()
    }
  }

  /// Until when writes that go on with the file's text are refused, because that was under way when
  /// a predecessor of this process ended; nil if none was lost.
  var lostUntil: Instant? {
    get { rare?.lostUntil }
    set {
      change(toUsual: newValue == nil) { $0.lostUntil = newValue }
      noteChange()
    }
  }

  /// What is known of a key's file beside its name; nil means nothing, as of most files.
  var keyState: KeyFile.State? {
    get { rare?.keyState }
    set { change(toUsual: newValue == nil) { $0.keyState = newValue } }
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
  var keyFile: KeyFile? { if case .key(let path) = content { KeyFile(self, path) } else { nil } }

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
    case .key: keyFile?.editor?.deadline != nil
    case .scratch: true
    case .directory(let directory): directory is ScratchDirectory
    case .detached: false
    }
  }

  /// What log lines call the node.
  var subject: String {
    switch content {
    case .directory(let directory): directory.subject
    case .key(let path): "\(path)"
    case .detached: "a removed file"
    case .scratch(let file): file.path.subject
    }
  }
}
