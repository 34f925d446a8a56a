import PreferenceTree
import SystemCalls
import Testing

@testable import FUSEDriver

@Suite("Saved state of a driver")
struct SavedStateTests {
  @Test("a whole state has the requests that were not answered, and of predecessors the last ones")
  func requests() throws {
    let saved = SavedState(try SharedLog(name: "test"))
    let all = (1...10_000).map { SavedRequest(UInt64($0)) }
    saved.replace(trees: [7], all)
    let estate = try Estate(saved.log.contents, announced: 0)
    #expect(estate.requests.count == 10_000 && estate.trees == [[7]])
    saved.adopt(estate)
    saved.replace(trees: [], [SavedRequest(10_001)])
    let next = try Estate(saved.log.contents, announced: 0).requests
    #expect(next[10_001] != nil && next[10_000] != nil && next[1] == nil && next.count < 9000)
  }

  @Test("what a request has made is saved, and of one that only looked or failed nothing")
  func answers() {
    let node = NodeID(rawValue: 7)
    let attributes = Attributes(
      inode: 1, type: .file, mode: 0o600, size: 0, modified: Timestamp(nanoseconds: 0))
    let entry = Entry(node: node, attributes: attributes)
    #expect(SavedRequest(2, .created(entry, HandleID(rawValue: 8)))?.handle == 8)
    for answer in [Answer.entry(entry), .made(entry)] {
      #expect(SavedRequest(2, answer)?.node == 7)
    }
    for answer in [Answer.done, .written(5)] { #expect(SavedRequest(2, answer)?.node == 0) }
    let others: [Answer] = [.error(.fileExists), .missing(isCacheable: true), .changed(attributes)]
    for answer in others { #expect(SavedRequest(2, answer) == nil) }
  }

  @Test("the log grows by 16 MiB before a whole state replaces it, or less where it rests")
  func growth() throws {
    let saved = SavedState(try SharedLog(name: "test"))
    let name = String(repeating: "a", count: 1 << 20)
    saved.replace(trees: [])
    #expect(!saved.isLong && saved.idleDeadline == nil)
    var count = 0
    while !saved.isLong, count < 20 {
      count += 1
      saved[.announced] = saved.add([Announcement("", nil, name: name, .created)])
      saved.commit()
      #expect(saved.idleDeadline.map { $0 > .now } == true)
    }
    #expect(count == 16)
    saved.replace(trees: [])
    #expect(!saved.isLong && saved.log.count < 1000)
  }

  @Test("a state that has no room is refused by a successor, until it has room again")
  func full() throws {
    let saved = SavedState(try SharedLog(name: "test", largest: 8 << 20))
    saved[.format] = SavedState.format
    let large = [UInt8](repeating: 1, count: 3 << 20)
    saved.replace(trees: large)
    #expect(saved[.format] == SavedState.format)
    // A whole state that does not fit leaves the old one.
    saved.replace(trees: large + large + large)
    #expect(!saved.isIncomplete && saved.log.count > 3 << 20)
    let name = String(repeating: "a", count: 3 << 20)
    while !saved.isIncomplete {
      // It is made at once, so that no whole state has it.
      saved[.announced] = saved.add([Announcement("", nil, name: name, .created)])
      saved.commit()
    }
    #expect(saved.isIncomplete && saved[.format] == 0)
    // It was tried a moment ago, and is tried again although nothing is added.
    #expect(!saved.isLong && saved.idleDeadline.map { $0 > .now } == true)
    saved.replace(trees: large)
    #expect(!saved.isIncomplete && saved[.format] == SavedState.format)
  }
}
