import PreferenceModel
import PreferenceSchemas
import PropertyList
import SystemCalls

// Schemas.

extension SearchEngine {
  /// The schema of a domain; nil if there is none. Cost: a hash look-up; the first time, the
  /// schema's file is asked for, and O(its keys).
  public func schema(of domain: DomainName) -> Schema? { schemaEntry(of: domain)?.schema }

  func schemaEntry(of domain: DomainName) -> SchemaTable.Entry? {
    guard usesSchemas else { return nil }
    let location = Location(.schema, domain)
    return schemas.entry(of: domain) {
      // A caller with a reader of lists must not wait.
      if lists != nil, !places.isLoaded(location) { return nil }
      do throws(EngineError) {
        let values = try places.values(at: location)
        let modified = values.isEmpty ? nil : try places.modified(location)
        return (values, modified ?? Timestamp(nanoseconds: 0))
      } catch {
        return nil
      }
    }
  }

  /// The default that the schema of the domain, or of the global domain, gives.
  func fallback(of key: Key, in domain: DomainName) -> Resolution? {
    for location in SearchList.schemas(domain) {
      if let found = schemaEntry(of: location.domain)?.fallback(of: key) {
        return Resolution(found, location: location)
      }
    }
    return nil
  }

  public func newKind(
    of key: Key, in domain: DomainName
  ) -> (kind: Kind, isCertain: Bool)? {
    guard let schema = schemaEntry(of: domain)?.schema, let kind = schema[key]?.kind else {
      return nil
    }
    return (kind, schema.isAuthoritative)
  }

  public func summary(of key: Key, in domain: DomainName) -> String? {
    guard let known = schemaEntry(of: domain)?.schema[key] else { return nil }
    let text = known.summary.isEmpty ? known.title : known.summary
    return text.isEmpty ? nil : text
  }

  /// What the schema of the domain says of a key, and what is read now, as `prefs describe` writes
  /// it; nil if no schema has the key.
  public func description(of key: Key, in domain: DomainName) throws(EngineError) -> String? {
    guard let known = schema(of: domain)?[key] else { return nil }
    return known.text(present: try present(known, in: domain))
  }

  /// What is read now of a key, e.g. "now 8 (user)"; nil if nothing is set but the default.
  public func present(_ known: SchemaKey, in domain: DomainName) throws(EngineError) -> String? {
    guard let found = try resolve(known.name, in: domain), found.location.place != .schema else {
      return nil
    }
    let value = known.hasSecrets ? "(secret)" : ValueDescription.line(of: found.value, false)
    let source = found.location.source(seenFrom: domain)
    let problem = known.objection(to: found.value).map { ": \($0)" } ?? ""
    return "now \(value) (\(source)\(found.isForced ? ", forced" : ""))\(problem)".printable()
  }
}
