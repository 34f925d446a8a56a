import PreferenceModel

/// The locations of a domain's search list that look-ups ask, in order. The arguments stand after
/// those of `forced`, and the languages before those of `registered`.
final class SearchPath: Sendable {
  let domain: DomainName
  /// The locations that precede the arguments.
  let forced: [Location]
  /// All locations that are kept in lists, `forced` among them: what is asked for a key that is no
  /// argument.
  let lists: [Location]
  let registered: [Location]
  /// Whether the domain is locked: no argument counts, and nothing of the user's.
  let isLocked: Bool

  /// - Parameter suites: the domains that were added to the domain, first added first.
  init(_ domain: DomainName, _ suites: [DomainName], _ locks: DomainLocks) {
    (self.domain, isLocked) = (domain, locks.contain(domain))
    forced = SearchList.forced(domain)
    lists = forced + locks.counting(SearchList.stored(domain, suites: suites), in: domain)
    registered = SearchList.registered(domain)
  }
}
