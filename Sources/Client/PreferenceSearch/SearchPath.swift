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

  init(_ domain: DomainName, _ suites: [DomainName]) {
    (self.domain, self.suites) = (domain, suites)
    forced = SearchList.forced(domain)
    lists = forced + SearchList.stored(domain, suites: suites)
    registered = SearchList.registered(domain)
  }
}
