import PropertyList
import SystemCalls

extension LocationSnapshot {
  /// A domain as one process sends it to another: what a snapshot has, with all layers in one. A
  /// large list stays packed, so that it is sent and kept as its bytes.
  public struct Contents: Equatable, Sendable {
    /// Whether the domain exists.
    public var exists = false
    /// When the domain last changed.
    public var modified = Timestamp(nanoseconds: 0)
    /// The list as it is on the disk.
    package var list = ListValues.decoded([:])
    /// The modification time of the list's keys without metadata.
    package var listModified = Timestamp(nanoseconds: 0)
    /// What is kept beside the list's values, where it is not what is usual.
    package var metadata: [Key: Metadata] = [:]
    /// The values that were set since the list was written; nil for keys that were removed.
    package var changes: [Key: StoredValue?] = [:]
    /// The values that profiles, fragments and vendors' lists set (`PlaceAdditions`).
    package var additions: [Key: StoredValue] = [:]

    /// Creates a domain that does not exist.
    public init() {}
  }

  /// The whole domain. Cost: O(changes); O(metadata) where what is kept beside a value has changed,
  /// and not the value.
  public var contents: Contents {
    var contents = Contents()
    (contents.exists, contents.modified) = (exists, lastModified)
    (contents.list, contents.listModified) = (base.values, base.modified)
    (contents.metadata, contents.additions) = (base.metadata, additions)
    collapsed().changes.forEach { key, change in
      switch change {
      case .set(let stored): contents.changes.updateValue(stored, forKey: key)
      case .removed: contents.changes.updateValue(nil, forKey: key)
      case .described(let description):
        guard let entry = base.entry(key) else { return }
        contents.metadata[key] = entry.metadata.changed(by: description)
      }
    }
    return contents
  }

  /// Creates the snapshot of a domain that another process sent. Cost: O(changes).
  public init(_ contents: Contents) {
    self.init()
    var base = Base()
    (base.values, base.modified) = (contents.list, contents.listModified)
    (base.metadata, additions) = (contents.metadata, contents.additions)
    self.base = base
    for (key, stored) in contents.changes { add(stored.map { .set($0) } ?? .removed, for: key) }
    (exists, lastModified) = (contents.exists, contents.modified)
  }
}
