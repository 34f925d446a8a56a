import PreferenceModel
import PropertyList
import Synchronization

/// What an owner knows of the cloud.
struct CloudRules {
  /// The keys that belong in the cloud.
  var keys = CloudKeyPatterns()
  /// How much is in the cloud; nil: nothing has been changed there yet.
  var usage: CloudUsage?
}

// The limits of the cloud, and the keys that belong there.

extension LocalPlaces {
  /// Sets which keys belong in the cloud. Later changes of them go there.
  public func setCloudKeys(_ keys: CloudKeyPatterns) { cloud.withLock { $0.keys = keys } }

  public func belongsInCloud(_ key: Key, of domain: DomainName) -> Bool {
    cloud.withLock { $0.keys.contain(key, of: domain) }
  }

  /// Throws EFBIG or EDQUOT where the user's edits would exceed the limits of the cloud. An intent
  /// that names an edit of its own is not the user's: it brings what the server has. Cost: nothing
  /// for edits of other places; the first time in the cloud, all values there are counted.
  func checkLimits(of items: [Changeset.Item], _ intent: Intent) throws(EngineError) {
    guard items.contains(where: { $0.location.place == .cloud }) else { return }
    if case .edit = intent { return }
    if cloud.withLock({ $0.usage == nil }) {
      let counted = try countedUsage()
      cloud.withLock { $0.usage = counted }
    }
    let refusal = cloud.withLock { cloud -> EngineError? in
      do throws(EngineError) {
        try cloud.usage?.check(items)
        return nil
      } catch {
        return error
      }
    }
    if let refusal { throw refusal }
  }

  /// Counts what has changed in the cloud, if the values there are counted.
  func noteInCloud(_ changeset: Changeset) {
    guard changeset.items.contains(where: { $0.location.place == .cloud }) else { return }
    cloud.withLock { $0.usage?.note(changeset.items) }
  }

  private func countedUsage() throws(EngineError) -> CloudUsage {
    var usage = CloudUsage()
    for domain in try store.domains(in: .cloud) {
      usage.add(domain, try store.snapshot(of: Location(.cloud, domain)).values)
    }
    return usage
  }
}
