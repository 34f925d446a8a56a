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

  /// The state that few files have: those that are written to, or whose text is costly to make.
  private final class Rare {
    var lastShown: StoredValue?
    var editor: TextEditor?
    var editorMemory = TextEditor.Memory()
    var creation: Creation?
    var editsOwnValue = false
    var origin: EditedVersion?
    var appended: AppendedPart?
    var committedVersion: UInt64 = 0
    var uncommittedSince: Timestamp?
    var wantedKind: Kind?
    var cachedText: CachedText?
    var isInherited = false
    var hasSavedDraft = false
  }

  /// The node of the file.
  let id: NodeID
  var path: KeyPath { didSet { changes.note(id) } }
  private var rare: Rare?
  private let changes: ChangedNodes

  init(id: NodeID, _ path: KeyPath, changes: ChangedNodes) {
    (self.id, self.path, self.changes) = (id, path, changes)
  }

  /// Returns the rare state for a change of it; nil where there is none, and the change is to what
  /// is usual.
  private func rare(isUsual: Bool) -> Rare? {
    if rare == nil, !isUsual { rare = Rare() }
    return rare
  }

  /// Notes that the editor's text was saved.
  func noteDraftSaved() {
    hasSavedDraft = true
    editor?.noteSaved()
  }
}

extension KeyFile {
  /// Whether there is memory for more than the file's name.
  var hasRareState: Bool { rare != nil }

  /// Throws away what is being written, because somebody else has changed the key. What the editor
  /// held of a write(2) is kept for the next part of that; but nothing of what a predecessor of this
  /// process has left, because that may have committed it. A truncation ends with the value that it
  /// was of, except one a moment ago, whose program is about to write.
  /// - Parameter isChanged: whether the key has another value now; else its list was only read anew.
  func yield(isChanged: Bool) {
    if let editor, !isInherited, let part = appended { appended = part.losing(editor) }
    if isChanged, editor?.isTruncated != true { editorMemory.startsEmpty = false }
    (editor, wantedKind) = (nil, nil)
  }

  /// Throws the editor away, whose text is complete, and the memory of what only it has needed.
  func dropEditor() {
    editor = nil
    guard let rare, rare.editorMemory == TextEditor.Memory(), rare.creation == nil,
      rare.appended == nil, rare.wantedKind == nil, rare.cachedText == nil, rare.lastShown == nil
    else { return }
    self.rare = nil
  }

  /// The value that the kernel was last told of, where a notice of its removal would not have it:
  /// the value is inherited, or a text that is generated. A file whose key is removed elsewhere
  /// goes on showing it.
  var lastShown: StoredValue? {
    get { rare?.lastShown }
    set {
      rare(isUsual: newValue == nil)?.lastShown = newValue
    }
  }

  /// The text that is being written, or was until a moment ago; nil: the file shows its value.
  var editor: TextEditor? {
    get { rare?.editor }
    set {
      rare(isUsual: newValue == nil)?.editor = newValue
      changes.note(id)
    }
  }

  /// What the next editor must know of the last one.
  var editorMemory: TextEditor.Memory {
    get { rare?.editorMemory ?? TextEditor.Memory() }
    set {
      rare(isUsual: newValue == TextEditor.Memory())?.editorMemory = newValue
      changes.note(id)
    }
  }

  /// nil once the creator has closed the file, and for keys that existed before.
  var creation: Creation? {
    get { rare?.creation }
    set {
      rare(isUsual: newValue == nil)?.creation = newValue
      changes.note(id)
    }
  }

  /// Whether the value that the editor began with was the domain's own, not inherited.
  var editsOwnValue: Bool {
    get { rare?.editsOwnValue ?? false }
    set {
      rare(isUsual: !newValue)?.editsOwnValue = newValue
    }
  }

  /// What the editor's text was computed from; nil before the first editor, and where the value was
  /// read under a former name of the key.
  var origin: EditedVersion? {
    get { rare?.origin }
    set {
      rare(isUsual: newValue == nil)?.origin = newValue
    }
  }

  /// Where the last append ended, if the kernel may send another request of the same write(2).
  var appended: AppendedPart? {
    get { rare?.appended }
    set {
      rare(isUsual: newValue == nil)?.appended = newValue
      changes.note(id)
    }
  }

  /// The version of the last change that was made through the file.
  var committedVersion: UInt64 {
    get { rare?.committedVersion ?? 0 }
    set {
      rare(isUsual: newValue == 0)?.committedVersion = newValue
    }
  }

  /// When the text that waits for a decision was last changed; nil: the engine has what the file
  /// shows.
  var uncommittedSince: Timestamp? {
    get { rare?.uncommittedSince }
    set {
      rare(isUsual: newValue == nil)?.uncommittedSince = newValue
    }
  }

  /// The type that a tool has set before it wrote any text: the first text must be of that type.
  var wantedKind: Kind? {
    get { rare?.wantedKind }
    set {
      rare(isUsual: newValue == nil)?.wantedKind = newValue
      changes.note(id)
    }
  }

  /// The text that was made last, if making it again would cost something.
  var cachedText: CachedText? {
    get { rare?.cachedText }
    set {
      rare(isUsual: newValue == nil)?.cachedText = newValue
    }
  }

  /// Whether the editor is one that a predecessor of this process has left: the engine may have its
  /// text already, and takes it only if the value has not changed.
  var isInherited: Bool {
    get { rare?.isInherited ?? false }
    set {
      rare(isUsual: !newValue)?.isInherited = newValue
    }
  }

  /// Whether the text of the editor was saved, up to what it calls unsaved.
  var hasSavedDraft: Bool {
    get { rare?.hasSavedDraft ?? false }
    set {
      rare(isUsual: !newValue)?.hasSavedDraft = newValue
    }
  }
}
