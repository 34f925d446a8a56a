import PreferenceEffects
import PreferenceModel
import PropertyList

/// Asks for consent before a document sets rules: they run commands, and other keys are only data.
enum RuleConsent {
  /// Prints what the rules of a document run and write. Throws unless the command line allows rules,
  /// or the domain neither has some nor brings some.
  /// - Parameters:
  ///   - values: what the document says of the domain.
  ///   - deed: what is refused, e.g. `apply machine.json`.
  static func require(
    _ values: ValueDictionary, of domain: DomainName, _ isAllowed: Bool, _ deed: String
  ) throws(Refusal) {
    guard domain.bringsRules, !values.isEmpty else { return }
    for (name, value) in values.sorted(by: { $0.key < $1.key }) where domain == .effects {
      let entries = value.dictionary ?? [:]
      for (entry, verb) in [(Key("Run"), "runs"), ("Write", "writes")] {
        guard let value = entries[entry] else { continue }
        Output.write(line: "\(name) \(verb) \(ValueDescription.line(of: value, false))")
      }
    }
    if isAllowed { return }
    let what = domain == .effects ? "sets rules of" : "sets \(domain), which brings rules of"
    throw Refusal(
      message: "Could not \(deed); nothing was changed",
      detail: "it \(what) \(DomainName.effects), which run commands; --rules allows that")
  }
}
