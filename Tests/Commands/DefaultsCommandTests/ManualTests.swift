import Testing

@testable import DefaultsCommand

/// The help names every verb and option; the manual page names every verb.
@Suite("Manual") struct ManualTests {
  @Test("every verb is in the help and in the manual page", arguments: Verb.allCases)
  func verbs(_ verb: Verb) {
    let name = verb == .hostIdentifier ? "printHostIdentifier" : verb.rawValue
    #expect(Manual.page.help.contains(name))
    #expect(Manual.page.troff.contains(name.replacing("-", with: "\\-")))
  }

  @Test("every option that a verb takes is in the help", arguments: Verb.allCases)
  func options(_ verb: Verb) {
    for option in verb.options { #expect(Manual.page.help.contains(option), "\(option)") }
  }
}
