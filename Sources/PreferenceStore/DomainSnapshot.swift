import PreferenceModel
import PropertyList
import SystemCalls

/// What is kept with a key beside its value.
public struct Metadata: Equatable, Sendable {
  /// The bytes last written for the value; nil where they are its canonical text.
  public var text: [UInt8]?
  /// When the value, or its text, last changed.
  public var modified: Timestamp
}

/// A domain in one place at one moment: the list as it is on the disk (the base) and the changes
/// that are not in it yet (the overlay).
///
/// A copy is cheap and stays as it is. A change costs the same in a domain of 10 and of 100,000
/// keys: it touches the overlay alone, which the next rewrite of the list empties.
public struct DomainSnapshot: Sendable {
  struct Change: Sendable {
    /// nil: removed.
    var value: Value?
    /// The journal record that holds the change.
    var sequence: UInt64
  }

  var base: [Key: Value] = [:]
  var overlay: [Key: Change] = [:]
  var metadata: [Key: Metadata] = [:]
  /// The modification time of keys without metadata.
  var modified = Timestamp(nanoseconds: 0)

  /// Whether there is such a domain in the place; an existing one may be empty.
  public internal(set) var exists = false

  /// The value of a key. Cost: one or two hash look-ups.
  public subscript(key: Key) -> Value? {
    if !overlay.isEmpty, let change = overlay[key] { return change.value }
    return base[key]
  }

  /// The text that was written for the key's value, where it is not the canonical one.
  public func text(of key: Key) -> [UInt8]? { metadata[key]?.text }

  /// When the key's value last changed, as far as is known: else when the list did.
  public func modified(_ key: Key) -> Timestamp { metadata[key]?.modified ?? modified }

  /// When the domain last changed.
  public var lastModified: Timestamp { metadata.values.reduce(modified) { max($0, $1.modified) } }

  /// The keys of the domain, in no order. Cost: O(keys).
  public var keys: [Key] {
    overlay.isEmpty
      ? Array(base.keys)
      : base.keys.filter { overlay[$0] == nil }
        + overlay.compactMap { $0.value.value == nil ? nil : $0.key }
  }

  /// Whether there is no key.
  public var isEmpty: Bool {
    overlay.values.allSatisfy { $0.value == nil } && base.keys.allSatisfy { overlay[$0] != nil }
  }

  /// Base and overlay as one dictionary. Cost: O(keys).
  func merged(onto base: [Key: Value]) -> [Key: Value] {
    var result = base
    for (key, change) in overlay { result[key] = change.value }
    return result
  }

  /// Takes in one edit of the record with the number. Cost: O(1), a domain's removal O(keys).
  mutating func apply(_ edit: Edit, sequence: UInt64, time: Timestamp) {
    switch edit {
    case .set(let key, let value, let written):
      let same = self[key] == value
      overlay[key] = Change(value: value, sequence: sequence)
      metadata[key] = Metadata(
        text: written.text(keeping: same ? text(of: key) : nil), modified: time)
      exists = true
    case .remove(let key):
      overlay[key] = Change(value: nil, sequence: sequence)
      metadata[key] = nil
    case .createDomain: exists = true
    case .removeDomain:
      for key in keys { overlay[key] = Change(value: nil, sequence: sequence) }
      metadata = [:]
      exists = false
    }
  }

  /// The edit as it is recorded, with its text resolved; nil where it would change nothing.
  func effective(_ edit: Edit) -> Edit? {
    switch edit {
    case .set(let key, let value, let written):
      let same = self[key] == value
      let text = written.text(keeping: same ? self.text(of: key) : nil)
      if same, text == self.text(of: key) { return nil }
      return .set(key, value, text.map { .exact($0) } ?? .canonical)
    case .remove(let key): return self[key] == nil ? nil : edit
    case .createDomain: return exists ? nil : edit
    case .removeDomain: return exists ? edit : nil
    }
  }
}

extension WrittenText {
  fileprivate func text(keeping old: [UInt8]?) -> [UInt8]? {
    switch self {
    case .unknown: old
    case .canonical: nil
    case .exact(let text): text
    }
  }
}
