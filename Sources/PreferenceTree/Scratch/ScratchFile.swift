import PreferenceModel
import PropertyList

/// A tool's temporary or backup file, or a link (emacs' locks). It lives in memory, is listed while
/// it is there, never reaches the engine, and ends with the mount. It becomes a key by rename(2),
/// by link(2), or when a tool sets a key's extended attributes on it.
///
/// Threads: the tree's alone.
final class ScratchFile {
  enum Content {
    case file([UInt8])
    case link(target: [UInt8])
  }

  var path: ScratchPath
  fileprivate(set) var content: Content
  /// Permission bits; nil until somebody sets them.
  var mode: UInt32?
  /// Whether utimensat(2) set the modification time since the last write.
  var hasOwnTime = false
  /// The type that a tool has asked for: the key that the file becomes gets it if its text allows
  /// that.
  var wantedKind: Kind?

  init(_ path: ScratchPath, _ content: Content, mode: UInt32?) {
    (self.path, self.content, self.mode) = (path, content, mode)
  }

  var isLink: Bool { if case .link = content { true } else { false } }

  /// The text of a file; nil for a link.
  var text: [UInt8]? { if case .file(let text) = content { text } else { nil } }

  /// Bytes of the text, or of the link's target.
  var count: Int {
    switch content {
    case .file(let bytes), .link(let bytes): bytes.count
    }
  }

  /// Changes the text in place.
  func edit(_ body: (inout [UInt8]) -> Void) {
    guard case .file(var text) = content else { return }
    content = .file([])
    body(&text)
    content = .file(text)
  }
}

/// How much memory scratch files may take.
enum ScratchSpace {
  /// Bytes of all scratch files together; more are ENOSPC.
  static let total = 64 << 20
  /// Bytes that a file, link or directory counts for beside its text.
  static let overhead = 256
}

/// Where a scratch file or directory lies, and its name there.
struct ScratchPath: Hashable {
  /// A directory that scratch files may lie in.
  enum Parent: Hashable {
    /// Only directories lie here, under names that tools give to their temporary ones.
    case root
    case domain(DomainName)
    /// A scratch directory.
    case directory(NodeID)
  }

  var parent: Parent
  var name: String

  /// What log lines call it.
  var subject: String { if case .domain(let domain) = parent { "\(domain) \(name)" } else { name } }
}
