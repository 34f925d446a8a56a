import PropertyList
import SystemCalls

/// What the control directory `.prefs` of a mount shows, beside preferences as the search list
/// resolves them.
///
/// Threads: any. Calls, and those of the closures in entries, wait as long as calls of `Engine`.
/// What also asks the owner waits 5 s for it at most. They throw where the engine or the owner
/// does.
public protocol ControlService: AnyObject, Sendable {
  /// Returns the control directory of a mount of preferences.
  /// - Parameter own: the entries that the mount itself makes.
  func root(adding own: [Key: ControlEntry]) -> ControlDirectory

  /// Returns the root of a mount of the machine's places.
  func machineRoot() -> ControlDirectory

  /// The search list.
  var preferences: any Engine { get }

  /// What `null` stands for in documents that are written to `apply`.
  var absent: Value { get }

  /// What `status.json` says about this process, the store and its owner.
  func status() throws(EngineError) -> ValueDictionary

  /// Gives back the memory that preparations took (`Preparation`).
  func release()
}

/// What a name in the control directory stands for: closures that are called when somebody asks.
public struct ControlEntry {
  /// What there is behind the name.
  public enum Content {
    /// A file that is only read. The closure makes its text; nil if there is nothing to report on.
    case report(() throws(EngineError) -> ControlText?)
    /// A file that is only written to. The closure carries out what one write(2) has written.
    case commands(([UInt8]) throws(EngineError) -> Changeset)
    /// A directory.
    case directory(ControlDirectory)
    /// The root of a tree of preferences.
    case tree(ControlRoot)
  }

  /// What there is behind the name.
  public let content: Content
  /// What must be in memory before the name is looked up, and for a file before it is read; nil
  /// if nothing.
  public let need: ControlNeed?

  /// Creates an entry.
  public init(_ content: Content, need: ControlNeed? = nil) {
    (self.content, self.need) = (content, need)
  }

  /// Creates a report.
  public init(
    need: ControlNeed? = nil, _ text: @escaping () throws(EngineError) -> ControlText?
  ) {
    self.init(.report(text), need: need)
  }
}

/// The text of a report.
public enum ControlText {
  /// These bytes. Their modification time is when a reader first got them.
  case bytes([UInt8])
  /// The text of a value, which was set when the value was.
  case value(Resolution)

  /// The bytes of a text.
  public static func text(_ text: String) -> ControlText { .bytes(Array(text.utf8)) }
}

/// What must be in memory before something in the control directory can be asked.
public enum ControlNeed: Sendable {
  /// The lists of the domain, and of those that it inherits from.
  case lists(DomainName)
  /// What `release` gives back.
  case prepared(Preparation)
}

/// What a thread that may wait must read before something in the control directory can be asked. It
/// is its user's alone.
public struct Preparation: Sendable {
  /// What is read: two of one name read the same.
  public let name: String
  /// Whether it shows the past, which nobody changes.
  public let isPast: Bool
  /// Whether nothing has to be read. It does not wait.
  public let isReady: @Sendable () -> Bool
  /// Reads it. Waits for the owner of the store and for a disk. If that fails, who asks for it gets
  /// the error.
  public let prepare: @Sendable () -> Void

  /// Creates a preparation of that name.
  public init(
    _ name: String, isPast: Bool, isReady: @escaping @Sendable () -> Bool,
    prepare: @escaping @Sendable () -> Void
  ) {
    (self.name, self.isPast, self.isReady, self.prepare) = (name, isPast, isReady, prepare)
  }
}

/// A directory in the control directory. File names are those of keys.
public struct ControlDirectory {
  /// What must be in memory before it is listed; nil means what its own look-up needs.
  public var need: ControlNeed?
  /// The keys that it lists.
  public var names: () throws(EngineError) -> Set<Key>
  /// Returns the key that a name opens, which need not be listed; nil if there is no such file.
  public var find: (Key) throws(EngineError) -> Key?
  /// Whether `find` may return another key than that of the name.
  public var hasAliases = false
  /// When its entries last changed; nil if they have never changed.
  public var modified: () throws(EngineError) -> Timestamp? = { () throws(EngineError) in nil }
  /// Returns what a key that `find` has returned stands for, now or in a predecessor of this
  /// process; nil if it returns no such key. It reads nothing.
  public let entry: (Key) -> ControlEntry?
  /// Whether it always has the same entries.
  public private(set) var isFixed = false

  /// Creates a directory.
  /// - Parameter find: nil if it opens the names that it lists.
  public init(
    need: ControlNeed? = nil, names: @autoclosure @escaping () throws(EngineError) -> Set<Key>,
    find: ((Key) throws(EngineError) -> Key?)? = nil, entry: @escaping (Key) -> ControlEntry?
  ) {
    (self.need, self.names, self.entry) = (need, names, entry)
    if let find {
      self.find = find
    } else {
      self.find = { (key: Key) throws(EngineError) in try names().contains(key) ? key : nil }
    }
  }

  /// Creates a directory that always has these entries.
  public init(_ entries: [Key: ControlEntry]) {
    self.init(names: Set(entries.keys), entry: { entries[$0] })
    isFixed = true
  }
}

/// What a tree in the control directory shows.
public struct ControlRoot {
  /// Returns what it asks for values and changes.
  public let engine: () -> any Engine
  /// Whether its root has the keys of the global domain, and not domains.
  public var isFlat = false
  /// The type of all of its files, whose texts are made anew after each change of what they stand
  /// for; nil if they are keys.
  public var kind: Kind?
  /// What `null` of JSON stands for in such a text; nil if it is refused.
  public var null: Value?
  /// Whether programs watch such texts, which they cannot change: see `TreeOptions.isWatched`.
  public var isWatched = false

  /// Creates the tree of a place.
  public init(isFlat: Bool = false, _ engine: @escaping () -> any Engine) {
    (self.engine, self.isFlat) = (engine, isFlat)
  }

  /// Creates a tree of files of one type, which the global domain of the engine has as keys.
  public init(of kind: Kind, null: Value? = nil, _ engine: @escaping () -> any Engine) {
    (self.engine, self.kind, self.null, isFlat) = (engine, kind, null, true)
  }
}
