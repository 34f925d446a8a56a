import Foundation
import PreferenceModel
import PropertyList
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

/// What a store has acknowledged, and the changes that failed.
private struct Promises {
  var values: [Location: ValueDictionary] = [:]
  /// Changes that threw. After a crash they may have happened or not.
  var open: [[Changeset.Item]] = []

  /// Adds a changeset that was acknowledged.
  mutating func keep(_ items: [Changeset.Item]) {
    for item in items {
      switch item.edit {
      case .set(let key, let value, _): values[item.location, default: [:]][key] = value
      case .remove(let key): values[item.location, default: [:]][key] = nil
      case .splice(let key, let splice):
        guard case .string(let text)? = values[item.location]?[key] else { continue }
        let bytes = Array(text.utf8)[..<splice.offset] + splice.bytes
        values[item.location]?[key] = .string(String(decoding: bytes, as: UTF8.self))
      case .createDomain, .describe: break
      case .removeDomain: values[item.location] = [:]
      }
    }
  }

  /// Returns the promises for the case that the open changeset happened after all.
  func fulfilled(_ open: [Changeset.Item]) -> Promises {
    var promises = self
    promises.keep(open)
    return promises
  }
}

/// The steps that a store is taken through: sets in two domains, a value that grows, a move from
/// one domain to the other, and rewrites of lists in between.
private struct Life {
  static let first = Location(.user, "first")
  static let second = Location(.host, "second")

  enum Step {
    case commit([Changeset.Item])
    case checkpoint(Location)
    case synchronize
  }

  static func set(_ key: Key, _ value: Value, _ location: Location = first) -> Changeset.Item {
    Changeset.Item(location, .set(key, value, .canonical))
  }

  static func append(_ count: Int, to base: Int) -> Changeset.Item {
    let splice = Splice(
      base: base, offset: base, bytes: Array(repeating: 0x61, count: count), count: base + count,
      isBare: false)
    return Changeset.Item(first, splice.map { .splice("Long", $0) } ?? .createDomain)
  }

  static let steps: [Step] = [
    .commit([set("A", 1)]), .synchronize, .commit([set("B", "two")]), .checkpoint(first),
    .commit([set("A", 2), set("C", [1, ["x": true]], second)]), .commit([set("D", 3, second)]),
    .checkpoint(second), .commit([Changeset.Item(first, .remove("B"))]),
    .commit([set("Long", .string(String(repeating: "long", count: 2000)))]),
    .commit([append(400, to: 8000)]), .commit([append(80, to: 8400)]), .checkpoint(first),
    .commit([append(4, to: 8480)]),
    // Larger than a file of the journal.
    .commit([set("Large", .data(Array(repeating: 7, count: 1 << 20)))]), .commit([set("A", 4)]),
    .checkpoint(second), .commit([set("A", 5)]), .checkpoint(first), .commit([set("A", 6)]),
    .synchronize,
    .commit([
      set("Moved", 1, second), Changeset.Item(first, .remove("A")),
      Changeset.Item(first, .remove("Large")),
    ]),
    .checkpoint(first), .checkpoint(second), .commit([set("E", 6)]), .checkpoint(first),
  ]

  /// Opens a store and takes the steps until `isOver`. A change that throws stays open, and the
  /// next step is taken.
  static func run(
    _ sandbox: Sandbox, _ promises: inout Promises, isOver: () -> Bool
  ) {
    guard let store = try? Store(TestStore.layout(sandbox), log: { _ in }) else { return }
    for step in steps where !isOver() {
      do {
        switch step {
        case .commit(let items):
          promises.open.append(items)
          _ = try store.commit(items)
          promises.open.removeLast()
          promises.keep(items)
        case .checkpoint(let location): try store.checkpoint(location)
        case .synchronize: try store.journal.synchronize()
        }
      } catch {}
    }
  }
}

/// A judge for `Interposition`, which records the calls and decides about each.
private final class Plan: Sendable {
  private let calls = Mutex<[Interposition.Call]>([])
  private let decide: @Sendable (Int, Interposition.Call) -> Interposition.Verdict

  init(_ decide: @escaping @Sendable (Int, Interposition.Call) -> Interposition.Verdict) {
    self.decide = decide
  }

  var all: [Interposition.Call] { calls.withLock { $0 } }

  func verdict(_ call: Interposition.Call) -> Interposition.Verdict {
    let index = calls.withLock { calls in
      calls.append(call)
      return calls.count - 1
    }
    return decide(index, call)
  }
}

@Suite("Store: injected faults") struct InjectedFaultTests {
  /// Takes the steps without a fault, and returns the positions of the calls of these names.
  private func changes(_ names: Set<String>) throws -> [Int] {
    let plan = Plan { _, _ in .proceed }
    try withSandbox { sandbox in
      var promises = Promises()
      Interposition.with(plan.verdict) { Life.run(sandbox, &promises) { false } }
      #expect(promises.open.isEmpty)
      try check(sandbox, promises, "no fault")
    }
    return plan.all.indices.filter { names.contains(plan.all[$0].name) }
  }

  /// Checks that every list on the disk can be read, that a new store has what was promised, and
  /// that it goes on working.
  private func check(_ sandbox: Sandbox, _ promises: Promises, _ title: String) throws {
    for path in try sandboxLists(sandbox) {
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
      #expect(throws: Never.self, "\(title): \(path)") { try Document.read(bytes) }
    }
    let store = try Store(TestStore.layout(sandbox), log: { _ in })
    let possible = [promises] + promises.open.suffix(1).map { promises.fulfilled($0) }
    var found: [Location: ValueDictionary] = [:]
    for location in [Life.first, Life.second] {
      let snapshot = try store.lists.snapshot(of: location)
      for key in snapshot.keys { found[location, default: [:]][key] = snapshot[key] }
    }
    #expect(
      possible.contains {
        $0.values.filter { !$0.value.isEmpty } == found.filter { !$0.value.isEmpty }
      },
      "\(title)")
    // The store goes on working.
    _ = try store.commit([Life.set("After", 1)])
    try store.checkpoint(Life.first)
    #expect(sandbox.evaluate(sandbox.config + "/first.plist", "d['After']") == "1", "\(title)")
    let files = try FileManager.default.contentsOfDirectory(atPath: sandbox.config)
    #expect(!files.contains { $0.hasPrefix(".prefsfs-") }, "\(title): \(files)")
  }

  private func sandboxLists(_ sandbox: Sandbox) throws -> [String] {
    let files = FileManager.default
    let host = sandbox.config + "/ByHost"
    return [sandbox.config, host].flatMap { directory in
      ((try? files.contentsOfDirectory(atPath: directory)) ?? []).filter { $0.hasSuffix(".plist") }
        .map { "\(directory)/\($0)" }
    }
  }

  static let changing: Set<String> = [
    "open", "write", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir", "fchmod",
  ]

  @Test("a crash after any single call loses nothing acknowledged", arguments: [false, true])
  func crashes(tearsWrites: Bool) throws {
    for last in try changes(tearsWrites ? ["write"] : Self.changing) {
      try withSandbox { sandbox in
        let plan = Plan { index, _ in
          if index < last { return .proceed }
          if index == last { return tearsWrites ? .shorten(9) : .proceed }
          return .fail(.inputOutput)
        }
        var promises = Promises()
        Interposition.with(plan.verdict) {
          Life.run(sandbox, &promises) { plan.all.count > last + 1 }
        }
        let call = plan.all[last]
        try check(sandbox, promises, "crash after call \(last), \(call.name) \(call.path)")
      }
    }
  }

  static let faults: [(name: String, errno: Errno, calls: Set<String>)] = [
    ("no space", .noSpace, ["write", "open"]),
    ("fsync fails", .inputOutput, ["fsync", "fdatasync"]),
    ("rename, unlink, truncate fail", .inputOutput, ["rename", "unlink", "ftruncate"]),
  ]

  @Test("any single call that fails loses nothing acknowledged", arguments: faults.indices)
  func single(_ index: Int) throws {
    let (name, errno, calls) = Self.faults[index]
    for bad in try changes(calls) {
      try withSandbox { sandbox in
        let plan = Plan { index, _ in index == bad ? .fail(errno) : .proceed }
        var promises = Promises()
        Interposition.with(plan.verdict) { Life.run(sandbox, &promises) { false } }
        // A change that was refused must not happen later.
        promises.open = []
        let call = plan.all[bad]
        try check(sandbox, promises, "\(name) at call \(bad), \(call.name) \(call.path)")
      }
    }
  }

  @Test("short writes and interrupted calls do no harm")
  func harmless() throws {
    let random = Mutex(SystemRandomNumberGenerator())
    let plan = Plan { _, call in
      if random.withLock({ Bool.random(using: &$0) }) { return .fail(.interrupted) }
      return call.name == "write" ? .shorten(4093) : .proceed
    }
    try withSandbox { sandbox in
      var promises = Promises()
      Interposition.with(plan.verdict) { Life.run(sandbox, &promises) { false } }
      #expect(promises.open.isEmpty)
      try check(sandbox, promises, "interrupted")
    }
  }

  @Test("after an fdatasync that failed, the journal is written again before the next one")
  func doubtful() throws {
    try withSandbox { sandbox in
      let store = try Store(TestStore.layout(sandbox), log: { _ in })
      _ = try store.commit([Life.set("K", 1)])
      let fails = Plan { _, call in
        call.name == "fdatasync" ? .fail(.inputOutput) : .proceed
      }
      var failure: EngineError?
      do {
        try Interposition.with(fails.verdict) { try store.journal.synchronize() }
      } catch let error as EngineError {
        failure = error
      }
      #expect(failure?.reason == .system(.inputOutput))
      let plan = Plan { _, _ in .proceed }
      try Interposition.with(plan.verdict) { try store.journal.synchronize() }
      let synchronized = plan.all.last { $0.name == "fdatasync" }
      let path = try #require(synchronized?.path)
      #expect(plan.all.contains { $0.name == "write" && $0.path == path })
    }
  }

  @Test("a process that asks whether the store is owned keeps no owner from it")
  func asked() throws {
    try withSandbox { sandbox in
      let path = sandbox.state + "/s/lock"
      // Somebody else has the lock at the first try.
      let isTaken = Atomic<Bool>(true)
      let plan = Plan { _, call in
        guard call.name == "flock", call.path == path else { return .proceed }
        return isTaken.exchange(false, ordering: .relaxed) ? .fail(.wouldBlock) : .proceed
      }
      let store = try Interposition.with(plan.verdict) {
        try Store(TestStore.layout(sandbox), log: { _ in })
      }
      #expect(plan.all.filter { $0.name == "flock" && $0.path == path }.count == 2)
      _ = try store.commit([Life.set("K", 1)])
    }
  }
}

@Suite("Store: numbers of calls") struct CallCountTests {
  private func count(_ body: () throws -> Void) rethrows -> [String: Int] {
    let plan = Plan { _, _ in .proceed }
    try Interposition.with(plan.verdict, body)
    return plan.all.reduce(into: [:]) { $0[$1.name, default: 0] += 1 }
  }

  @Test("the first key of a domain reads its list once, the next key makes no call")
  func firstRead() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "{f'key{i}': i for i in range(5000)}")
      let test = try TestStore(sandbox)
      let calls = try count { _ = try test.get("key17") }
      // One open is that of the list, the other that of its metadata, which does not exist.
      #expect(calls["open"] == 2)
      let again = try count { _ = try test.get("key18") }
      #expect(again.isEmpty)
    }
  }

  @Test("each set makes one write, and all of them one rewrite of the list")
  func sets() throws {
    try withSandbox { sandbox in
      let test = try TestStore(sandbox)
      try test.set("K", 0)
      let calls = try count {
        for number in 1...100 { try test.set("K", .integer(WideInteger(Int64(number)))) }
      }
      #expect(calls == ["write": 100])
      let rewrite = try count { try test.store.checkpoint(TestStore.user) }
      // One rename is that of the list, the other that of its metadata.
      #expect(rewrite["rename"] == 2)
      let nothing = try count { try test.store.checkpoint(TestStore.user) }
      #expect(nothing.isEmpty)
      let same = try count { try test.set("K", 100) }
      #expect(same["write"] == nil)
    }
  }
}
