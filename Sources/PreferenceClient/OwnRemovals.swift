import PreferenceModel
import PropertyList
import Synchronization

/// What this client's own changes have removed, until they are answered. The answer of an owner
/// lacks it; the notice, which comes before the answer, was completed from the replica.
///
/// Threads: any. One lock, under which nothing blocks.
final class OwnRemovals: Sendable {
  private let changes = Mutex<[Changeset]>([])

  /// The most changes that are kept. Of one whose caller has given up, the answer may never come.
  private static let most = 8

  /// Keeps the change of a notice, if it is one that the client waits for and removed something.
  func note(_ notice: Notice, client: UInt64) {
    guard let origin = notice.origin, origin.client == client, !origin.isOrdered,
      notice.changeset.items.contains(where: \.isRemoval)
    else { return }
    changes.withLock { changes in
      changes.append(notice.changeset)
      if changes.count > Self.most { changes.removeFirst() }
    }
  }

  /// Returns the change of an answer with what it removed, as far as that is known. Cost: O(items)
  /// if the change removed something.
  func adding(to changeset: Changeset) -> Changeset {
    let kept = changes.withLock { changes -> Changeset? in
      guard let index = changes.firstIndex(where: { $0.version == changeset.version }) else {
        return nil
      }
      return changes.remove(at: index)
    }
    guard let kept else { return changeset }
    var removed: [Location: [Key?: Changeset.Before]] = [:]
    for item in kept.items { removed[item.location, default: [:]][item.edit.key] = item.before }
    var complete = changeset
    for (index, item) in changeset.items.enumerated() where item.isRemoval {
      guard let before = removed[item.location]?[item.edit.key] else { continue }
      complete.items[index].before = before
    }
    return complete
  }
}

extension Changeset.Item {
  fileprivate var isRemoval: Bool {
    switch edit {
    case .remove, .removeDomain: true
    case .set, .describe, .splice, .createDomain: false
    }
  }
}
