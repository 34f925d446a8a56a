import PreferenceModel
import PropertyList
import SystemCalls

/// Finds the changes that others made while no driver of a mount was there to hear of them, so that
/// its watchers get events of them.
///
/// It may find changes that were announced before: a watcher gets those events twice. Which keys of
/// a list another program has changed is not known: all of them count as changed. It finds nothing
/// in the control directory, no domain that was made or removed, no inherited value that changed,
/// and nothing in a list whose modification time is an old one.
///
/// Threads: any. A call reads lists, and may wait for a disk.
struct MissedChanges {
  let engine: any Engine
  /// Changes before this time were announced.
  let since: Timestamp

  /// Returns the events of the keys in these domains.
  /// - Parameter known: the domains that somebody has looked up, with the keys that somebody has
  ///   looked up. Another key that was changed counts as new, in a domain of at most 1,000 keys; in
  ///   a larger one it has no event.
  func events(in known: [DomainName: Set<Key>]) -> [KeyEvent] {
    known.flatMap { domain, keys in
      let time = try? engine.modified(domain)
      guard (time ?? since) >= since, let present = try? engine.keys(of: domain) else {
        return [KeyEvent]()
      }
      let gone = keys.subtracting(present).filter { isMissing($0, domain) }
      let asked = present.count <= Self.most ? present : present.intersection(keys)
      return asked.compactMap { event(of: $0, domain, isKnown: keys.contains($0)) }
        + gone.map { KeyEvent(domain, $0, .removed) }
    }
  }

  private static let most = 1000

  private func event(of key: Key, _ domain: DomainName, isKnown: Bool) -> KeyEvent? {
    guard let found = try? engine.resolve(key, in: domain), found.modified >= since else {
      return nil
    }
    return KeyEvent(domain, key, isKnown ? .changed : .created)
  }

  /// Whether no place has the key. One that cannot be looked up may be there.
  private func isMissing(_ key: Key, _ domain: DomainName) -> Bool {
    do { return try engine.resolve(key, in: domain) == nil } catch { return false }
  }
}
