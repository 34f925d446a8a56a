import PreferenceEffects
import PreferenceModel
import PropertyList

/// Asks for consent before a document sets rules: they run commands, and other keys are only data.
enum RuleConsent {
  /// Prints what the rules of a document run and write. Throws unless the command line allows rules.
  /// - Parameter deed: what is refused, e.g. `apply machine.json`.
  static func require(
    _ rules: ValueDictionary, _ isAllowed: Bool, _ deed: String
  ) throws(Refusal) {
    for (name, value) in rules.sorted(by: { $0.key < $1.key }) {
      let entries = value.dictionary ?? [:]
      for (entry, verb) in [(Key("Run"), "runs"), ("Write", "writes")] {
        guard let value = entries[entry] else { continue }
        Output.write(line: "\(name) \(verb) \(ValueDescription.line(of: value, false))")
      }
    }
    if isAllowed || rules.isEmpty { return }
    throw Refusal(
      message: "Could not \(deed); nothing was changed",
      detail: "it sets rules of \(DomainName.effects), which run commands; --rules allows that")
  }
}
