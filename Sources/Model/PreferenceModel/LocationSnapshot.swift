import PropertyList
import SystemCalls

/// A domain in one place at one moment: the list as it is on the disk (the base), and layers of
/// changes that are not in the list yet.
///
/// A copy is cheap and does not change. A change touches only the last layer, so it costs the same
/// in a domain of 10 and of 100,000 keys, also while copies are held. A rewrite of the list freezes
/// the layers that it writes, by putting an empty one on top, and drops them when the list contains
/// them. Both cost O(1), however many changes there are.
public struct LocationSnapshot: Sendable {
  /// What happened to a key.
  package enum Change: Sendable {
    case set(StoredValue)
    case removed
    /// Only what is kept beside the value changed; the layers below have the value.
    case described(Description)
  }

  /// Changes of keys. `changesList` says whether any of them changes the list itself, and not only
  /// what is kept beside it.
  package struct Layer: Sendable {
    package var changes: [Key: Change] = [:]
    package var changesList = false
  }

  /// The list on the disk, and what is kept beside it.
  package struct Base: Sendable {
    package var values = ListValues.decoded([:])
    /// What is kept beside the values, by key.
    package var metadata: [Key: Metadata] = [:]
    /// The modification time of keys without metadata.
    package var modified = Timestamp(nanoseconds: 0)
    /// `LocationSnapshot.made` when the list was written.
    package var made: Timestamp?

    package init() {}

    package var isEmpty: Bool { values.isEmpty }

    package func entry(_ key: Key) -> StoredValue? {
      guard let value = values[key] else { return nil }
      return StoredValue(value, metadata[key] ?? Metadata(text: nil, modified: modified))
    }
  }

  /// A base in an object that never changes, so that a copy of a snapshot copies a few references.
  private final class List: Sendable {
    let base: Base

    init(_ base: Base) { self.base = base }

    static let empty = List(Base())
  }

  private var list = List.empty

  package var base: Base {
    get { list.base }
    set { list = List(newValue) }
  }

  /// The layers, oldest first. There is always one; changes are added to the last.
  package private(set) var layers = [Layer()] {
    didSet { hasNoChanges = layers.allSatisfy(\.changes.isEmpty) }
  }

  /// Whether the list has every change. Kept, because each look-up asks for it.
  package private(set) var hasNoChanges = true

  /// Creates a domain that does not exist.
  package init() {}

  /// The values that profiles, fragments and vendors' lists set (`PlaceAdditions`). Only a copy that
  /// was made for readers has them.
  package internal(set) var additions: [Key: StoredValue] = [:]

  /// Returns a copy for readers, with values that are added to the list. It exists if there are any,
  /// and is as new as the newest of them. Cost: O(additions).
  package func with(additions: [Key: StoredValue]) -> LocationSnapshot {
    var copy = self
    copy.additions = additions
    if !additions.isEmpty { copy.exists = true }
    let latest = additions.values.map(\.modified).max() ?? lastModified
    copy.lastModified = max(lastModified, latest)
    return copy
  }

  /// Whether the place has the domain. An existing domain may be empty.
  public package(set) var exists = false {
    didSet { if !exists { made = nil } }
  }

  /// When the domain was made without keys, which keeps it when its last key goes; nil if it does
  /// not exist, or came into being by its first keys.
  package private(set) var made: Timestamp?

  /// When the domain last changed.
  public package(set) var lastModified = Timestamp(nanoseconds: 0)

  /// Whether we changed the key's value since the list was last written.
  package func isChanged(_ key: Key) -> Bool {
    layers.contains { layer in
      switch layer.changes[key] {
      case .set, .removed: true
      case .described, nil: false
      }
    }
  }

  /// The value of a key. Cost: a hash look-up in the base and in each layer, of which there are
  /// seldom more than two; O(its bytes) where splices made the value.
  public subscript(key: Key) -> Value? {
    fragment(key)?.value ?? listed(key) ?? additions[key]?.value
  }

  /// The value that counts before the list.
  private func fragment(_ key: Key) -> StoredValue? {
    guard !additions.isEmpty, let added = additions[key], added.metadata.isOfFile else {
      return nil
    }
    return added
  }

  private func listed(_ key: Key) -> Value? {
    for layer in layers.reversed() {
      switch layer.changes[key] {
      case .set(let stored): return stored.value
      case .removed: return nil
      case .described, nil: continue
      }
    }
    return list.base.values[key]
  }

  /// The value of a key and what is kept beside it; nil where the domain does not have the key.
  public func entry(_ key: Key) -> StoredValue? {
    if additions.isEmpty { return listedEntry(key) }
    return fragment(key) ?? listedEntry(key) ?? additions[key]
  }

  private func listedEntry(_ key: Key) -> StoredValue? {
    if hasNoChanges { return list.base.entry(key) }
    var description = Description()
    for layer in layers.reversed() {
      switch layer.changes[key] {
      case .set(let stored): return stored.with(stored.metadata.changed(by: description))
      case .removed: return nil
      case .described(let earlier): description = earlier.changed(by: description)
      case nil: continue
      }
    }
    return list.base.entry(key).map { $0.with($0.metadata.changed(by: description)) }
  }

  /// The keys of the domain, in no order. Cost: O(keys).
  public var keys: [Key] {
    var listed = list.base.values.keys
    if !hasNoChanges {
      let changes = collapsed().changes
      listed.removeAll { if case .removed = changes[$0] { true } else { false } }
      for (key, change) in changes {
        if case .set = change, list.base.values[key] == nil { listed.append(key) }
      }
    }
    return additions.isEmpty ? listed : Array(Set(listed).union(additions.keys))
  }

  /// The values without what is kept beside them. Cost: O(keys).
  public var values: ValueDictionary {
    let listed =
      (hasNoChanges ? base.values : merged(onto: base).values).dictionary
    if additions.isEmpty { return listed }
    return ValueDictionary(additions).merging(listed)
      .merging(ValueDictionary(additions.filter { $0.value.metadata.isOfFile }))
  }

  /// A number that the keys do not exceed. Cost: O(layers).
  public var mostKeys: Int {
    layers.reduce(list.base.values.count + additions.count) { $0 + $1.changes.count }
  }

  /// Whether there is no key. Cost: O(keys).
  public var isEmpty: Bool { keys.isEmpty }
}

// MARK: - Changes

extension LocationSnapshot {
  /// Applies one edit. Cost: O(the value); O(keys) for the removal of a
  /// domain; O(unsaved changes), once, where a copy of the snapshot is held.
  package mutating func apply(_ edit: Edit, time: Timestamp) {
    if case .describe(let key, let description) = edit {
      return describe(key, description, time)
    }
    lastModified = max(lastModified, time)
    layers[layers.count - 1].changesList = true
    switch edit {
    case .set(let key, let value, let written):
      let old = entry(key)
      let text = written.text(keeping: old?.value == value ? old?.text : nil)
      let metadata =
        old?.metadata.replaced(text: text, at: time) ?? Metadata(text: text, modified: time)
      add(.set(StoredValue(value, metadata)), for: key)
      exists = true
      // A change that makes a domain and sets keys in it makes it by its keys.
      if made == time { made = nil }
    case .splice(let key, let splice):
      guard let old = entry(key), old.accepts(splice) else { return }
      add(.set(old.applying(splice, time: time)), for: key)
    case .remove(let key): add(.removed, for: key)
    case .createDomain: (exists, made) = (true, time)
    case .removeDomain:
      for key in keys { add(.removed, for: key) }
      exists = false
    case .describe: break
    }
  }

  private mutating func describe(_ key: Key, _ description: Description, _ time: Timestamp) {
    var description = description
    description.time = time
    let earlier = layers[layers.count - 1].changes[key]
    add(earlier?.changed(by: description) ?? .described(description), for: key)
  }

  mutating func add(_ change: Change, for key: Key) {
    layers[layers.count - 1].changes[key] = change
  }
}

extension Edit {
  /// The edit in the form that is recorded, with its text resolved; nil where it would change
  /// nothing.
  /// - Parameters:
  ///   - old: the entry that the edit's key has.
  ///   - exists: whether the domain exists.
  package func effective(on old: StoredValue?, exists: Bool) -> Edit? {
    switch self {
    case .set(let key, let value, let written):
      let same = old?.value == value
      let text = written.text(keeping: same ? old?.text : nil)
      if same, text == old?.text { return nil }
      return .set(key, value, text.map { .exact($0) } ?? .canonical)
    case .splice(_, let splice):
      guard let old, old.accepts(splice), !old.alreadyHas(splice) else { return nil }
      return self
    case .describe(_, let description):
      // Also where mode and time are those already: chmod(2) and utimensat(2) move `st_ctime`.
      return old == nil || description.isEmpty ? nil : self
    case .remove: return old == nil ? nil : self
    case .createDomain: return exists ? nil : self
    case .removeDomain: return exists ? self : nil
    }
  }
}

extension Changeset.Item {
  /// The edit in the form that is recorded, with what it replaces in the snapshot; nil if it changes
  /// nothing there.
  package init?(_ edit: Edit, on snapshot: LocationSnapshot, _ location: Location) {
    let old = edit.key.flatMap { snapshot.entry($0) }
    guard let edit = edit.effective(on: old, exists: snapshot.exists) else { return nil }
    self.init(location, edit, replacing: old, of: snapshot)
  }
}

// MARK: - Differences

extension LocationSnapshot {
  /// The edit that brings the key back to its state in this snapshot.
  package func restoring(_ key: Key) -> Edit {
    guard let entry = entry(key) else { return .remove(key) }
    return .set(key, entry.value, entry.text.map { .exact($0) } ?? .canonical)
  }

  /// The edits that turn this domain into the other. Cost: O(keys).
  package func edits(to other: LocationSnapshot) -> [Edit] {
    guard other.exists else { return exists ? keys.map { .remove($0) } + [.removeDomain] : [] }
    let changed = Set(keys).union(other.keys).filter { entry($0) != other.entry($0) }
    return (exists ? [] : [.createDomain]) + changed.map { other.restoring($0) }
  }
}

// MARK: - Rewrites

extension LocationSnapshot {
  /// Freezes the layers: later changes go to a new one.
  /// - Returns: how many layers are frozen.
  package mutating func freeze() -> Int {
    if layers.last?.isUntouched == false { layers.append(Layer()) }
    return layers.count - 1
  }

  /// The base with the changes of every layer applied. Cost: O(keys).
  package func merged(onto base: Base) -> Base {
    var result = base
    result.made = made
    for layer in layers {
      for (key, change) in layer.changes {
        switch change {
        case .set(let stored):
          let whole = stored.whole
          result.values[key] = whole.value
          result.metadata[key] = whole.metadata
        case .removed:
          result.values[key] = nil
          result.metadata[key] = nil
        case .described(let description):
          result.metadata[key] = result.entry(key)?.metadata.changed(by: description)
        }
      }
    }
    return result
  }

  /// Drops the first layers, which the new base contains. Cost: O(1).
  package mutating func finishRewrite(_ base: Base, layers count: Int) {
    self.base = base
    layers.removeFirst(count)
    lastModified = max(lastModified, base.modified)
  }

  /// Whether any change changes the list itself, and not only what is kept beside it.
  package var changesList: Bool { layers.contains(where: \.changesList) }

  /// Replaces the base after another program changed the list. Our changes stay on top. Cost: O(1).
  package mutating func replaceBase(_ base: Base) {
    self.base = base
    lastModified = max(lastModified, base.modified)
  }

  /// The edits that turn the base into this domain. Cost: O(changes).
  package var unsavedEdits: [Edit] {
    var edits: [Edit] = []
    for (key, change) in collapsed().changes {
      switch change {
      case .set: edits.append(restoring(key))
      case .removed: edits.append(.remove(key))
      case .described(let description): edits.append(.describe(key, description))
      }
    }
    let hasKeys = edits.contains { if case .set = $0 { true } else { false } }
    if changesList, !exists { edits.append(.removeDomain) }
    // Keys make a domain that was not made without them.
    if changesList, exists, made != nil || !hasKeys { edits.append(.createDomain) }
    return edits
  }

  /// All layers merged into one, which `replaceLayers` can put in their place. Cost: O(changes); O(1)
  /// where one layer has all of them.
  package func collapsed() -> Layer {
    let changed = layers.filter { !$0.isUntouched }
    if changed.count < 2 { return changed.first ?? Layer() }
    var result = Layer()
    for layer in layers {
      for (key, change) in layer.changes {
        if case .described(let description) = change, let earlier = result.changes[key] {
          result.changes[key] = earlier.changed(by: description)
        } else {
          result.changes[key] = change
        }
      }
      if layer.changesList { result.changesList = true }
    }
    return result
  }

  /// Replaces the first layers by one that contains the same changes. Cost: O(1).
  package mutating func replaceLayers(_ count: Int, with layer: Layer) {
    layers.replaceSubrange(..<count, with: [layer])
  }

  /// Takes over a base that was read from the disk. Cost: O(keys).
  package mutating func adopt(_ base: Base) {
    self.base = base
    made = exists ? base.made : nil
    lastModified = base.metadata.values.reduce(base.modified) { max($0, $1.modified) }
  }
}

extension LocationSnapshot.Layer {
  fileprivate var isUntouched: Bool { changes.isEmpty && !changesList }
}

extension LocationSnapshot.Change {
  /// This change with the description applied on top.
  fileprivate func changed(by description: Description) -> Self {
    switch self {
    case .set(let stored): .set(stored.with(stored.metadata.changed(by: description)))
    case .removed: .removed
    case .described(let earlier): .described(earlier.changed(by: description))
    }
  }
}

extension Description {
  fileprivate func changed(by later: Description) -> Description {
    var both = Description(mode: later.mode ?? mode, modified: later.modified ?? modified)
    both.time = later.time ?? time
    return both
  }
}

extension Metadata {
  func changed(by description: Description) -> Metadata {
    var described = self
    described.modified = description.modified ?? modified
    described.mode = description.mode ?? mode
    let latest = description.time.map { max($0, lastChanged) } ?? lastChanged
    described.changed = latest == described.modified ? nil : latest
    return described
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
