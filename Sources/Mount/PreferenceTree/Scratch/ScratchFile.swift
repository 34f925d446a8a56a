import PreferenceModel
import PropertyList

/// A file in memory: a tool's temporary or backup file, a symbolic link (emacs' locks), or what a file
/// goes on showing whose name is gone.
///
/// A scratch file is listed while it has its name, and is not given to the engine. rename(2) makes
/// it a key, and so do setting a key's extended attributes on it and, if it `mayStay`, some seconds
/// of quiet. link(2) makes a key of its text. Any other one ends with the mount.
///
/// Threads: the tree's alone.
final class ScratchFile {
  enum Content {
    case file([UInt8])
    case link(target: [UInt8])

    /// The text, or the link's target.
    var bytes: [UInt8] {
      switch self {
      case .file(let bytes), .link(let bytes): bytes
      }
    }
  }

  private let id: NodeID
  var path: ScratchPath { didSet { changes.note(id) } }
  private(set) var content: Content
  /// Permission bits; nil until somebody sets them.
  var mode: UInt32? { didSet { changes.note(id) } }
  /// Whether utimensat(2) has set the modification time since the last write.
  var hasOwnTime = false { didSet { changes.note(id) } }
  /// The type that a tool has set on the file. The key that the file becomes gets this type, if its
  /// text is a value of it.
  var wantedKind: Kind? { didSet { changes.note(id) } }
  /// Whether the file becomes a key when it was left alone for some seconds
  /// (`ScratchName.Verdict.inDoubt`).
  var mayStay = false { didSet { changes.note(id) } }
  /// Whether the mount has claimed the file's name, because the file was made exclusively.
  var isClaimed = false { didSet { changes.note(id) } }
  /// The type of the key whose text the file is a copy of, or was a moment ago. If it becomes a new
  /// key, that has this type too, if its text is a value of it.
  var formerKind: Kind? { didSet { changes.note(id) } }
  /// The key that the file makes when it is written to; nil means none. Only the file of a key has
  /// one whose first text was refused: see `KeyFile.Nameless`.
  var nameless: KeyFile.Nameless? { didSet { changes.note(id) } }
  /// Whether it is what a removed key's file showed: it counts as that, and not as a scratch file.
  let isOfKey: Bool
  /// The part of the text that was not saved yet.
  private(set) var unsaved: Range<Int>?
  private let changes: TreeChanges

  /// - Parameter id: the file's node.
  init(
    _ path: ScratchPath, _ content: Content, mode: UInt32?, isOfKey: Bool = false, id: NodeID,
    changes: TreeChanges
  ) {
    (self.path, self.content, self.mode, self.isOfKey) = (path, content, mode, isOfKey)
    (self.id, self.changes) = (id, changes)
    unsaved = 0..<content.bytes.count
  }

  var isLink: Bool { if case .link = content { true } else { false } }

  /// The text of a file; nil for a link.
  var text: [UInt8]? { if case .file(let text) = content { text } else { nil } }

  /// Bytes of the text, or of the link's target.
  var count: Int { content.bytes.count }

  /// Changes the text of a file in place; does nothing for a link.
  /// - Parameter range: the part of the new text that may differ from the old one.
  func edit(_ range: Range<Int>, _ body: (inout [UInt8]) -> Void) {
    guard case .file(var text) = content else { return }
    content = .file([])
    body(&text)
    content = .file(text)
    unsaved = range.joined(with: unsaved)
    changes.note(id)
  }

  /// Notes that the whole text must be saved.
  func noteWhole() { unsaved = 0..<count }

  /// Notes that the text was saved.
  func noteSaved() { unsaved = nil }
}

/// How much memory scratch files may take.
enum ScratchSpace {
  /// The most bytes that all scratch files may count for; a request that needs more is ENOSPC.
  static let total = 64 << 20
  /// Bytes that each file, link or directory counts for in addition to its text.
  static let overhead = 256
}
