import Support
import Testing

/// The manual pages, as mandoc(1) judges them.
@Suite("Manual pages") struct ManualPageTests {
  static let pages = [
    "$PREFSFS --man", "defaults help --man", "prefs help --man", "plutil -man",
    "cat $PAGES/prefs-cloud.1",
    "cat $PAGES/prefsd.8", "cat $PAGES/mount.prefsfs.8", "cat $PAGES/preferences.7",
  ]

  @Test("mandoc finds nothing to say, and they have a date", arguments: pages)
  func lint(_ page: String) throws {
    try withSandbox { sandbox in
      let pages = Program.script("debian/man")
      let outcome = sandbox.shell(
        "cd $C; PAGES=\(pages); \(page) > page; mandoc -T lint page; head -1 page")
      #expect(outcome.output.contains(#/^\.TH \S+ \d "\d{4}-\d\d-\d\d" "prefsfs /#), "\(outcome)")
      #expect(outcome.output.split(separator: "\n").count == 1, "\(outcome)")
    }
  }
}
