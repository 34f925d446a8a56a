import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceHistory

@Suite("Filters of the history") struct HistoryFilterTests {
  @Test("a change that came in a list names the machine, if that is known, and is found by it")
  func machine() {
    var source = ChangeSource(.list)
    #expect(source.text == "list (another program)")
    (source.program, source.unit) = ("box", "between then and now")
    #expect(source.text == "list (another machine), box, between then and now")
    let record = HistoryRecord([], time: Timestamp(nanoseconds: 0), source: source)
    var filter = HistoryFilter()
    filter.by = "box"
    #expect(filter.contains(record))
    filter.by = "case"
    #expect(!filter.contains(record))
  }

  @Test(
    "what a program keeps for itself is state, by the name of its key or its domain",
    arguments: [
      ("a.b", "K", false), ("a.b", "NSWindow Frame main", true), ("a.b", "state", false),
      ("org.xfce.mousepad.state.window", "width", true), ("org.x.state", "K", true),
      ("state", "K", true), ("org.x.history", "K", true), ("org.x.estate", "K", false),
      ("org.x.states", "K", false), ("org.x.State", "K", false),
    ] as [(String, Key, Bool)])
  func state(_ domain: String, _ key: Key, _ isState: Bool) {
    let location = Location(.user, DomainName(domain))
    let record = HistoryRecord(
      [.init(location, key, from: .none, to: .notKept)], time: Timestamp(nanoseconds: 0),
      source: ChangeSource(.command))
    let contents = HistoryContents([.change(record)])
    let changed = RecordedKey(key, at: location)
    var filter = HistoryFilter()
    #expect(filter.contains(changed) == !isState)
    #expect(contents.leftOut(by: filter) == (isState ? 1 : 0))
    #expect(filter.withState.contains(changed))
    filter.key = key
    #expect(filter.contains(changed))
  }

  @Test("who names a domain of state means its keys, but for those that are state by themselves")
  func namedDomain() {
    let location = Location(.user, "org.x.state.window")
    var filter = HistoryFilter()
    filter.domain = location.domain
    #expect(filter.contains(RecordedKey("width", at: location)))
    #expect(!filter.contains(RecordedKey("NSWindow Frame main", at: location)))
  }
}
