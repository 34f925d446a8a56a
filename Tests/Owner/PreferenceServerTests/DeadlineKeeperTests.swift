import PreferenceDeclarations
import PreferenceModel
import Support
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceServer

@Suite("Deadlines that the owner meets") struct DeadlineKeeperTests {
  /// Two declarations whose deadlines are over; a list of one of them cannot be read.
  private static let ledger = """
    {'a': {'bad': {'K': 1}}, 'b': {'d': {'K': 1}},
     '.domain/bad': {'names': ['a'], 'before': [dict(place='user', domain='bad', path=['K'])]},
     '.domain/d': {'names': ['b'], 'before': [dict(place='user', domain='d', path=['K'])]},
     '.deadlines': {name: dict(boot='one', uptime=0, time=0, length=0) for name in 'ab'}}
    """

  @Test("one that cannot be met is kept and tried again, and the others are met")
  func unreadable() throws {
    try withServedStore(prepare: {
      $0.makeList($0.config + "/prefsfs.declared.plist", Self.ledger)
      $0.makeList($0.config + "/d.plist", "dict(K=1, Other=2)")
      $0.shell("echo broken > $C/bad.plist")
    }) { (served: ServedStore) throws -> Void in
      let lines = SendableLines()
      let keeper = DeadlineKeeper(served.places) { lines.add($0) }
      keeper.begin()
      #expect(keeper.hasDeadline)
      #expect(try Set(Declarations(served.places).deadlines().keys) == ["a"])
      #expect(try served.places.find("K", at: Location(.user, "d")) == nil)
      #expect(lines.all.filter { $0.contains("cannot be met") }.count == 1, "\(lines.all)")
    }
  }
}

/// Lines that a thread logs.
private final class SendableLines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  func add(_ line: LogLine) { lines.withLock { $0.append(line.text) } }
}
