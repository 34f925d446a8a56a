import PreferenceModel
import PropertyList
import Synchronization

/// This client's changes, from their request until they are answered.
///
/// The notice of a change comes before the answer, and is told to everybody but its author. It says
/// what the change removed (the replica knows it), which the answer of an owner lacks. Where the
/// answer does not come in time, the notice is what says that the change was made:
///
/// - It has come: the change was made, though the answer is late.
/// - It comes later: the caller was told that it was not, so its author is to hear of it like
///   everybody else. `note(_:)` takes the author out.
///
/// Threads: any. One lock, under which nothing blocks.
final class OwnChanges: Sendable {
  private struct State {
    /// The requests whose callers wait, by serial, with what their notices say. They are few.
    var awaited: [(serial: UInt64, made: Changeset?)] = []
    /// The serials of requests whose callers have given up. Of most, no notice ever comes.
    var givenUp: [UInt64] = []
  }

  private let state = Mutex(State())

  /// The most requests that are remembered after their callers have given up. Each took seconds.
  private static let most = 256

  /// Notes that a caller waits for a change.
  func begin(_ serial: UInt64) {
    state.withLock { $0.awaited.append((serial, nil)) }
  }

  /// Keeps the change of a notice that a caller waits for. If its caller has given up, the notice
  /// has no author any more.
  func note(_ notice: inout Notice, client: UInt64) {
    guard let origin = notice.origin, origin.client == client, !origin.isOrdered else { return }
    let isGivenUp = state.withLock { state in
      if let index = state.awaited.firstIndex(where: { $0.serial == origin.serial }) {
        state.awaited[index].made = notice.changeset
        return false
      }
      guard let index = state.givenUp.firstIndex(of: origin.serial) else { return false }
      state.givenUp.remove(at: index)
      return true
    }
    if isGivenUp { notice.author = nil }
  }

  /// Ends the waiting for a change, and returns it; nil if it is not known to be made.
  /// - Parameters:
  ///   - answer: what the owner has answered; nil means nothing.
  ///   - isLate: whether the caller has given up, so that the owner may still make the change.
  func end(_ serial: UInt64, _ answer: Changeset?, isLate: Bool = false) -> Changeset? {
    let made = state.withLock { state -> Changeset? in
      guard let index = state.awaited.firstIndex(where: { $0.serial == serial }) else { return nil }
      let made = state.awaited.remove(at: index).made
      guard isLate, made == nil else { return made }
      state.givenUp.append(serial)
      if state.givenUp.count > Self.most { state.givenUp.removeFirst() }
      return nil
    }
    guard let answer, let made, made.version == answer.version else { return answer ?? made }
    return answer.addingRemoved(from: made)
  }
}

extension Changeset {
  /// Returns the change with what it removed, as far as the other says it. Cost: O(items) if it
  /// removed something.
  fileprivate func addingRemoved(from noticed: Changeset) -> Changeset {
    guard items.contains(where: \.isRemoval) else { return self }
    var removed: [Location: [Key?: Before]] = [:]
    for item in noticed.items { removed[item.location, default: [:]][item.edit.key] = item.before }
    var complete = self
    for (index, item) in items.enumerated() where item.isRemoval {
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
