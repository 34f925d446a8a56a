import PreferenceModel
import PropertyList
import SystemCalls

/// A tool's temporary or backup file, directory or link: it lives in memory, is listed while it is
/// there, never reaches the engine, and ends with the mount. It becomes a key by rename or link.
struct Scratch {
  enum Content {
    case file([UInt8])
    case directory
    case link([UInt8])
  }

  var content: Content
  /// Permission bits; nil until somebody sets them.
  var mode: UInt32?
  var modified: Timestamp
  /// Whether somebody set the time.
  var hasOwnTime = false
  /// The type that a tool has asked for: the key that the file becomes is of that type, if its text allows it.
  var wantedKind: Kind?
  /// The key that it was a moment ago: moved away, and not made again yet. The engine still has
  /// it; when the time is over the move was meant.
  var movedFrom: KeyPath?

  /// The text of a file; nil for others.
  var text: [UInt8]? {
    if case .file(let text) = content { text } else { nil }
  }

  /// Bytes that it counts for.
  var size: Int {
    switch content {
    case .file(let bytes), .link(let bytes): bytes.count + 256
    case .directory: 256
    }
  }

  /// Bytes of all scratch files together; more are ENOSPC.
  static let largestTotal = 64 << 20
}

/// Where a scratch file lies: in a domain, or in a scratch directory.
struct ScratchPath: Hashable {
  enum Parent: Hashable {
    /// Only directories, whose names are those of tools' temporary ones.
    case root
    case domain(DomainName)
    case directory(NodeID)
  }

  var parent: Parent
  var name: String
}
