import PreferenceModel
import PropertyList
import SystemCalls

/// The file of one key: the text that is being written to it, and what it has shown. A view of the
/// file's node, which has all of that.
///
/// The fields of `Saved` and `Unsaved` are read and set as those of the file. Most files are what a
/// new one is, and take no memory for them. Once the node is no key's file any more, they are as in
/// a new file, and setting them does nothing.
///
/// Threads: the tree's alone.
@dynamicMemberLookup
struct KeyFile {
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
    /// What the engine gets with the first text; nil if it has the key since the file was made.
    var awaited: Awaited?
  }

  /// A key that no place has yet, because a schema decides what it may be, and may refuse an empty
  /// text. The file is there and shows an empty text; the engine gets the key with the first text
  /// that is a value.
  struct Awaited: Equatable {
    /// Where the key will be.
    var location: Location
    /// When the file was made.
    var since: Timestamp
    /// The permission bits that the key gets; nil means the usual ones.
    var mode: UInt32?
    /// Whether the file was made with O_EXCL: its creator does not overwrite a key that somebody
    /// else has made since.
    var isExclusive: Bool
  }

  /// What a file without a name must know to make its key after all: the key was awaited, and its
  /// first text was refused or did not come.
  struct Nameless: Equatable {
    var path: KeyPath
    var creation: Creation
    var memory: TextEditor.Memory
  }

  /// A value's text, and which value it was made from.
  struct CachedText {
    var modified: Timestamp
    var location: Location
    var text: [UInt8]
  }

  /// What a successor of the driver must know of a file that is written to, or whether it may go on
  /// with the text: see `TreeSaver`.
  struct Saved {
    /// The text that is being written, or was until a moment ago; nil if the file shows its value.
    var editor: TextEditor?
    /// What the next editor must know of the last one.
    var editorMemory = TextEditor.Memory()
    /// nil once the creator has closed the file, and for keys that existed before.
    var creation: Creation?
    /// Where the last append ended, if the kernel may send another request of the same write(2).
    var appended: AppendedPart?
    /// The type that a tool has set before it wrote any text: the first text must be of that type.
    var wantedKind: Kind?
  }

  /// What is not saved.
  struct Unsaved {
    /// The value that the kernel was last told of, where a notice of its removal would not have it:
    /// the value is inherited, or a text that is generated. A file whose key is removed elsewhere
    /// goes on showing it.
    var lastShown: StoredValue?
    /// Whether the value that the editor began with was the domain's own, not inherited.
    var editsOwnValue = false
    /// What the editor's text was computed from; nil before the first editor, and of an awaited key.
    var origin: EditedVersion?
    /// The version of the last change that was made through the file.
    var committedVersion: UInt64 = 0
    /// When the text that waits for a decision was last changed; nil if the engine has what the
    /// file shows.
    var uncommittedSince: Timestamp?
    /// The text that was made last, if making it again would cost something.
    var cachedText: CachedText?
  }

  /// The state that few files have: those that are written to, or whose text is costly to make.
  final class State {
    fileprivate var saved = Saved()
    fileprivate var unsaved = Unsaved()
  }

  let node: Node
  /// The key when this view was made.
  private let found: KeyPath

  /// - Parameter path: the key that the node is the file of.
  init(_ node: Node, _ path: KeyPath) { (self.node, found) = (node, path) }

  var id: NodeID { node.id }

  /// The key; where the node is no key's file any more, the one when this view was made.
  var path: KeyPath {
    get { if case .key(let path) = node.content { path } else { found } }
    nonmutating set { node.content = .key(newValue) }
  }

  subscript<Field: Usual>(dynamicMember field: WritableKeyPath<Saved, Field>) -> Field {
    @inline(__always) get { node.keyState?.saved[keyPath: field] ?? Field.usual }
    @inline(__always) nonmutating set {
      state(isUsual: newValue.isUsual)?.saved[keyPath: field] = newValue
      node.noteChange()
    }
  }

  subscript<Field: Usual>(dynamicMember field: WritableKeyPath<Unsaved, Field>) -> Field {
    @inline(__always) get { node.keyState?.unsaved[keyPath: field] ?? Field.usual }
    @inline(__always) nonmutating set {
      state(isUsual: newValue.isUsual)?.unsaved[keyPath: field] = newValue
    }
  }

  /// Returns the state for a change of it; nil where there is none, and the change is to what is
  /// usual.
  private func state(isUsual: Bool) -> State? {
    if node.keyState == nil, !isUsual, case .key = node.content { node.keyState = State() }
    return node.keyState
  }

  /// Whether a write at offset 0 begins with an empty text: the file was truncated, or its key is
  /// awaited.
  var beginsEmpty: Bool { self.editorMemory.startsEmpty || self.creation?.awaited != nil }

  /// Throws away what is being written, because somebody else has changed the key. What the editor
  /// held of a write(2) is kept for the next part of that. A truncation ends with the value that it
  /// was of, except one a moment ago, whose program is about to write.
  /// - Parameter isChanged: whether the key has another value now; else its list was only read anew.
  func yield(isChanged: Bool) {
    let editor = self.editor
    if let editor, let part = self.appended { self.appended = part.losing(editor) }
    if isChanged, editor?.isTruncated != true { self.editorMemory.startsEmpty = false }
    (self.editor, self.wantedKind) = (nil, nil)
  }

  /// Throws the editor away, whose text is complete, and the memory of what only it has needed.
  func dropEditor() {
    self.editor = nil
    guard self.editorMemory == TextEditor.Memory(), self.creation == nil, self.appended == nil,
      self.wantedKind == nil, self.cachedText == nil, self.lastShown == nil
    else { return }
    node.keyState = nil
  }
}

/// The type of a field with a value that most files have, so that it needs no memory.
protocol Usual {
  static var usual: Self { get }
  var isUsual: Bool { get }
}

extension Usual where Self: Equatable {
  var isUsual: Bool { self == Self.usual }
}

extension Optional: Usual {
  static var usual: Self { nil }
  var isUsual: Bool { if case .none = self { true } else { false } }
}

extension Bool: Usual { static var usual: Bool { false } }
extension UInt64: Usual { static var usual: UInt64 { 0 } }
extension TextEditor.Memory: Usual { static var usual: Self { Self() } }
