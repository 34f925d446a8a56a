import Foundation
import Support
import Testing

@testable import DefaultsCommand

/// The help and the manual pages of both names of the program.
@Suite("Manual") struct ManualTests {
  @Test("every verb is in the help and the manual page of prefs", arguments: Verb.allCases)
  func verbs(_ verb: Verb) {
    #expect(Manual.prefs.help.contains("  \(verb == .deleteAll ? "delete" : verb.name) "))
    #expect(Manual.prefs.troff.contains(verb.name.replacing("-", with: "\\-")))
  }

  @Test("the help of defaults has Apple's verbs alone, and says where the others are")
  func apple() {
    let apple: [Verb] = [
      .read, .readType, .write, .rename, .delete, .import, .export, .domains, .find, .help,
      .hostIdentifier,
    ]
    #expect(Verb.shown(by: .defaults) == apple)
    for verb in Verb.shown(by: .prefs) {
      #expect(Manual.defaults.help.contains("\n  \(verb.name)") == apple.contains(verb))
    }
    #expect(Manual.defaults.help.contains("prefs help"))
  }

  @Test("the help of a verb has its options and an example", arguments: Verb.allCases)
  func help(_ verb: Verb) {
    let help = Manual.help(of: verb, as: .prefs)
    for option in verb.candidates(isFirst: true) where option != "--help" {
      #expect(help.contains(option), "\(option)")
    }
    let name = verb == .deleteAll ? "delete" : verb.name
    #expect(help.contains("\n  prefs \(name)"))
    let example = help.components(separatedBy: "\nExample:\n").last ?? ""
    #expect(example.contains("prefs \(name)"))
    #expect(!help.split(separator: "\n").contains { $0.count > 100 })
    let asDefaults = Manual.help(of: verb, as: .defaults)
    #expect(asDefaults.contains("\n  defaults \(name)") == verb.isApple)
  }

  @Test("shells offer the options that the help names; some only right behind the verb")
  func candidates() {
    for verb in Verb.allCases {
      #expect(Set(verb.options).isSubset(of: verb.candidates(isFirst: true)), "\(verb)")
    }
    #expect(Verb.read.candidates(isFirst: true).contains("--json"))
    #expect(Verb.read.candidates(isFirst: false).isEmpty)
    for option in ["--since", "--until", "--by", "--via", "--place", "--all", "--json", "--for"] {
      #expect(Verb.history.candidates(isFirst: false).contains(option))
    }
    for option in ["--as", "--dry-run", "--confirm", "--lease", "--rules", "--because"] {
      #expect(Verb.apply.candidates(isFirst: false).contains(option), "\(option)")
    }
    #expect(Set(Verb.help.candidates(isFirst: false)) == ["--man"])
  }

  @Test("the last component of a path is the name")
  func names() {
    for path in ["prefs", "/usr/bin/prefs", "./prefs"] {
      #expect(CommandName(started: path) == .prefs)
    }
    for path in ["defaults", "/usr/bin/prefsfs-defaults", "prefs/defaults", ""] {
      #expect(CommandName(started: path) == .defaults)
    }
  }

  @Test("the program has both names, and each verb's examples are right command lines")
  func program() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd; exec 2>&1; prefs write d K 1; defaults read d K; prefs read d No; defaults undo 99 | cat
        prefs undp; echo $?; prefs < /dev/null | head -n 1; echo ${PIPESTATUS[0]}
        prefs undo --help | head -n 2; defaults help | tail -n 1
        """)
      #expect(
        outcome.output == """
          1
          prefs: The domain/default pair of (d, No) does not exist
          defaults: there is no such change; `history` shows them
          prefs: there is no verb undp; is undo meant?
          usage: prefs [--apple-text] [-currentHost | -host HOST] VERB ...    (more: prefs help)
          255
          usage: prefs [--apple-text] [-currentHost | -host HOST] [VERB ...]
          255
          Usage:
            prefs undo NUMBER|FILTER... [HOW...]
          `prefs help` has the others, such as explain, history and undo; they work here too.

          """, "\(outcome)")
      let lines = Verb.shown(by: .prefs).filter { $0 != .watch }.flatMap { verb in
        verb.manual.example.split(separator: "\n").filter { $0.hasPrefix("$ ") }
          .map { $0.dropFirst(2) }
      }
      let script = lines.map { "(\($0)) < /dev/null > out 2>&1; [ $? != 255 ] || cat out" }
      let wrong = sandbox.shell("cd; set -o pipefail\n" + script.joined(separator: "\n"))
      #expect(wrong.output == "", "\(wrong)")
    }
  }
}
