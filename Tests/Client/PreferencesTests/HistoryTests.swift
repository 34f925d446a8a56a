import Foundation
import Support
import Testing

import struct Preferences.PreferenceHistory
import class Preferences.UserDefaults

@Suite("The history in a program") struct HistoryTests {
  @Test("a program reads the changes of its keys, and takes them back, all or none")
  func undo() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        sync() { ( $SAMPLE sync K $1 & wait ) 2> /dev/null; }
        defaults write prefs-sample K old; sync one; sync two
        $SAMPLE history K; $SAMPLE undo K refuse; $SAMPLE history K | tail -1
        sync three; defaults write prefs-sample K other
        $SAMPLE undo K refuse; $SAMPLE undo K skip; $SAMPLE undo K over
        defaults write prefs-sample MyToken x; $SAMPLE history MyToken; $SAMPLE history None
        """)
      #expect(
        outcome.output == """
          1 command - old true
          2 library old one true
          3 library one two true
          ["K"] old
          4 undo two old true
          ["K": "is other, not three: changed again by 6"]
          [] other
          ["K"] old
          8 command - - false

          """, "\(outcome)")
    }
  }

  @Test("preferences that are kept in memory have no history")
  func inMemory() {
    let history = PreferenceHistory(of: .inMemory())
    #expect(throws: PreferenceHistory.Failure.self) { try history.changes() }
    #expect(throws: PreferenceHistory.Failure.self) { try history.undo(.init(key: "K")) }
  }
}
