import PreferenceCloud
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// What an owner knows of the cloud.
struct CloudRules {
  /// Keys of the cloud that the user removed a moment ago, and when.
  var removed: [DomainName: [Key: Instant]] = [:]
  /// The keys that belong in the cloud; nil if there is no cloud.
  var keys: KeyPatterns?
  /// The keys that do not, although `keys` or a schema names them.
  var local = KeyPatterns()
  /// How much is in the cloud; nil if nothing has been changed there yet.
  var usage: CloudUsage?
}

// The limits of the cloud, and the keys that belong there.

extension LocalPlaces {
  /// Sets which keys belong in the cloud, beside those that schemas name; nil if there is no cloud.
  /// Later changes of them go there.
  /// - Parameter local: the keys that stay on this machine, although `keys` or a schema names them.
  public func setCloudKeys(_ keys: KeyPatterns?, local: KeyPatterns = KeyPatterns()) {
    cloud.withLock { ($0.keys, $0.local) = (keys, local) }
  }

  /// Milliseconds after the user removed a key of the cloud within which a key of that name that is
  /// made again goes to the cloud, because some programs write files in this way.
  private static let removalMemory = 60_000

  public func hasLeftCloud(_ key: Key, of domain: DomainName) -> Bool {
    cloud.withLock { cloud in
      guard !cloud.removed.isEmpty, let time = cloud.removed[domain]?[key] else { return false }
      return Instant.now.milliseconds(after: time) < Self.removalMemory
    }
  }

  public func belongsInCloud(_ key: Key, of domain: DomainName) -> Bool {
    let isNamed = cloud.withLock { cloud -> Bool? in
      guard let keys = cloud.keys, !cloud.local.contain(key, of: domain) else { return false }
      return keys.contain(key, of: domain) ? true : nil
    }
    return isNamed ?? (domain.mayBeInCloud && schema(of: domain)?.isInCloud(key) == true)
  }

  /// Throws EFBIG or EDQUOT where the user's edits would exceed the limits of the cloud; otherwise
  /// returns what is to be counted once they are made. Cost: nothing for edits of other places; the
  /// first time in the cloud, all values there are counted.
  /// - Parameter foreign: the indices of items that bring what the server has.
  func usage(
    after items: [Changeset.Item], foreign: Set<Int>
  ) throws(EngineError) -> CloudUsage? {
    guard items.contains(where: { $0.location.place == .cloud }) else { return nil }
    let usage = if let known = cloud.withLock({ $0.usage }) { known } else { try countedUsage() }
    return try usage.after(items, isUsers: { !foreign.contains($0) }) {
      (key, location) throws(EngineError) in try find(key, at: location)
    }
  }

  /// The notes about domains that the user removes from a cloud that `prefs-cloud` knows.
  /// A list of notes that cannot be read refuses no removal.
  func removals(_ items: [Changeset.Item]) -> [Changeset.Item] {
    let notes = CloudRemovals.notes(items, at: .now)
    guard !notes.isEmpty, let known = try? keys(at: CloudRemovals.location) else { return [] }
    return known.isEmpty ? [] : notes
  }

  /// Counts a change that was made, and remembers the keys that the user has removed with it.
  func note(_ usage: CloudUsage?, _ items: [Changeset.Item], foreign: Set<Int>) {
    guard let usage else { return }
    cloud.withLock { cloud in
      cloud.usage = usage
      cloud.removed = cloud.removed.compactMapValues { keys in
        let recent = keys.filter { Instant.now.milliseconds(after: $0.value) < Self.removalMemory }
        return recent.isEmpty ? nil : recent
      }
      for (index, item) in items.enumerated() where item.location.place == .cloud {
        guard case .remove(let key) = item.edit, !foreign.contains(index) else { continue }
        cloud.removed[item.location.domain, default: [:]][key] = .now
      }
    }
  }

  private func countedUsage() throws(EngineError) -> CloudUsage {
    var usage = CloudUsage()
    for domain in try store.lists.domains(in: .cloud) {
      // A list that cannot be read holds up its own domain alone.
      guard let snapshot = try? store.lists.snapshot(of: Location(.cloud, domain)) else { continue }
      usage.add(domain, snapshot.values)
    }
    return usage
  }
}
