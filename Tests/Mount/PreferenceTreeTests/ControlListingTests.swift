import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Listings of the control directory") struct ControlListingTests {
  /// A control directory with a directory of many names, which counts how often they are asked for.
  private final class Control: ControlService {
    let asked = Mutex(0)
    let isReady = Mutex(false)
    let preferences: any Engine = SearchEngine(places: MemoryPlaces())
    let absent: Value = "absent"

    private func names() -> Set<Key> {
      asked.withLock { $0 += 1 }
      return Set((0..<2000).map { Key("K\($0)") })
    }

    func root(adding own: [Key: ControlEntry]) -> ControlDirectory {
      let isReady = { @Sendable [self] in self.isReady.withLock { $0 } }
      let past = Preparation("past", isPast: true, isReady: isReady) {}
      let many = ControlDirectory(need: .prepared(past), names: self.names()) { key in
        ControlEntry { .text(key.string) }
      }
      return ControlDirectory(own.merging(["many": ControlEntry(.directory(many))]) { $1 })
    }

    func machineRoot() -> ControlDirectory { root(adding: [:]) }
    func status() -> ValueDictionary { [:] }
    func release() {}
  }

  private let control = Control()
  private let forest: Forest
  private let many: NodeID

  init() throws {
    forest = Forest(
      .preferences, engine: control.preferences, service: control, options: TreeOptions(),
      author: Author(number: 1)
    ) { _ in }
    var node = NodeID.root
    for name in [".prefs", "many"] {
      guard case .found(let entry) = try forest.lookup(node, Array(name.utf8), now: .now) else {
        throw TreeError.missing
      }
      node = entry.node
    }
    many = node
    control.asked.withLock { $0 = 0 }
  }

  @Test("a listing is made once for all requests that read it, and anew for who begins")
  func once() throws {
    var (cookie, count) = (0 as UInt64, 0)
    while let part = try? forest[many].list(many, after: cookie, since: nil).prefix(30),
      let last = part.last
    {
      (cookie, count) = (last.cookie, count + part.count)
    }
    #expect(count == 2000 && control.asked.withLock { $0 } == 1)
    _ = try forest[many].list(many, after: 0, since: nil)
    #expect(control.asked.withLock { $0 } == 2)
  }

  @Test("a listing that nobody reads to its end goes with what is known of the past")
  func givenUp() throws {
    for (times, giveUp) in [
      // Nobody has looked for a minute.
      (
        2,
        {
          _ = forest[many].preparationNeeded(at: many, nil)
          let later = Instant.now.advanced(milliseconds: 61_000)
          forest[many].tick(now: Moment(instant: later, time: .now))
        }
      ),
      // Changes were forgotten.
      (
        4,
        {
          let settings = Location(.user, .settings)
          forest[many].changed(Changeset(invalidating: settings), now: .now)
        }
      ),
    ] as [(Int, () -> Void)] {
      let first = try #require(try forest[many].list(many, after: 0, since: nil).first)
      giveUp()
      _ = try forest[many].list(many, after: first.cookie, since: nil)
      #expect(control.asked.withLock { $0 } == times)
    }
    forest[many].forget(many, 1)
    #expect(throws: TreeError.missing) { try forest[many].list(many, after: 3, since: nil) }
  }
  @Test("what a directory needs is asked for until it is ready, by its name")
  func preparation() {
    #expect(forest[many].preparationNeeded(at: many, nil)?.name == "past")
    #expect(forest[many].preparationNeeded(at: .root, nil) == nil)
    control.isReady.withLock { $0 = true }
    #expect(forest[many].preparationNeeded(at: many, nil) == nil)
  }
}
