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
    case detached([UInt8])
  }

  /// The state that few nodes have.
  private final class Rare {
    var modified = Timestamp(nanoseconds: 0)
    var changed: Timestamp?
    var unsaved: Range<Int>?
    var detachedMode: UInt32?
    var countsAsScratch = false
  }

  let id: NodeID
  /// `st_ino`.
  let inode: UInt64
  var content: Content {
    didSet {
      unsaved = wholeText
      changes.note(id)
    }
  }

  /// Look-ups that the kernel has not forgotten yet (C: nlookup).
  var lookups: UInt64 = 0 { didSet { changes.note(id) } }
  private var rare: Rare?
  private let changes: ChangedNodes

  init(
    id: NodeID, inode: UInt64, _ content: Content, modified: Timestamp = Timestamp(nanoseconds: 0),
    changes: ChangedNodes
  ) {
    (self.id, self.inode, self.content, self.changes) = (id, inode, content, changes)
    self.modified = modified
    unsaved = wholeText
    changes.note(id)
  }

  /// Returns the rare state for a change of it; nil where there is none, and the change is to what
  /// is usual.
  private func rare(isUsual: Bool) -> Rare? {
    if rare == nil, !isUsual { rare = Rare() }
    return rare
  }

  /// The modification time of a directory, scratch file or detached file. A key has its own.
  var modified: Timestamp {
    get { rare?.modified ?? Timestamp(nanoseconds: 0) }
    set {
      rare(isUsual: newValue == Timestamp(nanoseconds: 0))?.modified = newValue
      changes.note(id)
    }
  }

  /// When chmod(2), chown(2), truncate(2), utimensat(2), setxattr(2) or rename(2) last touched the
  /// node; nil: never.
  var changed: Timestamp? {
    get { rare?.changed }
    set {
      rare(isUsual: newValue == nil)?.changed = newValue
      changes.note(id)
    }
  }

  /// The permission bits of a detached file; nil: they were never set.
  var detachedMode: UInt32? {
    get { rare?.detachedMode }
    set {
      rare(isUsual: newValue == nil)?.detachedMode = newValue
      changes.note(id)
    }
  }

  /// Whether a detached file was a scratch file, and its text counts as that of one.
  var countsAsScratch: Bool {
    get { rare?.countsAsScratch ?? false }
    set { rare(isUsual: !newValue)?.countsAsScratch = newValue }
  }

  /// The part of a scratch or detached file's text that was not saved yet.
  private(set) var unsaved: Range<Int>? {
    get { rare?.unsaved }
    set { rare(isUsual: newValue == nil)?.unsaved = newValue }
  }

  /// Notes that a part of a scratch file's text was written.
  func note(written range: Range<Int>) {
    unsaved = range.joined(with: unsaved)
    changes.note(id)
  }

  /// Changes the text of a detached file in place; does nothing for other kinds.
  /// - Parameter range: the part of the new text that may differ from the old one.
  func editDetached(_ range: Range<Int>, _ body: (inout [UInt8]) -> Void) {
    guard case .detached(var text) = content else { return }
    let unsaved = unsaved
    content = .detached([])
    body(&text)
    content = .detached(text)
    self.unsaved = range.joined(with: unsaved)
  }

  /// Notes that the whole text must be saved.
  func noteWhole() { unsaved = wholeText }

  /// Notes that the text was saved.
  func noteSaved() { unsaved = nil }

  private var wholeText: Range<Int>? {
    switch content {
    case .directory, .key: nil
    case .scratch(let file): 0..<file.count
    case .detached(let text): 0..<text.count
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

  /// Bytes of a detached file's text; 0 for other kinds.
  var detachedCount: Int { if case .detached(let text) = content { text.count } else { 0 } }

  /// The directory; nil for other kinds.
  var directory: (any Directory)? {
    if case .directory(let directory) = content { directory } else { nil }
  }

  /// The file type that `st_mode` has.
  var type: FileType {
    switch content {
    case .directory: .directory
    case .key, .detached: .file
    case .scratch(let file): file.isLink ? .link : .file
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
