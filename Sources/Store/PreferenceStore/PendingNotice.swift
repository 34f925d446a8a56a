import PreferenceModel
import PropertyList

/// A change that has taken effect and that observers are still to be notified of.
public struct PendingNotice: Sendable {
  /// What changed.
  public private(set) var changeset: Changeset
  /// The author of the change; nil if another program changed the list itself.
  public let author: Author?
  /// The client's request that it carries out; nil if it is no client's.
  public let origin: Origin?
  /// What the history says of who made it.
  let source: ChangeSource

  init(
    _ changeset: Changeset, author: Author? = nil, origin: Origin? = nil,
    source: ChangeSource = ChangeSource(.list)
  ) {
    self.changeset = changeset
    (self.author, self.origin, self.source) = (author, origin, source)
  }

  mutating func add(_ item: Changeset.Item) { changeset.items.append(item) }

  fileprivate mutating func number(_ version: UInt64) { changeset.version = version }
}

extension Lists {
  /// Removes the next change from the queue and returns it; nil if the queue is empty. Changes come
  /// in the order in which they took effect. The caller notifies observers of one before it takes
  /// the next.
  public func removeNextNotice() -> PendingNotice? {
    state.withLock { $0.pendingNotices.isEmpty ? nil : $0.pendingNotices.removeFirst() }
  }
}

extension StoreState {
  /// Numbers the change and enqueues it; ignores an empty one.
  /// - Parameter withAdditions: true: the change has the values that readers see, additions included.
  ///   false: it has the values of lists, and additions are still to be applied.
  /// - Returns: the number of the last change.
  @discardableResult
  mutating func enqueue(_ notice: PendingNotice, withAdditions: Bool = false) -> UInt64 {
    guard !notice.changeset.isEmpty else { return version }
    var shown = notice
    if !withAdditions { shown.show(additions) }
    // The time of another program's change is that of its list, which may be any.
    let isOutside = [.list, .profile].contains(notice.source.via)
    history.add(shown.changeset, notice.source, isOutside ? .now : notice.changeset.time)
    let version = changeNumber.advance()
    shown.number(version)
    pendingNotices.append(shown)
    return version
  }
}

extension PendingNotice {
  /// Makes a change of lists the change that readers see: where a list no longer has a key, the
  /// value of a profile shows; a key that a fragment sets does not change. Copies of such a location
  /// are invalid: the change would put an added value among those of the list.
  fileprivate mutating func show(_ additions: AdditionsTable) {
    guard changeset.items.contains(where: { $0.location.place.hasAdditions }) else { return }
    var items: [Changeset.Item] = []
    for item in changeset.items {
      let (place, domain) = (item.location.place, item.location.domain)
      guard let added = additions.all[place]?.settings.values[domain], !added.isEmpty else {
        items.append(item)
        continue
      }
      changeset.invalidated.insert(item.location)
      if let key = item.edit.key, added[key]?.metadata.isOfFile == true { continue }
      switch item.edit {
      case .createDomain: break
      case .removeDomain: items += removals(of: item, added)
      case .remove(let key): items.append(Self.removal(of: key, item.location, item.before, added))
      case .set(let key, _, _), .splice(let key, _), .describe(let key, _):
        var before = item.before
        if case .nothing = before, let value = added[key] { before = .value(value) }
        items.append(.init(item.location, item.edit, before: before))
      }
    }
    changeset.items = items
  }

  /// What becomes of a key that goes from a list.
  private static func removal(
    of key: Key, _ location: Location, _ before: Changeset.Before, _ added: [Key: StoredValue]
  ) -> Changeset.Item {
    let edit = added[key].map { Edit.set(key, $0.value, .canonical) } ?? .remove(key)
    return Changeset.Item(location, edit, before: before)
  }

  /// What becomes of the keys that go with a list and that the change does not name. The domain
  /// stays, with what is added to it.
  private func removals(
    of item: Changeset.Item, _ added: [Key: StoredValue]
  ) -> [Changeset.Item] {
    guard case .domain(let list) = item.before else { return [] }
    let named = Set(
      changeset.items.compactMap { $0.location == item.location ? $0.edit.key : nil })
    return list.keys.compactMap { key in
      guard !named.contains(key), added[key]?.metadata.isOfFile != true else { return nil }
      let before = list.entry(key).map { Changeset.Before.value($0) } ?? .something
      return Self.removal(of: key, item.location, before, added)
    }
  }
}
