import PreferenceModel
import PropertyList
import Synchronization

/// What an owner knows of the cloud.
struct CloudRules {
  /// Whether there is a cloud.
  var isConfigured = false
  /// The keys that belong in the cloud.
  var keys = CloudKeyPatterns()
  /// How much is in the cloud; nil: nothing has been changed there yet.
  var usage: CloudUsage?
}

// The limits of the cloud, and the keys that belong there.

extension LocalPlaces {
  /// Sets which keys belong in the cloud, where there is one. Later changes of them go there.
  public func setCloudKeys(_ keys: CloudKeyPatterns?) {
    cloud.withLock { ($0.isConfigured, $0.keys) = (keys != nil, keys ?? CloudKeyPatterns()) }
  }

  public func isKnownToCloud(_ key: Key, of domain: DomainName) -> Bool {
    guard cloud.withLock({ $0.isConfigured }) else { return false }
    return ((try? store.find(key, at: Location(.cloudRecords, domain))) ?? nil) != nil
  }

  public func belongsInCloud(_ key: Key, of domain: DomainName) -> Bool {
    cloud.withLock { $0.keys.contain(key, of: domain) }
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

  /// Counts a change that was made.
  func note(_ usage: CloudUsage?) {
    if let usage { cloud.withLock { $0.usage = usage } }
  }

  private func countedUsage() throws(EngineError) -> CloudUsage {
    var usage = CloudUsage()
    for domain in try store.domains(in: .cloud) {
      // A list that cannot be read holds up its own domain alone.
      guard let snapshot = try? store.snapshot(of: Location(.cloud, domain)) else { continue }
      usage.add(domain, snapshot.values)
    }
    return usage
  }
}
