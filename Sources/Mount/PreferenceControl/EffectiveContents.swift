import EffectiveDocuments
import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls

/// The values that programs read of each domain, as a document in each form: `<domain>.json`,
/// `.plist`, `.env` and `.ini`. Nothing of it can be changed (EROFS).
///
/// A document changes when a value in it does, from whatever row of the search list; a change of the
/// store that leaves all of its values as they are is none of it. For that, the values are known of
/// the domains that somebody has looked at. They are those that the last notice has left, and not
/// those of the last look: that may have seen a change of which the notice is still to come.
///
/// Threads: any. Cost: reading a document looks up every key of its domain; a change of a key looks
/// it up in its domain, and in those that inherit it and were looked at.
final class EffectiveContents: ViewContents {
  let search: SearchEngine

  /// What is known of a domain.
  private struct Known {
    /// Its values; nil if a list was not in memory when they changed.
    var values: ValueDictionary?
    /// When its values last changed without a change of its own lists.
    var modified: Timestamp
  }

  private let known = Mutex<[DomainName: Known]>([:])

  init(search: SearchEngine) { self.search = search }

  // MARK: - Names

  private static func ending(_ form: DocumentForm) -> String { "." + form.rawValue }

  /// The domain that a key names, and the form; nil if no list can have the name.
  private static func document(_ key: Key) -> (domain: DomainName, form: DocumentForm)? {
    let name = key.string
    guard let form = DocumentForm.allCases.first(where: { name.hasSuffix(ending($0)) }) else {
      return nil
    }
    let domain = DomainName(String(name.dropLast(ending(form).count)))
    return domain.canNameList ? (domain, form) : nil
  }

  private static func keys(of domain: DomainName) -> [Key] {
    DocumentForm.allCases.map { Key(domain.string + ending($0)) }
  }

  func keys() throws(EngineError) -> Set<Key> { Set(try search.domains().flatMap(Self.keys)) }

  // MARK: - Reading

  func whole(
    _ key: Key
  ) throws(EngineError) -> (value: Value, text: [UInt8], modified: Timestamp)? {
    guard let (domain, form) = Self.document(key), try search.hasDomain(domain) else { return nil }
    let values = try search.effectiveValues(of: domain)
    var modified = Timestamp(nanoseconds: 0)
    for location in try search.ownLocations(of: domain) where location.place.isPersistent {
      modified = max(modified, (try? search.modified(location)) ?? modified)
    }
    let last = known.withLock { known in
      let domains = known[domain] ?? Known(values: values, modified: modified)
      known[domain] = domains
      return domains.modified
    }
    let bytes = EffectiveDocument.bytes(of: values, as: form)
    return (.data(bytes), bytes, max(modified, last))
  }

  var isReadOnly: Bool { true }

  func apply(
    _ changes: [WholeChange], isComputed: Bool, isJudged: Bool, by author: Author
  ) throws(EngineError) -> Changeset {
    let subject = changes.first.map { "\($0.key): " } ?? ""
    throw EngineError(
      .system(.readOnlyFileSystem),
      "\(subject)a document of what programs read is not written; change the keys of its domain")
  }

  func domainsNeeded(for key: Key?) -> [DomainName] {
    key.flatMap { Self.document($0) }.map { search.domainsNeeded(for: nil, in: $0.domain) } ?? []
  }

  // MARK: - Changes

  func changes(by item: Changeset.Item) -> [Key: KeyEvent.Kind] {
    if case .describe = item.edit { return [:] }
    let source = item.location.domain
    var changed = heirs(of: item).filter { isChanged($0, by: item) }.map {
      ($0, KeyEvent.Kind.changed)
    }
    if let kind = kind(of: source, after: item) { changed.append((source, kind)) }
    let kinds = changed.flatMap { domain, kind in Self.keys(of: domain).map { ($0, kind) } }
    return Dictionary(kinds, uniquingKeysWith: { $1 })
  }

  /// The other domains that were looked at, and may read the change.
  private func heirs(of item: Changeset.Item) -> [DomainName] {
    let source = item.location.domain
    let all = known.withLock { Array($0.keys) }
    return all.filter { domain in
      domain != source
        && (search.inherits(domain, from: source) || Self.changesSuites(of: domain, item))
    }
  }

  /// Whether the edit may change the suites of a domain, or lock it.
  private static func changesSuites(of domain: DomainName, _ item: Changeset.Item) -> Bool {
    let isWhole = item.location.domain == KeptSuites.domain && item.edit.key == nil
    return isWhole || DomainLocks.locations.contains(item.location)
      || KeptSuites.domain(of: item) == domain
  }

  /// What the edit did to the documents of its own domain; nil means nothing.
  private func kind(of domain: DomainName, after item: Changeset.Item) -> KeyEvent.Kind? {
    switch item.edit {
    case .createDomain:
      let others = SearchList.persistentPlaces.filter { $0 != item.location.place }
      let wasThere =
        isAtHand(domain)
        && others.contains { (try? search.modified(Location($0, domain))) != nil }
      return wasThere ? nil : .created
    case .removeDomain where isAtHand(domain) && (try? search.hasDomain(domain)) == false:
      known.withLock { $0[domain] = nil }
      return .removed
    default:
      // A predecessor of this process may have been asked for one that somebody watches.
      let isKnown = known.withLock { $0[domain] != nil }
      return !isKnown || isChanged(domain, by: item) ? .changed : nil
    }
  }

  /// Whether all lists of the domain are in memory, so that a look-up waits for nobody.
  private func isAtHand(_ domain: DomainName) -> Bool {
    guard let lists = search.lists else { return true }
    return search.domainsNeeded(for: nil, in: domain).allSatisfy { lists.isAtHand($0) }
  }

  /// Whether values of a known domain are different after the edit. Keeps the new ones.
  private func isChanged(_ domain: DomainName, by item: Changeset.Item) -> Bool {
    guard isAtHand(domain) else { return note(nil, of: domain) }
    do {
      let old = known.withLock { $0[domain]?.values }
      let isWhole =
        Self.changesSuites(of: domain, item) || item.edit.key == SearchEngine.languagesKey
      guard let key = item.edit.key, let old, !isWhole else {
        let new = try search.effectiveValues(of: domain)
        return new == old ? false : note(new, of: domain)
      }
      let new = try search.effectiveValue(of: key, in: domain)
      if new == old[key] { return false }
      return known.withLock { known in
        known[domain]?.values?[key] = new
        known[domain]?.modified = .now
        return true
      }
    } catch {
      return note(nil, of: domain)
    }
  }

  private func note(_ values: ValueDictionary?, of domain: DomainName) -> Bool {
    known.withLock { $0[domain] = Known(values: values, modified: .now) }
    return true
  }
}
