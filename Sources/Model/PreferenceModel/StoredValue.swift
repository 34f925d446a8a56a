import PropertyList
import SystemCalls

/// What is kept with a key beside its value.
public struct Metadata: Equatable, Sendable {
  /// What few keys have, in an object of its own, so that the others take less memory.
  private final class Rare: Equatable, Sendable {
    let mode: UInt32?
    let setter: Setter?
    let changed: Timestamp?

    init(_ mode: UInt32?, _ setter: Setter?, _ changed: Timestamp?) {
      (self.mode, self.setter, self.changed) = (mode, setter, changed)
    }

    static func == (left: Rare, right: Rare) -> Bool {
      left.mode == right.mode && left.setter == right.setter && left.changed == right.changed
    }
  }

  /// The bytes last written for the value; nil where they are its canonical text.
  public var text: [UInt8]?
  /// When the value or its text last changed, or the time that utimensat(2) set since.
  public var modified: Timestamp
  private var rare: Rare?

  /// Creates the metadata of a key.
  public init(
    text: [UInt8]?, modified: Timestamp, mode: UInt32? = nil, setter: Setter? = nil,
    changed: Timestamp? = nil
  ) {
    (self.text, self.modified) = (text, modified)
    set(mode, setter, changed)
  }

  /// The permission bits that chmod(2) gave the key; nil for the usual ones. They stay when the
  /// value changes.
  public var mode: UInt32? {
    get { rare?.mode }
    set { set(newValue, setter, changed) }
  }

  /// What sets the value, beside the list of its place; nil where the list has it. A value that has
  /// a setter cannot be changed.
  public var setter: Setter? {
    get { rare?.setter }
    set { set(mode, newValue, changed) }
  }

  /// When the value, or anything that is kept beside it, last changed, where that is not `modified`
  /// because somebody has set that time or the mode; else nil.
  public var changed: Timestamp? {
    get { rare?.changed }
    set { set(mode, setter, newValue) }
  }

  /// When the value, or anything that is kept beside it, last changed. It never goes back.
  public var lastChanged: Timestamp { changed ?? modified }

  /// Whether a fragment or a vendor's list sets the value, which then overrides the list.
  public var isOfFile: Bool {
    if case .file? = rare?.setter { true } else { false }
  }

  private mutating func set(_ mode: UInt32?, _ setter: Setter?, _ changed: Timestamp?) {
    let isUsual = mode == nil && setter == nil && changed == nil
    rare = isUsual ? nil : Rare(mode, setter, changed)
  }

  /// The metadata of a value that is set in the place of this one.
  /// - Parameter time: when it was set; a clock may have been set back since the last change.
  package func replaced(text: [UInt8]?, at time: Timestamp) -> Metadata {
    let changed = lastChanged > time ? lastChanged : nil
    return Metadata(text: text, modified: time, mode: mode, changed: changed)
  }
}

/// What sets a value beside the list of its place.
public enum Setter: Hashable, Sendable, CustomStringConvertible {
  /// A configuration profile, by its identifier. The list overrides it.
  case profile(String)
  /// A fragment or a vendor's list, by its path. It overrides the list.
  case file(String)
  /// A list or a fragment of a group that the user is in, by its path. The user's own managed list
  /// overrides it.
  case group(String)

  /// What error texts call it.
  public var description: String {
    switch self {
    case .profile(let identifier): "the profile \(identifier)"
    case .file(let path): "the file \(path)"
    case .group(let path): "the list \(path) of a group"
    }
  }
}

/// A value in a place, and what is kept beside it.
public struct StoredValue: Sendable {
  private enum Content: Sendable {
    case whole(Value)
    /// A long string, or data, that is being written in pieces.
    case spliced(Kind, ChunkedBytes, isBare: Bool)
  }

  private let content: Content
  /// What is kept beside the value. The text of a value that splices made is not in it: use `text`.
  public let metadata: Metadata

  /// Creates a stored value.
  public init(_ value: Value, _ metadata: Metadata) {
    self.init(.whole(value), metadata)
  }

  private init(_ content: Content, _ metadata: Metadata) {
    (self.content, self.metadata) = (content, metadata)
  }

  /// The value. Cost: O(1); O(its bytes) where splices made it.
  public var value: Value {
    switch content {
    case .whole(let value): value
    case .spliced(.data, let bytes, _): .data(bytes.array)
    case .spliced(_, let bytes, _):
      .string(String(decoding: bytes.array, as: UTF8.self))
    }
  }

  /// The kind of the value. Cost: O(1).
  public var kind: Kind {
    switch content {
    case .whole(let value): value.kind
    case .spliced(let kind, _, _): kind
    }
  }

  /// How many bytes a string or data has; nil for other kinds. Cost: O(1).
  public var byteCount: Int? {
    switch content {
    case .whole(.string(let text)): text.utf8.count
    case .whole(.data(let data)): data.count
    case .whole: nil
    case .spliced(_, let bytes, _): bytes.count
    }
  }

  /// The bytes last written for the value; nil where they are its canonical text. Cost: as of
  /// `value`.
  public var text: [UInt8]? {
    guard case .spliced(.string, let bytes, isBare: true) = content else { return metadata.text }
    return bytes.array
  }

  /// How many bytes the text of a string or data has; nil for other kinds. Cost: O(1).
  public var textCount: Int? {
    switch content {
    case .whole(.string(let string)): metadata.text?.count ?? string.utf8.count + 1
    case .whole(.data(let data)): metadata.text?.count ?? data.count
    case .whole: nil
    case .spliced(_, let bytes, let isBare): isBare ? bytes.count : bytes.count + 1
    }
  }

  /// The same value with other metadata.
  package func with(_ metadata: Metadata) -> StoredValue { StoredValue(content, metadata) }

  /// The same value in the form that it has without splices, as a rewrite of the list needs it.
  var whole: StoredValue {
    guard case .spliced = content else { return self }
    var kept = metadata
    kept.text = text
    return StoredValue(value, kept)
  }

  /// The value, where it can be had without a copy of its bytes; nil where splices made it.
  public var wholeValue: Value? {
    if case .whole(let value) = content { value } else { nil }
  }

  /// When the value, or its text, last changed; or the time that utimensat(2) set.
  public var modified: Timestamp { metadata.modified }
}

/// A value, and the place and domain that it was found in.
public struct LocatedValue: Sendable {
  /// The value, and what is kept beside it.
  public let stored: StoredValue
  /// Where it is stored.
  public let location: Location

  /// Creates a value of a location.
  public init(_ stored: StoredValue, _ location: Location) {
    (self.stored, self.location) = (stored, location)
  }
}

extension StoredValue: Equatable {
  public static func == (left: StoredValue, right: StoredValue) -> Bool {
    left.whole.metadata == right.whole.metadata && left.value == right.value
  }
}

// MARK: - Splices

extension StoredValue {
  /// Whether the splice can be applied: the value is a string or data with the length that the
  /// splice was computed from, and a string stays UTF-8 without NUL. Cost: O(the splice).
  public func accepts(_ splice: Splice) -> Bool {
    guard byteCount == splice.base else { return false }
    if kind == .data { return true }
    guard let known = String(utf8: splice.bytes[...]), !known.utf8.contains(0)
    else {
      return false
    }
    // Both ends must lie between two characters; what is behind the end of the new value goes away.
    let edges = splice.end < splice.count ? [splice.offset, splice.end] : [splice.offset]
    return edges.allSatisfy { edge in edge >= splice.base || byte(at: edge) & 0xC0 != 0x80 }
  }

  /// Whether the splice would change nothing. Cost: O(the splice).
  func alreadyHas(_ splice: Splice) -> Bool {
    guard splice.count == splice.base, kind == .data || isBare == splice.isBare else {
      return false
    }
    return splice.bytes.indices.allSatisfy { byte(at: splice.offset + $0) == splice.bytes[$0] }
  }

  private var isBare: Bool {
    if case .spliced(_, _, let isBare) = content { isBare } else { metadata.text != nil }
  }

  /// The value after the splice, which it must accept.
  package func applying(
    _ splice: Splice, time: Timestamp = Timestamp(nanoseconds: 0)
  ) -> StoredValue {
    let kept = metadata.replaced(text: nil, at: time)
    let bytes =
      if case .spliced(_, let bytes, _) = content { bytes } else { ChunkedBytes(wholeBytes) }
    return StoredValue(
      .spliced(kind, bytes.applying(splice), isBare: splice.isBare || kind == .data), kept)
  }

  /// The byte at an offset of a string or data.
  private func byte(at offset: Int) -> UInt8 {
    switch content {
    case .spliced(_, let bytes, _): bytes[offset]
    case .whole(.data(let data)): data[offset]
    case .whole(.string(let text)): text.utf8[text.utf8.index(text.startIndex, offsetBy: offset)]
    case .whole: 0
    }
  }

  /// The bytes of a string or of data that splices have not made.
  private var wholeBytes: [UInt8] {
    switch content {
    case .whole(.data(let data)): data
    case .whole(.string(let text)): Array(text.utf8)
    case .whole, .spliced: []
    }
  }
}

/// A change that chmod(2) or utimensat(2) makes to a key, without changing its value.
public struct Description: Hashable, Sendable {
  /// The permission bits; nil leaves them as they are.
  public var mode: UInt32?
  /// The modification time; nil leaves it as it is.
  public var modified: Timestamp?
  /// When the change was made. Only a place knows it, from the time of the changeset; it is neither
  /// sent nor recorded.
  var time: Timestamp?

  /// Creates a change of these.
  public init(mode: UInt32? = nil, modified: Timestamp? = nil) {
    self.mode = mode
    self.modified = modified
  }

  /// Whether it changes nothing.
  public var isEmpty: Bool { mode == nil && modified == nil }
}

extension ValueDictionary {
  /// The values of the entries, without what is kept beside them.
  package init(_ entries: [Key: StoredValue]) {
    self.init(entries.lazy.map { ($0.key, $0.value.value) })
  }
}
