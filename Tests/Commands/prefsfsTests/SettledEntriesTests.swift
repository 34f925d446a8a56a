import Testing

@testable import FUSEDriver

/// Up to which change the invalidator's two threads have settled entries.
@Suite("Settled entries") struct SettledEntriesTests {
  @Test("entries are settled when both threads have done their part, and nothing takes that back")
  func both() {
    var settled = SettledEntries()
    #expect(settled.note(pages: 1) == nil)
    // A change from before the driver, which has no version.
    #expect(settled.note(pages: 0) == nil)
    #expect(settled.note(entries: 1) == 1)
    #expect(settled.note(entries: 0) == nil)
    #expect(settled.note(entries: 7) == nil)
    #expect(settled.note(pages: 5) == 5)
    #expect(settled.note(pages: 9) == 7)
  }
}
