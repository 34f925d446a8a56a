import PreferenceModel

/// A change that has taken effect and that observers are still to be notified of.
public struct Publication: Sendable {
  /// What changed.
  public private(set) var changeset: Changeset
  /// The author of the change; nil: another program changed the list itself.
  public let author: Author?
  /// The client's request that it carries out; nil: it is no client's.
  public let origin: Origin?

  init(
    _ changeset: Changeset, author: Author? = nil, origin: Origin? = nil
  ) {
    self.changeset = changeset
    (self.author, self.origin) = (author, origin)
  }

  mutating func add(_ item: Changeset.Item) { changeset.items.append(item) }

  fileprivate mutating func number(_ version: UInt64) { changeset.version = version }
}

extension Store {
  /// Removes the next change from the queue and returns it; nil: the queue is empty. Changes come
  /// in the order in which they took effect. The caller notifies observers of one before it takes
  /// the next.
  public func removeNextPublication() -> Publication? {
    state.withLock { $0.publications.isEmpty ? nil : $0.publications.removeFirst() }
  }
}

extension Store.State {
  /// Numbers the change and enqueues it; ignores an empty one.
  /// - Returns: the number of the last change.
  @discardableResult
  mutating func enqueue(_ publication: Publication) -> UInt64 {
    guard !publication.changeset.isEmpty else { return version }
    version += 1
    publications.append(publication)
    publications[publications.count - 1].number(version)
    return version
  }
}
