import PreferenceModel

/// A change that has taken effect, on its way to observers.
public struct Publication: Sendable {
  /// What changed.
  public private(set) var changeset: Changeset
  /// For each item, whether its location had the key before.
  public private(set) var hadKey: [Bool]
  /// Who made it; nil: somebody else, in the list itself.
  public let author: Author?
  /// Which client's request it was; nil: none.
  public let origin: Origin?

  init(
    _ changeset: Changeset, hadKey: [Bool] = [], author: Author? = nil, origin: Origin? = nil
  ) {
    (self.changeset, self.hadKey) = (changeset, hadKey)
    (self.author, self.origin) = (author, origin)
  }

  mutating func add(_ item: Changeset.Item, hadKey: Bool) {
    changeset.items.append(item)
    self.hadKey.append(hadKey)
  }

  fileprivate mutating func number(_ version: UInt64) { changeset.version = version }
}

extension Store {
  /// The first change that nobody has taken yet; changes come in the order in which they took effect.
  /// Whoever takes one tells observers before the next is taken.
  public func takePublication() -> Publication? {
    state.withLock { $0.publications.isEmpty ? nil : $0.publications.removeFirst() }
  }
}

extension Store.State {
  /// Numbers the change and puts it into the queue; one without items is none.
  /// - Returns: its number.
  @discardableResult
  mutating func announce(_ publication: Publication) -> UInt64 {
    guard !publication.changeset.isEmpty else { return version }
    version += 1
    publications.append(publication)
    publications[publications.count - 1].number(version)
    return version
  }
}
