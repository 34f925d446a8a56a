import PreferenceModel
import PropertyList
import SystemCalls

/// A key of a location.
public struct RecordedKey: Hashable, Sendable {
  /// Where the key is stored.
  public let location: Location
  /// The key.
  public let key: Key

  /// The key of that location.
  public init(_ key: Key, at location: Location) { (self.location, self.key) = (location, key) }
}

/// A change of preferences, as the history keeps it: with what was there before, so that it can be
/// taken back without reading any other record.
public struct HistoryRecord: Equatable, Sendable {
  /// A key that the change has set or removed.
  public struct Item: Equatable, Sendable {
    /// Where the key is stored.
    public let location: Location
    /// The key.
    public let key: Key
    /// What the location had for the key before the change.
    public let before: RecordedValue
    /// What it has since.
    public let after: RecordedValue

    /// Which key of which location it is.
    public var recordedKey: RecordedKey { RecordedKey(key, at: location) }

    /// Creates an item of a change.
    public init(
      _ location: Location, _ key: Key, from before: RecordedValue, to after: RecordedValue
    ) {
      (self.location, self.key, self.before, self.after) = (location, key, before, after)
    }
  }

  /// The number of the change, from 1. It grows by one from change to change. Of a record that
  /// stands for several changes, that of the last one.
  public var number: UInt64 = 0
  /// The number of the first change that the record stands for.
  public var first: UInt64 = 0
  /// How many changes the record stands for: one program's of one key, which followed each other
  /// closely. `before` is what the first one has found, `after` what the last one has left.
  public var count: Int
  /// When the change took effect.
  public internal(set) var time: Timestamp
  /// Who made it.
  public let source: ChangeSource
  /// The keys that it has changed.
  public let items: [Item]

  /// Creates the record of a change that has no number yet.
  public init(_ items: [Item], time: Timestamp, source: ChangeSource, count: Int = 1) {
    (self.items, self.time, self.source, self.count) = (items, time, source, count)
  }

  /// The record that stands for this one and a later one of the same key.
  func merged(with later: HistoryRecord) -> HistoryRecord {
    let items = zip(items, later.items).map { old, new in
      Item(old.location, old.key, from: old.before, to: new.after)
    }
    var record = HistoryRecord(
      items, time: later.time, source: later.source,
      count: min(count, 1 << 32) + min(later.count, 1 << 32))
    (record.number, record.first) = (later.number, first)
    return record
  }
}

/// A value as the history keeps it.
public enum RecordedValue: Equatable, Sendable {
  /// There was no value.
  case none
  /// The value, as a binary list, and the text that was written for it; nil means the canonical
  /// one.
  case list([UInt8], text: [UInt8]?)
  /// A container of which members with a secret's name are not kept, as a binary list with
  /// `Secret.mark` in their places.
  case parts([UInt8])
  /// A value of more than 64 KiB, of which the history keeps the size alone, in bytes.
  case large(size: Int)
  /// A value that is not kept: its key has a secret's name, or it is not known any more.
  case notKept

  /// Bytes above which the history keeps the size of a value alone.
  public static let largest = 1 << 16

  /// What the history keeps of a value. Cost: O(its bytes).
  public init(_ stored: StoredValue) {
    if let count = stored.byteCount, count > Self.largest {
      self = .large(size: count)
      return
    }
    let list = Document.binary(stored.value)
    let text = stored.text
    let isLarge = max(list.count, text?.count ?? 0) > Self.largest + 64
    self = isLarge ? .large(size: list.count) : .list(list, text: text)
  }

  /// The value; nil where there was none, or it is not kept as a whole. Cost: O(its bytes).
  public var value: Value? {
    guard case .list(let bytes, _) = self else { return nil }
    return try? Document.read(bytes).value
  }

  /// The value, with a text in the place of the members that are not kept; nil where there was none,
  /// or nothing of it is kept. Cost: O(its bytes).
  package var shown: Value? {
    guard case .parts(let bytes) = self else { return value }
    return (try? Document.read(bytes).value)?.withoutMarks
  }

  /// The text that stands for a value of which parts are not kept: no text of a value begins so.
  fileprivate static let partsText: [UInt8] = [0]

  /// Whether the value can be restored: it is known, or known not to have been there.
  public var isKnown: Bool {
    switch self {
    case .none, .list: true
    case .parts, .large, .notKept: false
    }
  }
}

// MARK: - Bytes

extension ByteWriter {
  mutating func append(_ item: HistoryRecord.Item) {
    append(item.location)
    append(item.key.string)
    append(item.before)
    append(item.after)
  }

  private mutating func append(_ value: RecordedValue) {
    switch value {
    case .none: append(0 as UInt8)
    case .list(let bytes, let text):
      append(1 as UInt8)
      append(text == nil ? 0 : 1 as UInt8)
      if let text { append(counted: text) }
      append(counted: bytes)
    case .parts(let bytes):
      append(1 as UInt8)
      append(1 as UInt8)
      append(counted: RecordedValue.partsText)
      append(counted: bytes)
    case .large(let size):
      append(2 as UInt8)
      append(UInt64(clamping: size))
    case .notKept: append(3 as UInt8)
    }
  }
}

extension ByteReader {
  mutating func historyItem() throws -> HistoryRecord.Item {
    HistoryRecord.Item(try location(), try key(), from: try recorded(), to: try recorded())
  }

  private mutating func recorded() throws -> RecordedValue {
    switch try number(UInt8.self) {
    case 0: return .none
    case 1:
      let text = try number(UInt8.self) == 1 ? Array(try counted()) : nil
      let list = Array(try counted())
      return text == RecordedValue.partsText ? .parts(list) : .list(list, text: text)
    case 2: return .large(size: Int(clamping: try number(UInt64.self)))
    case 3: return .notKept
    default: throw Unknown()
    }
  }
}
