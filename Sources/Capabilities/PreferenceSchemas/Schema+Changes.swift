import PreferenceModel
import PropertyList

extension Schema {
  /// Throws `.unfit` if the schema is authoritative and does not allow what an edit sets, unless
  /// the key has that value already. The sentence does not have the value.
  /// - Parameters:
  ///   - budget: what the patterns of the whole transaction may take.
  ///   - present: reads what the key has at the edit's location.
  package func judge(
    _ item: Changeset.Item, within budget: PatternBudget,
    _ present: () throws(EngineError) -> StoredValue?
  ) throws(EngineError) {
    guard isAuthoritative, let key = item.edit.key, let known = self[key],
      let value = try Self.changed(item.edit, known, present),
      let objection = known.objection(to: value, quotes: false, within: budget)
    else { return }
    throw EngineError(.unfit, domain: item.location.domain, key: key, objection)
  }

  /// The value that the edit gives its key; nil if it is the present one, or nothing is to be
  /// judged.
  private static func changed(
    _ edit: Edit, _ known: SchemaKey, _ present: () throws(EngineError) -> StoredValue?
  ) throws(EngineError) -> Value? {
    switch edit {
    case .set(_, let value, _): return try present()?.value == value ? nil : value
    case .splice(_, let splice):
      // The type stays; a long text is made whole only if its characters matter.
      guard known.pattern != nil || known.hasBindingChoices else { return nil }
      if splice.count > Pattern.longestText {
        // Too long for a pattern, and no choice has so many characters.
        return known.hasBindingChoices ? .string("\0") : nil
      }
      let old = try present()
      return old.flatMap { $0.accepts(splice) ? $0.applying(splice).value : nil }
    case .remove, .describe, .createDomain, .removeDomain: return nil
    }
  }
}
