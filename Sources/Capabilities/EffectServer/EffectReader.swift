import PreferenceEffects
import PreferenceModel
import PreferenceSearch
import PropertyList

/// Reads the values that a rule is about, as programs read them.
///
/// A key without `*` counts whatever row has it. A pattern with `*` names keys of the domain's
/// effective document, not what every domain inherits.
public struct EffectReader: Sendable {
  private let engine: SearchEngine

  /// Creates a reader over a search list without arguments.
  public init(_ engine: SearchEngine) { self.engine = engine }

  /// The values of the rule's keys. Waits for the owner, and for disks. Cost: O(keys of its
  /// domains), and a listing of all domains for a pattern of domains.
  public func values(of rule: EffectRule) throws(EngineError) -> [EffectKey: Value] {
    var values: [EffectKey: Value] = [:]
    for pattern in rule.patterns {
      let literal = pattern.literalDomain.map { Set([$0]) }
      let domains = if let literal { literal } else { try engine.domains() }
      for domain in domains where pattern.matches(domain) {
        if let key = pattern.literalKey {
          values[EffectKey(domain, key)] = try engine.resolve(key, in: domain)?.value
          continue
        }
        for (key, value) in try engine.effectiveValues(of: domain) where pattern.matches(key) {
          values[EffectKey(domain, key)] = value
        }
      }
    }
    return values
  }

  /// Whether a change may change the rule's values.
  public func concerns(_ rule: EffectRule, _ changeset: Changeset) -> Bool {
    if changeset.invalidated.contains(where: { isAbout(rule, $0.domain, nil) }) { return true }
    return changeset.items.contains { isAbout(rule, $0.location.domain, $0.edit.key) }
  }

  private func isAbout(_ rule: EffectRule, _ domain: DomainName, _ key: Key?) -> Bool {
    // Which suites a domain has is a setting, and languages have values of other keys.
    if domain == .settings || key == SearchEngine.languagesKey { return true }
    return rule.patterns.contains { pattern in
      if let key, !pattern.matches(key) { return false }
      if domain == .global || pattern.matches(domain) { return true }
      guard let own = pattern.literalDomain else { return true }
      return engine.inherits(own, from: domain)
    }
  }
}
