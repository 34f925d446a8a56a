import PreferenceModel
import PreferenceSearch
import PropertyList
import SystemCalls

/// The suites that are kept for each domain: a key for each domain that exists or has kept suites,
/// and a text with a name in each line. The last line is searched first.
///
/// Setting a text with a line that cannot name a suite is EINVAL. Setting an empty text, or
/// removing the key, keeps no suites.
struct SuiteContents: SeparateContents {
  let search: SearchEngine

  func keys() throws(EngineError) -> Set<Key> {
    let own = try search.keys(of: KeptSuites.domain).compactMap { KeptSuites.domain(of: $0) }
    return Set(try search.domains().filter { $0 != .global }.union(own).map(\.key))
  }

  func whole(
    _ key: Key
  ) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)? {
    let domain = DomainName(key.string)
    guard domain.canNameList, domain != .global else { return nil }
    let kept = try search.resolve(KeptSuites.key(of: domain), in: KeptSuites.domain)
    if kept == nil, try !search.hasDomain(domain) { return nil }
    let names = try search.keptSuites(of: domain)
    let text = names.map { $0.string + "\n" }.joined()
    var modified = kept?.modified
    if modified == nil { modified = try search.modified(domain) }
    return (
      .string(names.map(\.string).joined(separator: "\n")), Array(text.utf8),
      modified ?? Timestamp(nanoseconds: 0)
    )
  }

  func intents(
    toSet key: Key, _ value: Value?, isComputed: Bool
  ) throws(EngineError) -> [Intent] {
    let domain = DomainName(key.string)
    guard domain.canNameList, domain != .global else {
      throw EngineError(.invalidDomain, domain: domain, "a domain of this name has no suites")
    }
    guard let value else { return try search.intents(keeping: [], for: domain) }
    guard case .string(let text) = value else {
      throw EngineError(
        .system(.invalidArgument), domain: domain, "suites are names, one a line")
    }
    let lines = text.split(separator: "\n").map { String($0) }
    for line in lines
    where !DomainName(line).canNameList || [domain, .global].contains(DomainName(line)) {
      throw EngineError(
        .system(.invalidArgument), domain: domain, "\"\(line)\" cannot be a suite of it")
    }
    return try search.intents(keeping: lines.map { DomainName($0) }, for: domain)
  }

  func changes(by item: Changeset.Item) -> [Key: KeyEvent.Kind] {
    let domain = item.location.domain
    switch item.edit {
    case .createDomain, .removeDomain:
      // The list that keeps the suites came, went, or cannot be read: that concerns all.
      let all = domain == KeptSuites.domain ? (try? search.domains()) ?? [] : []
      var changes = Dictionary(uniqueKeysWithValues: all.map { ($0.key, KeyEvent.Kind.changed) })
      changes[domain.key] = item.edit.kindOfDomain
      return changes
    default: return KeptSuites.domain(of: item).map { [$0.key: .changed] } ?? [:]
    }
  }

  func domainsNeeded(for key: Key?) -> [DomainName] {
    [KeptSuites.domain] + (key.map { [DomainName($0.string)] } ?? [])
  }
}
