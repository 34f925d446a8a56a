import PreferenceModel
import SystemCalls

/// What files had when the kernel was told their size last, for the page that follows.
///
/// A read(2) whose file is not cached asks for its size, and then for a page. Where the text changes
/// in between, the kernel would show as much of the new text as the old one had bytes, or fill it up
/// with zeros: a text that never was. So the page shows the text that has the size, and is dropped
/// after it (`ValueReader.pageText`). Where the kernel drops the page before the read(2) has it, the
/// read(2) asks for the page once more, and not for the size. A text of the same size needs none of
/// this; longer texts than a page come in several requests, and may be mixed.
///
/// States: a few files, each for some milliseconds: a mapping and sendfile(2) ask for pages alone,
/// and must see changes. A file is forgotten with a page of what it shows now, and all are with a
/// change that is made through the tree, of which the kernel knows the new size. A file that has
/// lost its place to another one shows the text that it has when its page is asked for.
///
/// Threads: the tree's alone.
struct ToldValues {
  /// Bytes of the longest text that is shown once more.
  static let most = 4096

  /// What a file shows.
  enum Shown {
    case value(Resolution)
    /// What an editor has of the text, or nothing after a truncation.
    case text([UInt8])
  }

  private struct Told {
    let node: NodeID
    let shown: Shown
    let end: Instant
  }

  /// Milliseconds for which a size counts.
  var patience: Int64 = 5

  private var told: [Told?] = Array(repeating: nil, count: 8)

  private func place(_ node: NodeID) -> Int { Int(truncatingIfNeeded: node.rawValue) & 7 }

  /// Notes that the kernel is told the size of what the node shows; nil if that is not kept.
  mutating func note(_ node: NodeID, _ shown: Shown?) {
    let end = Instant.now.advanced(milliseconds: patience)
    told[place(node)] = shown.map { Told(node: node, shown: $0, end: end) }
  }

  /// Returns what has the size that the kernel knows of the node; nil if that is not known.
  subscript(node: NodeID) -> Shown? {
    guard let known = told[place(node)], known.node == node, Instant.now < known.end else {
      return nil
    }
    return known.shown
  }

  /// Forgets all files.
  mutating func removeAll() { for place in told.indices { told[place] = nil } }
}
