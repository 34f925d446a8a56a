import PreferenceEffects
import PreferenceModel
import PropertyList

/// Asks for consent before a document sets rules, which run commands, or the cloud, which sends
/// values away: other keys are only data.
enum RuleConsent {
  /// Prints what the rules of a document run and write. Throws unless the command line has
  /// `--rules`, or the domain needs none.
  /// - Parameters:
  ///   - values: what the document says of the domain.
  ///   - deed: what is refused, e.g. `apply machine.json`.
  static func require(
    _ values: ValueDictionary, of domain: DomainName, _ isAllowed: Bool, _ deed: String
  ) throws(Refusal) {
    guard let reason = domain.consentReason, !values.isEmpty else { return }
    for (name, value) in values.sorted(by: { $0.key < $1.key }) where domain == .effects {
      let entries = value.dictionary ?? [:]
      for (entry, verb) in [(Key("Run"), "runs"), ("Write", "writes")] {
        guard let value = entries[entry] else { continue }
        Output.write(line: "\(name) \(verb) \(ValueDescription.line(of: value, false))")
      }
    }
    if isAllowed { return }
    throw Refusal(
      message: "Could not \(deed); nothing was changed", detail: "\(reason); --rules allows that")
  }
}
