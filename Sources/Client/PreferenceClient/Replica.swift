import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// A client's copy of a part of the store: the locations that it has loaded, as they are after the
/// last change of which it has received the notice.
///
/// Threads: any. One lock, under which nothing blocks.
final class Replica: Sendable {
  /// A location that is being loaded.
  private struct Loading {
    /// The number of threads that load it.
    var loaders = 0
    /// The changes of the location since the first of them began.
    var changes: [Changeset] = []
    /// Whether the list became unreadable, or readable again, meanwhile. What was loaded may then
    /// be outdated, and is not kept.
    var isSpoiled = false
  }

  private struct State {
    var locations = LocationTable<LocationSnapshot>()
    /// The locations that are being loaded. What is loaded contains some of the changes that were
    /// made meanwhile, and lacks others.
    var loading: [Location: Loading] = [:]
  }

  private let state = Mutex(State())

  /// Calls the body with a location, under the lock; nil if the location is not loaded.
  func read<Result>(
    _ location: Location, _ body: (borrowing LocationSnapshot) -> Result
  ) -> Result? {
    state.withLock { state in
      guard let domain = state.locations[location] else { return nil }
      return body(domain)
    }
  }

  /// Returns the key's value in the first of the locations that has it, as they are at one moment;
  /// `.unknown` where one must be loaded first.
  func find(
    _ key: Key, in locations: [Location]
  ) -> LocationTable<LocationSnapshot>.Finding<StoredValue> {
    state.withLock { $0.locations.findFirst(in: locations) { $1.entry(key) } }
  }

  /// Whether the location is loaded.
  func holds(_ location: Location) -> Bool { state.withLock { $0.locations[location] != nil } }

  /// Whether the domain is loaded in each of the places.
  func holds(_ domain: DomainName, in places: [Place]) -> Bool {
    state.withLock { $0.locations.has(domain, in: places) }
  }

  /// Every location that is loaded.
  var loaded: [Location: LocationSnapshot] {
    state.withLock { state in
      var loaded: [Location: LocationSnapshot] = [:]
      state.locations.forEach { location, snapshot in loaded[location] = copy snapshot }
      return loaded
    }
  }

  /// Begins to load a location: its changes are kept until `endLoading`.
  func beginLoading(_ location: Location) {
    state.withLock { $0.loading[location, default: Loading()].loaders += 1 }
  }

  /// Ends what `beginLoading` began: keeps the contents, with the changes after their version.
  /// - Parameter contents: nil if the location could not be loaded.
  func endLoading(
    _ location: Location, _ contents: (LocationSnapshot.Contents, version: UInt64)?
  ) {
    state.withLock { state in
      guard var loading = state.loading.removeValue(forKey: location) else { return }
      if let (contents, version) = contents, !loading.isSpoiled, state.locations[location] == nil {
        var domain = LocationSnapshot(contents)
        for changeset in loading.changes where changeset.version > version {
          domain.apply(changeset, at: location)
        }
        state.locations[location] = domain
      }
      loading.loaders -= 1
      if loading.loaders > 0 { state.loading[location] = loading }
    }
  }

  /// Publishes a change: applies it to the locations that are loaded, and drops those that it
  /// invalidates. Adds what was there before to the change, where it is known.
  func apply(_ changeset: inout Changeset) {
    state.withLock { state in
      for (index, item) in changeset.items.enumerated() {
        guard let domain = state.locations[item.location] else { continue }
        switch item.edit {
        case .remove(let key), .set(let key, _, _), .describe(let key, _):
          if let old = domain.entry(key) { changeset.items[index].before = .value(old) }
        case .removeDomain: changeset.items[index].before = .domain(domain)
        // Who holds a long text has the splice copy it.
        case .splice, .createDomain: break
        }
      }
      for location in changeset.invalidated {
        state.loading[location]?.isSpoiled = true
        state.locations[location] = nil
      }
      // In place: with a second reference to the snapshot, the change would copy a node of it.
      for item in changeset.items {
        state.locations[item.location]?.apply(item.edit, time: changeset.time)
      }
      if state.loading.isEmpty { return }
      for location in changeset.locations { state.loading[location]?.changes.append(changeset) }
    }
  }
}

extension LocationSnapshot {
  /// Applies the edits of a change that are in the location.
  fileprivate mutating func apply(_ changeset: Changeset, at location: Location) {
    for item in changeset.items where item.location == location {
      apply(item.edit, time: changeset.time)
    }
  }
}
