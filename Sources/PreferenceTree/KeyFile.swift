import PreferenceModel
import PropertyList
import SystemCalls

/// The file of one key, as the kernel knows it: the text that is being written, and what was shown.
///
/// Threads: the tree's alone.
final class KeyFile {
  /// The value that an editor began with, or last committed.
  struct Origin {
    var location: Location
    var modified: Timestamp
  }

  /// A new key whose creator has not closed it yet.
  struct Creation {
    var handle: HandleID
    /// The type of the key that had this name a moment ago.
    var preferred: Kind?
  }

  /// A value's text and the value that it was made from.
  struct CachedText {
    var modified: Timestamp
    var location: Location
    var text: [UInt8]
  }

  /// The node whose kind this is.
  let id: NodeID
  var path: KeyPath
  /// Text that is being written, or was until a moment ago.
  var editor: TextEditor?
  /// What outlives the editor.
  var editorMemory = TextEditor.Memory()
  var creation: Creation?
  /// Whether the value that the editor began with was the domain's own, not inherited.
  var editsOwnValue = false
  /// What the editor's text was computed from; nil before the first editor.
  var origin: Origin?
  /// Where the last append ended, if the kernel may send another part of it.
  var appended: AppendedPart?
  /// The version of the last change that was made through the file.
  var committedVersion: UInt64 = 0
  /// When text was written that the engine does not have; nil: the engine has what the file shows.
  var textChanged: Timestamp?
  /// The value that the kernel was last told of. A file whose key is removed elsewhere goes on
  /// showing it.
  var lastShown: StoredValue?
  /// The type that a tool has asked for before it wrote any text: the first text is of that type.
  var wantedKind: Kind?
  var cachedText: CachedText?

  init(id: NodeID, _ path: KeyPath) { (self.id, self.path) = (id, path) }

  /// Throws away text that is being written, and what would go on from it.
  func endEditing() { (editor, creation) = (nil, nil) }
}
