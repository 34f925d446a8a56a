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

/// A domain in one place at one moment: the list as it is on the disk (the base) and layers of
/// changes that are not in it yet.
///
/// A copy is cheap and stays as it is. A change costs the same in a domain of 10 and of 100,000
/// keys, also while copies are held: it touches the last layer alone. A rewrite of the list
/// freezes the layers that it writes by putting an empty one on top, and takes them away when the
/// list has them: both cost nothing, however many changes there are.
public struct DomainSnapshot: Sendable {
  /// What became of a key.
  enum Change: Sendable {
    case set(Value, Metadata)
    case removed
  }

  typealias Layer = PersistentMap<Change>

  /// The list on the disk, and what is kept beside it.
  struct Base: Sendable {
    var values: [Key: Value] = [:]
    var metadata: [Key: Metadata] = [:]
    /// The modification time of keys without metadata.
    var modified = Timestamp(nanoseconds: 0)
  }

  var base = Base()
  /// Oldest first; there is always one, to which changes are added.
  private(set) var layers = [Layer()]

  /// Whether there is such a domain in the place; an existing one may be empty.
  public internal(set) var exists = false

  /// When the domain last changed.
  public private(set) var lastModified = Timestamp(nanoseconds: 0)

  /// The last thing that happened to the key since the list was written.
  func change(of key: Key) -> Change? {
    for layer in layers.reversed() { if let change = layer[key] { return change } }
    return nil
  }

  /// The value of a key. Cost: one or two hash look-ups.
  public subscript(key: Key) -> Value? {
    switch change(of: key) {
    case .set(let value, _): value
    case .removed: nil
    case nil: base.values[key]
    }
  }

  /// A key's value, text and modification time.
  func entry(_ key: Key) -> (value: Value, text: [UInt8]?, modified: Timestamp)? {
    switch change(of: key) {
    case .set(let value, let metadata): return (value, metadata.text, metadata.modified)
    case .removed: return nil
    case nil:
      guard let value = base.values[key] else { return nil }
      let metadata = base.metadata[key]
      return (value, metadata?.text, metadata?.modified ?? base.modified)
    }
  }

  /// The text that was written for the key's value, where it is not the canonical one.
  public func text(of key: Key) -> [UInt8]? { entry(key)?.text }

  /// The keys of the domain, in no order. Cost: O(keys).
  public var keys: [Key] {
    layers.allSatisfy(\.isEmpty) ? Array(base.values.keys) : Array(merged(onto: base).values.keys)
  }

  /// Whether there is no key. Cost: O(keys).
  public var isEmpty: Bool { keys.isEmpty }
}

// MARK: - Changes

extension DomainSnapshot {
  /// Takes in one edit. Cost: O(log changes), a domain's removal O(keys).
  mutating func apply(_ edit: Edit, time: Timestamp) {
    lastModified = max(lastModified, time)
    switch edit {
    case .set(let key, let value, let written):
      let old = entry(key)
      let text = written.text(keeping: old?.value == value ? old?.text : nil)
      add(.set(value, Metadata(text: text, modified: time)), for: key)
      exists = true
    case .remove(let key): add(.removed, for: key)
    case .createDomain: exists = true
    case .removeDomain:
      for key in keys { add(.removed, for: key) }
      exists = false
    }
  }

  private mutating func add(_ change: Change, for key: Key) {
    layers[layers.count - 1].set(change, for: key)
  }

  /// The edit as it is recorded, with its text resolved; nil where it would change nothing.
  func effective(_ edit: Edit) -> Edit? {
    switch edit {
    case .set(let key, let value, let written):
      let old = entry(key)
      let same = old?.value == value
      let text = written.text(keeping: same ? old?.text : nil)
      if same, text == old?.text { return nil }
      return .set(key, value, text.map { .exact($0) } ?? .canonical)
    case .remove(let key): return self[key] == nil ? nil : edit
    case .createDomain: return exists ? nil : edit
    case .removeDomain: return exists ? edit : nil
    }
  }
}

// MARK: - Rewrites

extension DomainSnapshot {
  /// From now on changes go to a new layer.
  /// - Returns: how many layers stay as they are.
  mutating func freeze() -> Int {
    if layers.last?.isEmpty == false { layers.append(Layer()) }
    return layers.count - 1
  }

  /// A base with every change of the layers in it. Cost: O(keys).
  func merged(onto base: Base) -> Base {
    var result = base
    for layer in layers {
      layer.forEach { key, change in
        switch change {
        case .set(let value, let metadata):
          result.values[key] = value
          result.metadata[key] = metadata
        case .removed:
          result.values[key] = nil
          result.metadata[key] = nil
        }
      }
    }
    return result
  }

  /// The list has the first layers now. Cost: O(1).
  mutating func finishRewrite(_ base: Base, layers count: Int) {
    self.base = base
    layers.removeFirst(count)
    lastModified = max(lastModified, base.modified)
  }

  /// One layer for all, to be put in their place by `replaceLayers`. Cost: O(changes).
  func collapsed() -> Layer {
    var result = Layer()
    for layer in layers { layer.forEach { result.set($1, for: $0) } }
    return result
  }

  /// The first layers are one from now on; it says the same. Cost: O(1).
  mutating func replaceLayers(_ count: Int, with layer: Layer) {
    layers.replaceSubrange(..<count, with: [layer])
  }

  /// What was read from the disk. Cost: O(keys).
  mutating func adopt(_ base: Base) {
    self.base = base
    lastModified = base.metadata.values.reduce(base.modified) { max($0, $1.modified) }
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
