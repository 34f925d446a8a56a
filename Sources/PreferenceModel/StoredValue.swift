import PropertyList
import SystemCalls

/// What is kept with a key beside its value.
public struct Metadata: Equatable, Sendable {
  /// The bytes last written for the value; nil where they are its canonical text.
  public var text: [UInt8]?
  /// When the value, or its text, last changed, or the time that utimensat(2) gave it since.
  public var modified: Timestamp
  /// The permission bits that chmod(2) gave it; nil for the usual ones. They stay when the value
  /// changes.
  public var mode: UInt32?

  /// All of it.
  public init(text: [UInt8]?, modified: Timestamp, mode: UInt32? = nil) {
    self.text = text
    self.modified = modified
    self.mode = mode
  }
}

/// A value in a place, with what is kept beside it.
public struct StoredValue: Equatable, Sendable {
  /// The value.
  public var value: Value
  /// What is kept beside it.
  public var metadata: Metadata

  /// A value and what is kept beside it.
  public init(_ value: Value, _ metadata: Metadata) {
    self.value = value
    self.metadata = metadata
  }

  /// The bytes last written for the value, where they are not its canonical text.
  public var text: [UInt8]? { metadata.text }

  /// When it last changed.
  public var modified: Timestamp { metadata.modified }
}

/// What chmod(2) and utimensat(2) change about a key, without changing its value.
public struct Description: Hashable, Sendable {
  /// Permission bits; nil: as they are.
  public var mode: UInt32?
  /// The modification time; nil: as it is.
  public var modified: Timestamp?

  /// A change of these.
  public init(mode: UInt32? = nil, modified: Timestamp? = nil) {
    self.mode = mode
    self.modified = modified
  }

  /// Whether it says nothing.
  public var isEmpty: Bool { mode == nil && modified == nil }
}

extension ValueDictionary {
  /// The values of the entries, without what is kept beside them.
  package init(_ entries: [Key: StoredValue]) {
    self.init(entries.lazy.map { ($0.key, $0.value.value) })
  }
}
