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
public struct StoredValue: Sendable {
  private enum Content: Sendable {
    case whole(Value)
    /// A long string, or data, that is being written in pieces.
    case spliced(Kind, SharedBytes, isBare: Bool)
  }

  private let content: Content
  /// What is kept beside it, but for the text of a value that was made by splices.
  public let metadata: Metadata

  /// A value and what is kept beside it.
  public init(_ value: Value, _ metadata: Metadata) {
    self.init(.whole(value), metadata)
  }

  private init(_ content: Content, _ metadata: Metadata) {
    (self.content, self.metadata) = (content, metadata)
  }

  /// The value. Cost: O(1), but O(its bytes) where splices made it.
  public var value: Value {
    switch content {
    case .whole(let value): value
    case .spliced(.data, let bytes, _): .data(bytes.array)
    case .spliced(_, let bytes, _):
      .string(bytes.withBytes { String(decoding: $0, as: UTF8.self) })
    }
  }

  /// The kind of the value. Cost: O(1).
  public var kind: Kind {
    switch content {
    case .whole(let value): value.kind
    case .spliced(let kind, _, _): kind
    }
  }

  /// How many bytes a string or data has; nil for others. Cost: O(1).
  public var byteCount: Int? {
    switch content {
    case .whole(.string(let text)): text.utf8.count
    case .whole(.data(let data)): data.count
    case .whole: nil
    case .spliced(_, let bytes, _): bytes.count
    }
  }

  /// The bytes last written for the value, where they are not its canonical text. Cost: as of `value`.
  public var text: [UInt8]? {
    guard case .spliced(.string, let bytes, isBare: true) = content else { return metadata.text }
    return bytes.array
  }

  /// How many bytes a string's or data's text has; nil for others. Cost: O(1).
  public var textCount: Int? {
    switch content {
    case .whole(.string(let string)): metadata.text?.count ?? string.utf8.count + 1
    case .whole(.data(let data)): metadata.text?.count ?? data.count
    case .whole: nil
    case .spliced(_, let bytes, let isBare): isBare ? bytes.count : bytes.count + 1
    }
  }

  /// The same value with something else beside it.
  func with(_ metadata: Metadata) -> StoredValue { StoredValue(content, metadata) }

  /// As it was made without splices: what a list's rewrite begins with.
  var whole: StoredValue {
    guard case .spliced = content else { return self }
    var kept = metadata
    kept.text = text
    return StoredValue(value, kept)
  }

  /// The value where it is at hand without a copy of its bytes.
  public var wholeValue: Value? {
    if case .whole(let value) = content { value } else { nil }
  }

  /// When it last changed.
  public var modified: Timestamp { metadata.modified }
}

extension StoredValue: Equatable {
  public static func == (left: StoredValue, right: StoredValue) -> Bool {
    left.whole.metadata == right.whole.metadata && left.value == right.value
  }
}

// MARK: - Splices

extension StoredValue {
  /// Whether the splice can be made: this is the value that it was computed from, as far as its length and
  /// kind tell, and a string stays UTF-8 without NUL. Cost: O(the splice).
  public func accepts(_ splice: Splice) -> Bool {
    guard byteCount == splice.base else { return false }
    if kind == .data { return true }
    guard let known = String(validating: splice.bytes, as: UTF8.self), !known.utf8.contains(0)
    else {
      return false
    }
    // Both ends must lie between two characters.
    return [splice.offset, splice.end].allSatisfy { edge in
      edge >= splice.base || byte(at: edge) & 0xC0 != 0x80
    }
  }

  /// Whether the splice would leave every byte as it is. Cost: O(the splice).
  func alreadyHas(_ splice: Splice) -> Bool {
    guard splice.count == splice.base else { return false }
    return withBytes { bytes in
      bytes.dropFirst(splice.offset).prefix(splice.bytes.count).elementsEqual(splice.bytes)
    } && (kind == .data || isBare == splice.isBare)
  }

  private var isBare: Bool {
    if case .spliced(_, _, let isBare) = content { isBare } else { metadata.text != nil }
  }

  /// The value with the splice, which it must accept.
  func applying(_ splice: Splice, time: Timestamp) -> StoredValue {
    let kept = Metadata(text: nil, modified: time, mode: metadata.mode)
    let bytes: SharedBytes =
      if case .spliced(_, let bytes, _) = content { bytes } else {
        SharedBytes(withBytes { Array($0) })
      }
    return StoredValue(
      .spliced(kind, bytes.applying(splice), isBare: splice.isBare || kind == .data), kept)
  }

  private func byte(at index: Int) -> UInt8 { withBytes { $0[$0.startIndex + index] } }

  /// The bytes of a string or of data; of others none.
  private func withBytes<Result>(_ body: (ArraySlice<UInt8>) -> Result) -> Result {
    switch content {
    case .spliced(_, let bytes, _): return bytes.withBytes(body)
    case .whole(.data(let data)): return body(data[...])
    case .whole(.string(let text)):
      var text = text
      return text.withUTF8 { body(ArraySlice($0)) }
    case .whole: return body([])
    }
  }
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
