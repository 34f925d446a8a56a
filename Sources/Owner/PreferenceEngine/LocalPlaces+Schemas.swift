import PreferenceModel
import PreferenceSchemas
import PreferenceStore
import PropertyList
import SystemCalls

// What the schemas of domains say of changes. Called under `applying`: schemas are read with the
// lists of their domains, so no disk is waited for.

extension LocalPlaces {
  /// The schema of a domain; nil if there is none.
  func schema(of domain: DomainName) -> Schema? {
    let location = Location(.schema, domain)
    return schemas.entry(of: domain) { [store] in
      guard store.lists.isLoaded(location), let found = try? store.lists.snapshot(of: location)
      else {
        return nil
      }
      return (found.values, found.lastModified)
    }?.schema
  }

  /// Throws `.unfit` if a schema does not allow what an edit sets, unless the key has it already.
  func judge(
    _ items: [Changeset.Item], within budget: PatternBudget
  ) throws(EngineError) {
    for item in items {
      guard let key = item.edit.key, let schema = schema(of: item.location.domain) else { continue }
      try schema.judge(item, within: budget) { () throws(EngineError) in
        try store.lists.find(key, at: item.location)
      }
    }
  }

  /// Logs what a program has set and the schema does not allow, once a key and day, and of 1,000 keys
  /// at most. Programs are not refused.
  func logUnfit(_ items: [Changeset.Item]) {
    for item in items {
      guard case .set(let key, let value, _) = item.edit,
        let schema = schema(of: item.location.domain), schema.isAuthoritative
      else { continue }
      let name = "\(item.location.domain) \(key)"
      guard unfit.withLock({ $0[name].map { $0 <= .now } ?? true }),
        let objection = schema.refusal(of: value, for: key, quotes: false)
      else { continue }
      let isNoted = unfit.withLock { unfit in
        if unfit.count >= 1000 { unfit = unfit.filter { $0.value > .now } }
        guard unfit.count < 1000 else { return false }
        unfit[name] = Instant.now.advanced(seconds: 24 * 3600)
        return true
      }
      guard isNoted else { continue }
      log(.notice("\(name): a program has set what its schema does not allow: \(objection)"))
    }
  }
}
