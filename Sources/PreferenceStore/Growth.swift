import PreferenceModel
import PropertyList
import SystemCalls

/// A string or data that got bytes at its end: what the journal keeps of a long text that is
/// written in pieces, so that n bytes in any number of pieces cost the journal n bytes.
struct Growth: Equatable, Sendable {
  var location: Location
  var key: Key
  var time: Timestamp
  /// The bytes that the value had before; one of another length is not the one that grew.
  var base: Int
  var suffix: [UInt8]
  /// Whether the text is the value's bytes, without the newline of a canonical text.
  var isBare: Bool

  /// Shorter values are recorded whole.
  private static let smallest = 4096

  /// nil where the edit is no growth of the old value, or its text is of neither form.
  init?(_ item: Changeset.Item, of old: Value?, time: Timestamp) {
    guard case .set(let key, let value, let written) = item.edit, let old,
      old.kind == value.kind, let count = old.byteCount, count >= Self.smallest,
      let before = old.bytes, let after = value.bytes, after.starts(with: before)
    else { return nil }
    switch written {
    case .canonical: isBare = false
    case .exact(let text) where text.count == after.count && text.elementsEqual(after):
      isBare = true
    case .exact, .unknown: return nil
    }
    location = item.location
    self.key = key
    self.time = time
    base = before.count
    suffix = Array(after.dropFirst(before.count))
  }

  /// A growth as it was recorded.
  init(
    _ location: Location, _ key: Key, time: Timestamp, base: Int, suffix: [UInt8], isBare: Bool
  ) {
    self.location = location
    self.key = key
    self.time = time
    self.base = base
    self.suffix = suffix
    self.isBare = isBare
  }

  /// The edit that makes the value grow; nil where it is not the value that grew.
  func edit(of old: Value?) -> Edit? {
    guard let old, let before = old.bytes, before.count == base else { return nil }
    let bytes = Array(before) + suffix
    let text: WrittenText = isBare ? .exact(bytes) : .canonical
    if case .data = old { return .set(key, .data(bytes), text) }
    return .set(key, .string(String(decoding: bytes, as: UTF8.self)), text)
  }
}

extension Value {
  /// How many bytes a string or data has. Cost: O(1).
  fileprivate var byteCount: Int? {
    switch self {
    case .string(let text): text.utf8.count
    case .data(let data): data.count
    default: nil
    }
  }

  /// The bytes of a string or of data.
  fileprivate var bytes: ArraySlice<UInt8>? {
    switch self {
    case .string(let text): Array(text.utf8)[...]
    case .data(let data): data[...]
    default: nil
    }
  }
}
