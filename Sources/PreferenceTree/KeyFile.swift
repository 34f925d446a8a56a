import PreferenceModel
import PropertyList
import SystemCalls

/// The file of one key: the text that is being written to it, and what it has shown.
///
/// Threads: the tree's alone.
final class KeyFile {
  /// Identifies the value that an editor began with or committed last, by where it is stored and
  /// when it changed.
  struct EditedVersion: Equatable {
    var location: Location
    var modified: Timestamp
  }

  /// What is known while the creator of a new key has its file open.
  struct Creation: Equatable {
    var handle: HandleID
    /// The type of the key that had this name a moment ago: it is tried before others.
    var preferredKind: Kind?
  }

  /// A value's text, and which value it was made from.
  struct CachedText {
    var modified: Timestamp
    var location: Location
    var text: [UInt8]
  }

  /// The node of the file.
  let id: NodeID
  var path: KeyPath { didSet { changes.note(id) } }
  /// The text that is being written, or was until a moment ago; nil: the file shows its value.
  var editor: TextEditor? { didSet { changes.note(id) } }
  /// What the next editor must know of the last one.
  var editorMemory = TextEditor.Memory() { didSet { changes.note(id) } }
  /// nil once the creator has closed the file, and for keys that existed before.
  var creation: Creation? { didSet { changes.note(id) } }
  /// Whether the value that the editor began with was the domain's own, not inherited.
  var editsOwnValue = false
  /// What the editor's text was computed from; nil before the first editor.
  var origin: EditedVersion?
  /// Where the last append ended, if the kernel may send another request of the same write(2).
  var appended: AppendedPart? { didSet { changes.note(id) } }
  /// The version of the last change that was made through the file.
  var committedVersion: UInt64 = 0
  /// When the text that waits for a decision was last changed; nil: the engine has what the file
  /// shows.
  var uncommittedSince: Timestamp?
  /// The value that the kernel was last told of. A file whose key is removed elsewhere goes on
  /// showing it.
  var lastShown: StoredValue?
  /// The type that a tool has set before it wrote any text: the first text must be of that type.
  var wantedKind: Kind? { didSet { changes.note(id) } }
  /// The text that was made last, if making it again would cost something.
  var cachedText: CachedText?
  /// Whether the editor is one that a predecessor of this process has left: the engine may have its
  /// text already, and takes it only if the value has not changed.
  var isInherited = false
  /// Whether the text of the editor was saved, up to what it calls unsaved.
  var hasSavedDraft = false
  private let changes: ChangedNodes

  /// Notes that the editor's text was saved. This is no change of the file.
  func noteDraftSaved() {
    hasSavedDraft = true
    changes.withoutNotes { editor?.noteSaved() }
  }

  init(id: NodeID, _ path: KeyPath, changes: ChangedNodes) {
    (self.id, self.path, self.changes) = (id, path, changes)
  }
}
