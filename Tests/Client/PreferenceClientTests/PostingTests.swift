import Foundation
import PreferenceModel
import PreferenceProtocol
import PreferenceSearch
import PreferenceServer
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing
@testable import PreferenceClient

private let author = Author(number: 5)
private let user = Location(.user, "d")

/// Changes that their program does not wait for, while owners come and go. The process's own
/// environment names the sandbox's directories, so these tests run one after the other.
@Suite("Posted changes", .serialized) struct PostingTests {
  private func withOwner(
    _ body: (Sandbox, Surroundings, OwnedStore) throws -> Void
  ) throws {
    try withSandbox { sandbox in
      for name in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PREFSFS_SYSTEM_DIR"] {
        setenv(name, sandbox.environment[name] ?? "", 1)
      }
      let surroundings = Surroundings(store: sandbox.config)
      try body(sandbox, surroundings, try own(surroundings))
    }
  }

  private func own(_ surroundings: Surroundings) throws -> OwnedStore {
    try OwnedStore(surroundings, writeback: 3600) { _ in }
  }

  private func set(_ key: Key, _ value: Value) -> Intent { .set(key, "d", value, .unknown) }

  @Test("a posted change is read at once in its process, and the owner has it soon")
  func readAtOnce() throws {
    try withOwner { _, surroundings, owner in
      defer { owner.close() }
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      let engine = SearchEngine(places: member)
      let reader = engine.reader(of: "d")
      #expect(try reader.value("K") == nil)
      for number in 0..<1000 as Range<Int64> {
        engine.post([set("K", .integer(WideInteger(number)))], by: author) { _ in }
        #expect(try reader.value("K") == .integer(WideInteger(number)))
        #expect(try engine.keys(of: "d").contains("K"))
        engine.post([.remove("K", "d")], by: author) { _ in }
        #expect(try reader.value("K") == nil)
        #expect(try !engine.keys(of: "d").contains("K"))
      }
      engine.post([set("K", "last")], by: author) { _ in }
      try member.synchronize()
      #expect(try owner.places.find("K", at: user)?.value == "last")
      #expect(try reader.value("K") == "last")
    }
  }

  @Test("when others set a key at the same time, readers end with the owner's value")
  func beside() throws {
    try withOwner { _, surroundings, owner in
      defer { owner.close() }
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      let engine = SearchEngine(places: member)
      let reader = engine.reader(of: "d")
      for round in 0..<1000 as Range<Int64> {
        let other = try WorkerThread(name: "other") {
          _ = try? owner.places.apply(
            [.set("K", "d", .integer(WideInteger(-round)), .unknown)], by: Author(number: 6))
        }
        engine.post([set("K", .integer(WideInteger(round)))], by: author) { _ in }
        for _ in 0..<20 { _ = try reader.value("K") }
        other.join()
        try member.makeDurable()
        #expect(try reader.value("K") == owner.places.find("K", at: user)?.value)
      }
    }
  }

  @Test("a value nested too deep to be read back is refused", arguments: [500, 511])
  func depth(_ depth: Int) throws {
    try withOwner { _, surroundings, owner in
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      let engine = SearchEngine(places: member)
      let value = (1..<depth).reduce(Value.array([])) { value, _ in .array([value]) }
      let told = Mutex<[EngineError.Reason?]>([])
      engine.post([set("K", value)], by: author) { error in
        told.withLock { $0.append(error?.reason) }
      }
      try member.synchronize()
      #expect(told.withLock { $0 } == [depth == 500 ? nil : .system(.invalidArgument)])
      member.close()
      owner.close()
      let next = try own(surroundings)
      defer { next.close() }
      #expect(try next.places.find("K", at: user)?.value == (depth == 500 ? value : nil))
    }
  }

  @Test("after a posted change that is refused, the one before it is read")
  func refusedOverAnother() throws {
    try withOwner { _, surroundings, owner in
      defer { owner.close() }
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      let engine = SearchEngine(places: member)
      let large = Value.data([UInt8](repeating: 0, count: Request.largest))
      engine.post([set("K", 1)], by: author) { _ in }
      engine.post([set("K", large)], by: author) { _ in }
      #expect(try engine.reader(of: "d").value("K") == 1)
    }
  }

  @Test("what is over counts no longer, whichever of three changes of a key is refused")
  func rows() {
    // A step ends the request; a negative number: it was refused.
    let steps: [(ends: [Int], value: Value?)] = [
      ([1], 3), ([-2], 3), ([-3], 2), ([-3, 1], 2), ([-3, -2], 1), ([2, -3], nil),
      ([1, 2, 3], nil), ([3], nil),
    ]
    for step in steps {
      var posted = PostedChanges()
      for serial in 1...3 {
        posted.add(request(UInt64(serial), set("K", .integer(WideInteger(Int64(serial))))))
      }
      for end in step.ends { _ = posted.remove(UInt64(end.magnitude), isRefused: end < 0) }
      #expect(posted.change(of: "K", in: "d")?.value?.value == step.value, "\(step.ends)")
    }
  }

  @Test("the refusals of 20,000 removals of keys that are not there cost no square of their number")
  func manyRefused() {
    var posted = PostedChanges()
    let serials = 1...20_000 as ClosedRange<UInt64>
    let start = Instant.now
    for serial in serials { posted.add(request(serial, .remove(Key("K\(serial)"), "d"))) }
    for serial in serials { _ = posted.remove(serial, isRefused: true) }
    #expect(posted.requests.isEmpty && posted.changes(of: "d") == nil)
    #expect(Instant.now < start.advanced(milliseconds: 5000))
  }

  private func request(_ serial: UInt64, _ intent: Intent) -> PostedChanges.Posted {
    PostedChanges.Posted(serial: serial, intents: [intent], author: author) { _ in }
  }

  @Test("the refusal of a posted change is told, and readers have the value that stays")
  func refused() throws {
    try withOwner { sandbox, surroundings, owner in
      defer { owner.close() }
      sandbox.makeList(sandbox.system + "/managed/d.plist", "dict(K='forced')")
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      let engine = SearchEngine(places: member)
      let reader = engine.reader(of: "d")
      #expect(try reader.value("K") == "forced")
      let told = Mutex<[EngineError.Reason]>([])
      for key in ["K", "Free"] as [Key] {
        engine.post([set(key, "mine")], by: author) { error in
          if let error { told.withLock { $0.append(error.reason) } }
        }
      }
      #expect(try reader.value("K") == "forced")
      let large = Value.data([UInt8](repeating: 0, count: Request.largest))
      engine.post([set("Large", large)], by: author) { error in
        if let error { told.withLock { $0.append(error.reason) } }
      }
      try member.synchronize()
      #expect(told.withLock { $0.count } == 2)
      #expect(told.withLock { $0.contains(.forced) && $0.contains(.system(.fileTooLarge)) })
      #expect(try reader.value("Large") == nil)
      #expect(try reader.value("Free") == "mine")
    }
  }

  @Test("posted changes wait while there is no owner, and the next owner has them in order")
  func overOwners() throws {
    try withOwner { _, surroundings, first in
      _ = try first.places.apply([set("Old", 1)], by: author)
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      let engine = SearchEngine(places: member)
      let reader = engine.reader(of: "d")
      #expect(try reader.value("Old") == 1)
      first.close()
      let next = Mutex<OwnedStore?>(nil)
      let thread = try WorkerThread(name: "next") {
        Instant.sleep(milliseconds: 300)
        let owner = try? OwnedStore(surroundings, writeback: 3600) { _ in }
        next.withLock { $0 = owner }
      }
      // The first call waits for the next owner and returns when the change has been sent.
      engine.post([set("K", 1)], by: author) { _ in }
      #expect(try reader.value("K") == 1)
      engine.post([.remove("Old", "d"), set("K", 2)], by: author) { _ in }
      thread.join()
      let second = try #require(next.withLock { $0 })
      defer { second.close() }
      try member.synchronize()
      #expect(try second.places.find("K", at: user)?.value == 2)
      #expect(try second.places.find("Old", at: user) == nil)
    }
  }

  @Test("an owner that gets posted changes once more carries out none of them twice")
  func repeated() throws {
    try withOwner { _, surroundings, first in
      let origin = { (serial: UInt64) in Origin(client: 77, serial: serial | Origin.ordered) }
      let row: [[Intent]] = [
        [.remove("K", "d")], [set("K", 1)], [set("K", 1)], [set("Other", 1)],
      ]
      let never = Instant(nanoseconds: .max)
      func send(_ member: StoreClient) {
        for (index, intents) in row.enumerated() {
          // The removal of a missing key is refused, every time.
          _ = try? member.apply(
            intents, by: author, origin: origin(UInt64(index + 1)), until: never)
        }
      }
      let next = Mutex<OwnedStore?>(nil)
      var manner = ClientManner()
      manner.start = { () throws(EngineError) in
        let owner = try OwnedStore(surroundings, writeback: 3600) { _ in }
        next.withLock { $0 = owner }
      }
      manner.client = 77
      let member = try StoreClient(surroundings, manner) { _ in }
      defer {
        member.close()
        next.withLock { $0 }?.close()
      }
      let serve = { (index: Int) in
        _ = try? first.places.serve(
          row[index], by: author, origin: origin(UInt64(index + 1)), until: never)
      }
      for index in row.indices { serve(index) }
      _ = try first.places.apply([set("K", 9)], by: author)
      for index in row.indices { serve(index) }
      #expect(try first.places.find("K", at: user)?.value == 9, "the same owner")
      first.close()
      send(member)
      #expect(try member.find("K", at: user)?.value == 9, "the next owner")
    }
  }

  @Test("an owner that ends cleanly carries out what is still in its socket")
  func orderlyEnd() throws {
    try withOwner { _, surroundings, first in
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      let engine = SearchEngine(places: member)
      let text = Value.string(String(repeating: "x", count: 100_000))
      for number in 0..<20 { engine.post([set(Key("K\(number)"), text)], by: author) { _ in } }
      // Does not wait for answers, as the end of the process would not.
      member.close()
      first.close()
      let second = try own(surroundings)
      defer { second.close() }
      #expect(try second.places.keys(at: user).count == 20)
    }
  }
}
