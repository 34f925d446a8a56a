import PreferenceModel
import PropertyList
import SystemCalls

/// The file of one key: the text that is being written to it, and what it has shown.
///
/// Threads: the tree's alone.
final class KeyFile {
  /// Identifies the value that an editor began with or committed last, by where it is stored and
  /// when it changed.
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

  /// The node of the file.
  let id: NodeID
  var path: KeyPath
  /// The text that is being written, or was until a moment ago; nil: the file shows its value.
  var editor: TextEditor?
  /// What the next editor must know of the last one.
  var editorMemory = TextEditor.Memory()
  /// nil once the creator has closed the file, and for keys that existed before.
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
  /// The type that a tool has set before it wrote any text: the first text must be of that type.
  var wantedKind: Kind?
  var cachedText: CachedText?

  init(id: NodeID, _ path: KeyPath) { (self.id, self.path) = (id, path) }

  /// Discards the text that is being written, and ends the creation: the file shows its value.
  func endEditing() { (editor, creation) = (nil, nil) }
}
