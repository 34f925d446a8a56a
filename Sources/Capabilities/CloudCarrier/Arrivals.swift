import PreferenceCloud
import PreferenceModel
import Synchronization
import SystemCalls

/// What has changed in the store and concerns the carrier, until the carrier takes it.
///
/// Threads: any. One lock, held for a look.
final class Arrivals: Sendable {
  /// What has changed. The carrier takes the properties over in this order.
  struct Contents: Sendable {
    /// Changes of the cloud's place.
    var changes: [(keys: Set<CloudKey>, time: Timestamp)] = []
    /// Domains of the cloud's place whose lists were changed as a whole.
    var domains: Set<DomainName> = []
    /// Domains of the cloud's place whose lists became unreadable, or readable again.
    var invalidated: Set<DomainName> = []
    /// Domains of the user's other places that have changed.
    var others: Set<DomainName> = []
    /// Whether the settings of the cloud have changed.
    var hasNewSettings = false
    /// Whether somebody asks for a synchronisation.
    var hasSyncRequest = false

    var isEmpty: Bool {
      changes.isEmpty && domains.isEmpty && invalidated.isEmpty && others.isEmpty
        && !hasNewSettings && !hasSyncRequest
    }
  }

  private let contents = Mutex(Contents())
  /// Rung when something arrives.
  let wakeup: Wakeup

  init() throws(SystemError) { wakeup = try Wakeup() }

  /// Notes what a notice is about.
  func hear(_ notice: Notice) {
    let new = Contents(notice.changeset)
    if new.isEmpty { return }
    contents.withLock { $0.add(new) }
    wakeup.signal()
  }

  /// Notes that everything must be looked at, when `prefs-cloud` begins.
  func noteAll() { contents.withLock { ($0.hasNewSettings, $0.hasSyncRequest) = (true, true) } }

  /// Removes and returns everything.
  func removeAll() -> Contents {
    contents.withLock { contents in
      defer { contents = Contents() }
      return contents
    }
  }

  /// Puts back what could not be taken over, before what has arrived since.
  func putBack(_ rest: Contents) {
    contents.withLock { contents in
      var all = rest
      all.add(contents)
      contents = all
    }
  }
}

extension Arrivals.Contents {
  /// What a change means for the carrier.
  init(_ changeset: Changeset) {
    self.init()
    var keys: Set<CloudKey> = []
    for item in changeset.items {
      let location = item.location
      // Where the domain of the settings is locked, others count.
      if DomainLocks.locations.contains(location) { hasNewSettings = true }
      if location.domain == CloudSettings.domain, location.place != .cloudRecords {
        hasNewSettings = true
      } else if location == CloudNotes.location {
        hasSyncRequest = hasSyncRequest || item.edit.key == CloudNotes.syncRequest
      } else if location.place == .cloud {
        if let key = item.edit.key {
          keys.insert(CloudKey(location.domain, key))
        } else {
          domains.insert(location.domain)
        }
      } else if location.place.isOwn {
        others.insert(location.domain)
      }
    }
    for location in changeset.invalidated {
      if location.place == .cloud { invalidated.insert(location.domain) }
      let isAbout = location.domain == CloudSettings.domain
      if isAbout || DomainLocks.locations.contains(location) { hasNewSettings = true }
    }
    if !keys.isEmpty { changes.append((keys, changeset.time)) }
  }

  /// Adds what came later.
  fileprivate mutating func add(_ later: Self) {
    changes += later.changes
    domains.formUnion(later.domains)
    invalidated.formUnion(later.invalidated)
    others.formUnion(later.others)
    hasNewSettings = hasNewSettings || later.hasNewSettings
    hasSyncRequest = hasSyncRequest || later.hasSyncRequest
  }
}
