import PreferenceTree
import Testing

@testable import FUSEDriver

/// Which pages are dropped before a reply, and when they are not, so that no two replies wait for
/// each other.
@Suite("Dropped pages") struct DroppedPagesTests {
  private let file = NodeID(rawValue: 5)
  /// The same key, in other trees of the mount.
  private let second = NodeID(rawValue: 1 << 48 | 7)
  private let third = NodeID(rawValue: 2 << 48 | 9)

  private func changes(_ files: [NodeID]) -> [Effect] {
    files.flatMap { [.invalidateAttributes($0), .invalidateContents($0)] }
  }

  @Test("pages in other trees are dropped before the reply, once until somebody reads them")
  func otherTrees() {
    var pages = DroppedPages()
    let effects = changes([file, second, third])
    #expect(pages.filesDropped(with: file, effects, locked: []) == [second, third])
    pages.noteDrop(of: [second, third], before: 1)
    // The thread may not have dropped them yet.
    #expect(pages.filesDropped(with: file, effects, locked: []) == [second, third])
    pages.noteDrop(of: [second, third], before: 2)
    pages.noteDone(before: 1)
    #expect(pages.isDropping && pages.isDropping(anyOf: [second]))
    pages.noteDone(before: 2)
    #expect(!pages.isDropping && pages.allAwaited.isEmpty)
    #expect(pages.filesDropped(with: file, effects, locked: []).isEmpty)
    #expect(pages.filesDropped(with: file, changes([file]), locked: []).isEmpty)
  }

  @Test("no reply waits for pages that another reply keeps locked, nor behind them")
  func locked() {
    var pages = DroppedPages()
    // The reply to a change of the first file waits for the second one's pages.
    #expect(pages.filesDropped(with: file, changes([file, second]), locked: []) == [second])
    pages.noteDrop(of: [second], before: 1)
    // A change of the second file, which may keep these locked, waits for no pages at all.
    let effects = changes([file, second, third])
    #expect(pages.filesDropped(with: second, effects, locked: [file]).isEmpty)
    // Nor does one that comes while its reply is held.
    #expect(pages.filesDropped(with: third, effects, locked: [file, second]).isEmpty)
    pages.noteDone(before: 1)
    // Those of a file whose reply is held are dropped later; others are not behind them.
    #expect(pages.filesDropped(with: second, effects, locked: [file]) == [third])
  }
}
