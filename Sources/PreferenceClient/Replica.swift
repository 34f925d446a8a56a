import PreferenceModel
import Synchronization
import SystemCalls

/// What a client knows of the store: the locations that it has loaded, as they are after the last
/// change that it has heard of.
///
/// Threads: any. Nothing but look-ups happens under the lock.
final class Replica: Sendable {
  private struct Loading {
    var loaders = 0
    var changes: [Changeset] = []
    /// The list became unreadable, or readable, meanwhile: what comes may be neither.
    var isSpoiled = false
  }

  private struct State {
    var locations: [Location: DomainSnapshot] = [:]
    /// Changes since somebody asked for a location: some are in what he gets, some are not.
    var loading: [Location: Loading] = [:]
  }

  private let state = Mutex(State())

  /// Looks at a location; nil where it is not loaded.
  func read<Result>(
    _ location: Location, _ body: (borrowing DomainSnapshot) -> Result
  ) -> Result? {
    state.withLock { state in
      guard let domain = state.locations[location] else { return nil }
      return body(domain)
    }
  }

  /// Whether the location is loaded.
  func holds(_ location: Location) -> Bool { state.withLock { $0.locations[location] != nil } }

  /// Every location that is loaded.
  var loaded: [Location: DomainSnapshot] { state.withLock { $0.locations } }

  /// The location is asked for: changes of it are kept until `endLoading`.
  func beginLoading(_ location: Location) {
    state.withLock { $0.loading[location, default: Loading()].loaders += 1 }
  }

  /// Takes in what was loaded, with the changes after its version; nil: it could not be loaded.
  func endLoading(
    _ location: Location, _ contents: (DomainSnapshot.Contents, version: UInt64)?
  ) {
    state.withLock { state in
      guard var loading = state.loading.removeValue(forKey: location) else { return }
      if let (contents, version) = contents, !loading.isSpoiled, state.locations[location] == nil {
        var domain = DomainSnapshot(contents)
        for changeset in loading.changes where changeset.version > version {
          domain.apply(changeset, at: location)
        }
        state.locations[location] = domain
      }
      loading.loaders -= 1
      if loading.loaders > 0 { state.loading[location] = loading }
    }
  }

  /// Takes in a change.
  func apply(_ changeset: Changeset) {
    state.withLock { state in
      for location in changeset.locations {
        if changeset.invalidated.contains(location) {
          state.loading[location]?.isSpoiled = true
          state.locations[location] = nil
          continue
        }
        state.loading[location]?.changes.append(changeset)
        // In place: a copy that is held would make the first change copy its node.
        state.locations[location]?.apply(changeset, at: location)
      }
    }
  }
}

extension DomainSnapshot {
  fileprivate mutating func apply(_ changeset: Changeset, at location: Location) {
    for item in changeset.items where item.location == location {
      apply(item.edit, time: changeset.time)
    }
  }
}
