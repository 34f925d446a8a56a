import Testing

@testable import DefaultsCommand

/// Help and manual page say the same, and leave no verb out.
@Suite("Manual") struct ManualTests {
  @Test("every verb is in the help and in the page", arguments: Verb.allCases)
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
