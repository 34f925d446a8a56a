import PreferenceModel

/// The locations of a domain's search list that look-ups ask, in order. The arguments stand after
/// those of `forced`, and the languages before those of `registered`.
final class SearchPath: Sendable {
  let domain: DomainName
  /// The domains that were added to it, first added first.
  let suites: [DomainName]
  /// The locations that precede the arguments.
  let forced: [Location]
  /// All locations that are kept in lists, `forced` among them: what is asked for a key that is no
  /// argument.
  let lists: [Location]
  let registered: [Location]
  /// The domains that are locked. In one, no argument counts, and nothing of the user's.
  let locks: DomainLocks
  let isLocked: Bool

  init(_ domain: DomainName, _ suites: [DomainName], _ locks: DomainLocks) {
    (self.domain, self.suites) = (domain, suites)
    (self.locks, isLocked) = (locks, locks.contain(domain))
    forced = SearchList.forced(domain)
    lists = forced + locks.counting(SearchList.stored(domain, suites: suites), in: domain)
    registered = SearchList.registered(domain)
  }
}
