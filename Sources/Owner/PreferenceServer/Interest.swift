import PreferenceModel

/// What a client is told of: the changes of the domains that it has asked for, or changed. It has
/// nothing of the others, so its first question finds the newest values, and need not wait for a
/// notice: the connection notes the question before the store is asked, and each change is
/// published before the connection is looked at.
///
/// Every client is told of what it may know without having asked for the domain
/// (`Changeset.concernsAll`), and of its own changes. After a change of owners a client asks the
/// next one again for each list that it has read.
///
/// Not thread-safe: the connection's lock guards it.
struct Interest {
  /// Nil: every domain.
  private var domains: Set<DomainName>?

  /// A client that has asked for more domains than this is told of all.
  private static let most = 1024

  init(inAll: Bool) { domains = inAll ? nil : [] }

  /// Notes domains that the client has asked for. Cost: O(new).
  mutating func add(_ new: some Sequence<DomainName>) {
    domains?.formUnion(new)
    if let count = domains?.count, count > Self.most { domains = nil }
  }

  /// Whether the client is told of a change of these domains. Cost: a look-up for each.
  func contains(anyOf changed: Set<DomainName>) -> Bool {
    domains.map { !changed.isDisjoint(with: $0) } ?? true
  }
}

extension Changeset {
  /// Whether every client hears of the change. A domain may have come to a place, or gone, so that
  /// the listings of places are others; lists may be readable again; the settings of the store are
  /// others, or the account of the cloud, of which programs are notified that have never read it.
  var concernsAll: Bool {
    !invalidated.isEmpty
      || items.contains { item in
        switch item.edit {
        case .createDomain, .removeDomain: return true
        // The first key makes the domain in its place.
        case .set, .splice: if !item.hadKey { return true }
        case .remove, .describe: break
        }
        return item.location.domain == .settings
          || item.location == CloudFacts.notes && item.edit.key == CloudFacts.account
      }
  }
}
