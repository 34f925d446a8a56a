import PreferenceModel
import PropertyList

/// The path of a scratch file, link or directory: the directory that it lies in, and its name.
struct ScratchPath: Hashable {
  /// A directory that scratch files may lie in.
  enum Parent: Hashable {
    /// The root, in which only tools' own names may be.
    case root
    case domain(DomainName)
    /// A scratch directory.
    case directory(NodeID)
  }

  var parent: Parent
  /// The name, which two paths share only if its bytes are the same.
  private let key: Key

  init(parent: Parent, name: String) { (self.parent, key) = (parent, Key(name)) }

  var name: String { key.string }

  /// What log lines call it.
  var subject: String { if case .domain(let domain) = parent { "\(domain) \(name)" } else { name } }
}
