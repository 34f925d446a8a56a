import Foundation
import PreferenceClient
import PreferenceModel
import PreferenceSearch
import PreferenceServer
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

private let author = Author(number: 5)
private let user = Location(.user, "d")

private func own(_ surroundings: Surroundings) throws(EngineError) -> OwnedStore {
  try OwnedStore(surroundings, writeback: 3600) { _ in }
}

/// Owners in this process, in place of `prefsd`: one after the other.
private final class Owners: Sendable {
  private let all = Mutex<[OwnedStore]>([])

  /// How many were started.
  var count: Int { all.withLock { $0.count } }

  func start(_ surroundings: Surroundings) throws(EngineError) {
    let owner = try own(surroundings)
    all.withLock { $0.append(owner) }
  }

  /// Ends the last one.
  func end() { all.withLock { $0.last }?.close() }
}

/// What a process in a store does while owners come and go. The process's own environment names the
/// sandbox's directories, so these tests run one after the other.
@Suite("The client of a store", .serialized) struct StoreClientTests {
  private func withSurroundings(_ body: (Sandbox, Surroundings) throws -> Void) throws {
    try withSandbox { sandbox in
      for name in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PREFSFS_SYSTEM_DIR"] {
        setenv(name, sandbox.environment[name] ?? "", 1)
      }
      try body(sandbox, Surroundings(store: sandbox.config))
    }
  }

  /// Returns a client that starts an owner in this process when there is none.
  private func client(_ surroundings: Surroundings, _ owners: Owners) throws -> StoreClient {
    var manner = ClientManner()
    manner.start = { () throws(EngineError) in try owners.start(surroundings) }
    return try StoreClient(surroundings, manner) { _ in }
  }

  @Test("when the owner ends a client starts the next one, and is told of no change")
  func takeover() throws {
    try withSurroundings { _, surroundings in
      let owners = Owners()
      defer { owners.end() }
      let second = try client(surroundings, owners)
      defer { second.close() }
      #expect(owners.count == 1 && second.isConnected)
      _ = try second.apply([.set("K", "d", 1, .canonical)], by: author)
      #expect(try second.find("K", at: user)?.value == 1)
      let heard = Mutex<[Changeset]>([])
      second.observe(except: author) { notice in heard.withLock { $0.append(notice.changeset) } }
      owners.end()
      _ = try second.apply([.set("K", "d", 2, .canonical)], by: author)
      #expect(owners.count == 2)
      #expect(try second.find("K", at: user)?.value == 2)
      #expect(heard.withLock { $0 } == [])
    }
  }

  @Test("a command starts an owner when it asks, and asks the next one; else it fails every time")
  func command() throws {
    try withSurroundings { _, surroundings in
      let owners = Owners()
      let isOver = Mutex(false)
      var manner = ClientManner()
      manner.isBrief = true
      manner.start = { () throws(EngineError) in
        if isOver.withLock({ $0 }) { throw EngineError(.system(.noSuchFile), "no program") }
        try owners.start(surroundings)
      }
      let command = try StoreClient(surroundings, manner) { _ in }
      #expect(owners.count == 0 && !command.isConnected)
      _ = try command.apply([.set("K", "d", 1, .canonical)], by: author)
      #expect(owners.count == 1)
      owners.end()
      _ = try command.apply([.set("L", "d", 2, .canonical)], by: author)
      #expect(owners.count == 2)
      let told = Mutex<[EngineError?]>([])
      command.post([.set("M", "d", 3, .canonical)], by: author) { error in
        told.withLock { $0.append(error) }
      }
      #expect(told.withLock { $0 } == [nil], "it is over when the call returns")
      #expect(try command.find("K", at: user)?.value == 1)
      #expect(Set(try command.keys(at: user)) == ["K", "L", "M"])
      owners.end()
      isOver.withLock { $0 = true }
      for key in ["K", "L"] as [Key] {
        #expect { try command.find(key, at: Location(.host, "d")) } throws: {
          ($0 as? EngineError)?.reason == .ownerGone
        }
      }
      #expect { try command.apply([.set("K", "d", 4, .canonical)], by: author) } throws: {
        ($0 as? EngineError)?.reason == .ownerGone
      }
    }
  }

  @Test("a lasting client refuses changes before it has an owner, and goes on with the first one")
  func lasting() throws {
    try withSurroundings { _, surroundings in
      let owners = Owners()
      let mayStart = Mutex(false)
      var manner = ClientManner()
      manner.isLasting = true
      manner.start = { () throws(EngineError) in
        if !mayStart.withLock({ $0 }) { throw EngineError(.system(.inputOutput), "not yet") }
        try owners.start(surroundings)
      }
      let client = try StoreClient(surroundings, manner) { _ in }
      defer { client.close() }
      let told = Mutex<[EngineError.Reason?]>([])
      let post = { (value: Value) in
        client.post([.set("K", "d", value, .canonical)], by: author) { error in
          told.withLock { $0.append(error?.reason) }
        }
      }
      post(1)
      #expect(told.withLock { $0 } == [.system(.timedOut)])
      #expect { try client.find("K", at: user) } throws: {
        ($0 as? EngineError)?.reason == .system(.timedOut)
      }
      mayStart.withLock { $0 = true }
      for _ in 0..<500 where !client.isConnected { usleep(10_000) }
      defer { owners.end() }
      post(2)
      try client.makeDurable()
      #expect(told.withLock { $0 } == [.system(.timedOut), nil])
      #expect(try client.find("K", at: user)?.value == 2)
    }
  }

  @Test("the next owner tells a client of changes in the domains that it has read")
  func interest() throws {
    try withSurroundings { _, surroundings in
      let owners = Owners()
      defer { owners.end() }
      let members = [
        try client(surroundings, owners),
        try StoreClient(surroundings, ClientManner()) { _ in },
      ]
      defer { for member in members { member.close() } }
      _ = try members[0].apply([.set("K", "d", 0, .canonical)], by: author)
      for member in members { #expect(try member.find("K", at: user)?.value == 0) }
      owners.end()
      for (number, member) in members.enumerated() {
        let domain = DomainName("other\(number)")
        _ = try member.apply([.set("K", domain, 1, .canonical)], by: author)
      }
      #expect(owners.count == 2)
      for number in 1...20 as ClosedRange<Int64> {
        let value = Value.integer(WideInteger(number))
        _ = try members[0].apply([.set("K", "d", value, .canonical)], by: author)
        #expect(try members[1].find("K", at: user)?.value == value)
      }
    }
  }

  @Test("what changed while there was no owner is told to observers, and readers have it")
  func between() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1, B=1, C=1)")
      sandbox.makeList(sandbox.config + "/gone.plist", "dict(A=1)")
      let first = try own(surroundings)
      let second = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { second.close() }
      let engine = SearchEngine(places: second)
      let reader = engine.reader(of: "d")
      for key in ["A", "B", "C", "D"] as [Key] { _ = try reader.value(key) }
      let heard = Mutex<[Notice]>([])
      second.observe(except: nil) { notice in heard.withLock { $0.append(notice) } }
      first.close()
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=2, C=1, D=4)")
      sandbox.shell("rm $C/gone.plist")
      sandbox.makeList(sandbox.config + "/fresh.plist", "dict(A=1)")
      #expect(try reader.value("A") == 1, "without an owner, known values are read")
      let third = try own(surroundings)
      defer { third.close() }
      for _ in 0..<500 where heard.withLock({ $0.isEmpty }) { usleep(10_000) }
      let notice = try #require(heard.withLock { $0.first })
      #expect(
        Set(notice.events) == [
          KeyEvent("d", "A", .changed), KeyEvent("d", "B", .removed), KeyEvent("d", "D", .created),
        ])
      let domains = notice.changeset.items.filter { $0.edit.key == nil }
      #expect(Set(domains.map(\.location.domain)) == ["gone", "fresh"])
      #expect(try ["A", "B", "C", "D"].map { try reader.value($0) } == [2, nil, 1, 4])
    }
  }

  @Test("a list that was damaged between two owners is an error of its own domain alone")
  func damaged() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      sandbox.makeList(sandbox.config + "/other.plist", "dict(A=1)")
      let owners = Owners()
      defer { owners.end() }
      let second = try client(surroundings, owners)
      defer { second.close() }
      _ = try second.find("A", at: user)
      let heard = Mutex<[Notice]>([])
      second.observe(except: nil) { notice in heard.withLock { $0.append(notice) } }
      sandbox.shell("cp $C/d.plist $C/good; echo broken > $C/d.plist")
      owners.end()
      _ = try second.apply([.set("A", "other", 2, .canonical)], by: author)
      #expect(owners.count == 2)
      #expect { try second.find("A", at: user) } throws: {
        ($0 as? EngineError)?.reason == .unreadable
      }
      #expect(
        heard.withLock { notices in
          notices.contains { $0.changeset.items.contains { $0.edit.key == "A" } }
        })
      sandbox.shell("cp $C/good $C/d.plist")
      for _ in 0..<300 where (try? second.find("A", at: user)) == nil { usleep(10_000) }
      #expect(try second.find("A", at: user)?.value == 1)
    }
  }

  @Test("a client is told that a list became unreadable, and readable again")
  func unreadable() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      let owner = try own(surroundings)
      defer { owner.close() }
      let second = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { second.close() }
      let reader = SearchEngine(places: second).reader(of: "d")
      #expect(try reader.value("A") == 1)
      func wait(_ condition: () -> Bool) {
        for _ in 0..<300 where !condition() { usleep(10_000) }
        #expect(condition())
      }
      sandbox.shell("cp $C/d.plist $C/good; echo broken > $C/d.plist")
      wait { (try? second.find("A", at: user)) == nil && (try? reader.value("A")) == nil }
      sandbox.shell("cp $C/good $C/d.plist")
      wait { (try? second.find("A", at: user)?.value) == 1 && (try? reader.value("A")) == 1 }
    }
  }

  @Test("an owner that only reads serves everybody until somebody wants to change something")
  func readOnlyOwner() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      let readOnly = try OwnedStore(surroundings, readOnly: true) { _ in }
      readOnly.whenGivenUp { Thread { readOnly.close() }.start() }
      let reader = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { reader.close() }
      let owners = Owners()
      defer { owners.end() }
      let writer = try client(surroundings, owners)
      defer { writer.close() }
      #expect(try reader.find("A", at: user)?.value == 1)
      #expect(try writer.find("A", at: user)?.value == 1)
      #expect(owners.count == 0)
      #expect(sandbox.shell("find \(sandbox.state) -type f").output == "", "nothing is written")
      _ = try writer.apply([.set("A", "d", 2, .canonical)], by: author)
      #expect(owners.count == 1)
      for _ in 0..<300 where (try? reader.find("A", at: user))?.value != 2 { usleep(10_000) }
      #expect(try reader.find("A", at: user)?.value == 2, "before any list was written")
    }
  }

  @Test("an owner that only reads ends when one that writes takes its socket")
  func replacedReader() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      let readOnly = try OwnedStore(surroundings, readOnly: true) { _ in }
      let isGivenUp = Mutex(false)
      readOnly.whenGivenUp { isGivenUp.withLock { $0 = true } }
      let owner = try own(surroundings)
      defer { owner.close() }
      for _ in 0..<500 where !isGivenUp.withLock({ $0 }) { usleep(10_000) }
      #expect(isGivenUp.withLock { $0 })
      readOnly.close()
      #expect { try OwnedStore(surroundings, readOnly: true) { _ in } } throws: {
        ($0 as? EngineError)?.reason == .owned
      }
    }
  }

  @Test("when no process becomes the owner, known values are read and changes time out")
  func nobody() throws {
    try withSurroundings { sandbox, surroundings in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(A=1)")
      let first = try own(surroundings)
      let second = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { second.close() }
      #expect(try second.find("A", at: user)?.value == 1)
      first.close()
      let start = Date()
      #expect(try second.find("A", at: user)?.value == 1)
      #expect(Date().timeIntervalSince(start) < 1)
      #expect { try second.apply([.set("A", "d", 2, .unknown)], by: author) } throws: {
        ($0 as? EngineError)?.reason == .system(.timedOut)
      }
      #expect(!second.isAnswering(within: 10))
    }
  }

  @Test("a name that one mount has claimed no other one gets, whatever becomes of the owner")
  func claims() throws {
    try withSurroundings { _, surroundings in
      let owners = Owners()
      defer { owners.end() }
      let (first, second) = (Author(number: 1), Author(number: 2))
      let (one, other) = (try client(surroundings, owners), try client(surroundings, owners))
      defer { other.close() }
      one.addMount(first)
      other.addMount(second)
      #expect(try one.claim("d/K", by: first) && one.claim("d/L", by: first))
      #expect(try !other.claim("d/K", by: second))
      owners.end()
      // The next owner hears of it from the mount that has the name.
      #expect(try !other.claim("d/K", by: second))
      #expect(owners.count == 2)
      // It has gone over to that owner, so that its release goes there at once.
      #expect(try one.claim("d/K", by: first))
      one.release("d/K", by: first)
      #expect(try other.claim("d/K", by: second))
      #expect(try !one.claim("d/K", by: first))
      // The connection ends: nobody has removed the mount.
      one.close()
      for _ in 0..<500 where try !other.claim("d/L", by: second) { usleep(10_000) }
      #expect(try other.claim("d/L", by: second))
    }
  }

  @Test("without an owner a claim times out, and is none")
  func claimOfNobody() throws {
    try withSurroundings { _, surroundings in
      let mount = Author(number: 1)
      let owner = try own(surroundings)
      let member = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { member.close() }
      member.addMount(mount)
      owner.close()
      #expect { try member.claim("d/K", by: mount) } throws: {
        ($0 as? EngineError)?.reason == .system(.timedOut)
      }
      let next = try own(surroundings)
      defer { next.close() }
      let other = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { other.close() }
      other.addMount(Author(number: 2))
      #expect(try other.claim("d/K", by: Author(number: 2)))
    }
  }

  @Test("a reader gives what the search list gives, whichever member changes it, 3,000 times")
  func readers() throws {
    try withSurroundings { _, surroundings in
      let owner = try own(surroundings)
      defer { owner.close() }
      let members = try (0..<3).map { _ in
        try StoreClient(surroundings, ClientManner()) { _ in }
      }
      defer { for member in members { member.close() } }
      let engines = members.map { SearchEngine(places: $0, arguments: ["Fixed": "argument"]) }
      let readers = engines.map { $0.reader(of: "d") }
      let keys: [Key] = ["A", "B", "Fixed", ""]
      var random = SystemRandomNumberGenerator()
      for index in 0..<3000 {
        let engine = engines[index % 3]
        let key = keys[Int.random(in: 0..<4, using: &random)]
        let domain: DomainName = Bool.random(using: &random) ? "d" : .global
        switch Int.random(in: 0..<4, using: &random) {
        case 0: _ = try? engine.apply([.remove(key, domain)], by: author)
        case 1: engine.register([key: .real(Double(index))], for: "d")
        default:
          _ = try? engine.apply(
            [.set(key, domain, .integer(WideInteger(Int64(index))), .unknown)], by: author)
        }
        for (engine, reader) in zip(engines, readers) {
          for key in keys {
            let (kept, found) = (try reader.value(key), try engine.resolve(key, in: "d")?.value)
            if kept != found { Issue.record("\(index): \(key)") }
          }
        }
      }
    }
  }

  @Test("any number of machines may have used the home before this one")
  func stateDirectories() throws {
    try withSurroundings { sandbox, surroundings in
      let usual = surroundings.stateDirectory
      let own = { Surroundings(store: sandbox.config).stateDirectory }
      #expect(own() == usual)
      let note = "printf 'boot\\nmachine\\nhost\\n1\\n2\\n3\\n4\\n5\\n'"
      sandbox.shell(
        "for d in \(usual) $(seq -f '\(usual).%g' 2 70); do mkdir -p $d && \(note) > $d/owner; done"
      )
      #expect(own() == usual + ".71")
      sandbox.shell("rm -r \(usual).5")
      #expect(own() == usual + ".5")
      let owner = try OwnedStore(Surroundings(store: sandbox.config)) { _ in }
      owner.close()
      #expect(own() == usual + ".5")
      // Its own counts, whichever others go.
      sandbox.shell("rm -r \(usual).3 \(usual)")
      #expect(own() == usual + ".5")
      sandbox.shell("rm -r \(usual).5")
      #expect(own() == usual)
    }
  }

  @Test("the state directory replaces a runtime directory that others could write to")
  func runtimeDirectory() throws {
    try withSurroundings { sandbox, surroundings in
      #expect(
        sandbox.shell(
          "mkdir -p -m 777 $XDG_RUNTIME_DIR/prefsfs && chmod 777 $XDG_RUNTIME_DIR/prefsfs"
        ).status == 0)
      let owner = try own(surroundings)
      defer { owner.close() }
      #expect(sandbox.shell("ls $XDG_RUNTIME_DIR/prefsfs").output == "")
      let noted = try String(contentsOfFile: surroundings.socketNote, encoding: .utf8)
      #expect(noted == surroundings.socketPaths.last && noted.contains("/run/"))
      let other = try StoreClient(surroundings, ClientManner()) { _ in }
      defer { other.close() }
      #expect(other.isConnected)
    }
  }
}
