import Foundation
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import PreferenceServer
import PreferenceStore
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing
@testable import PreferenceClient

/// Owns a sandbox's store in this process, and makes clients over its socket.
final class ServedStore: Sendable {
  let sandbox: Sandbox
  let places: LocalPlaces
  let server: Server
  let path: String

  /// - Parameter observer: hears of changes before the server does.
  init(
    _ sandbox: Sandbox, observer: (@Sendable (Notice) -> Void)? = nil,
    prepare: (Sandbox) -> Void = { _ in }
  ) throws {
    self.sandbox = sandbox
    prepare(sandbox)
    let layout = Self.layout(sandbox)
    path = sandbox.root + "/socket"
    let store = try Store(layout) { _ in }
    places = try LocalPlaces(store: store, writeback: 3600) { _ in }
    if let observer { places.observe(except: nil, observer) }
    server = try Server(places: places, paths: [path]) { _ in }
  }

  static func layout(_ sandbox: Sandbox) -> StoreLayout {
    StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: sandbox.state + "/s", hostIdentifier: "HOST", userName: "ada")
  }

  /// - Parameters:
  ///   - number: the client's number in its origins; nil means a random one.
  ///   - isBrief: whether it is a command that asks a few things and ends.
  ///   - hearsAll: whether it is told of every change, as one with a number is.
  func client(
    _ number: UInt64? = nil, isBrief: Bool = false, hearsAll: Bool = false
  ) throws -> StoreClient {
    var manner = ClientManner()
    (manner.client, manner.isBrief, manner.hearsAll) = (number, isBrief, hearsAll)
    return try StoreClient(Surroundings(Self.layout(sandbox), socketPath: path), manner) { _ in }
  }

  /// Returns a bare connection, on which a test sends any bytes.
  func connection() throws -> SharedSocket {
    guard let socket = try Socket.connected(to: path) else { throw POSIXError(.ECONNREFUSED) }
    return SharedSocket(socket)
  }

  func end() {
    server.stop()
    places.close()
  }
}

func withServedStore(
  prepare: (Sandbox) -> Void = { _ in }, _ body: (ServedStore) throws -> Void
) throws {
  try withSandbox { sandbox in
    let served = try ServedStore(sandbox, prepare: prepare)
    defer { served.end() }
    try body(served)
  }
}

private let user = Location(.user, "d")
private let author = Author(number: 5)

@Suite("Owner and clients") struct ServerTests {
  @Test("what a client has sent is carried out although it ends before the list is read")
  func lastWords() throws {
    try withServedStore { served in
      let locations = (0..<50).map { Location(.user, DomainName("d\($0)")) }
      for location in locations {
        let client = try served.client()
        client.post([.set("K", location.domain, 1, .unknown)], by: author) { _ in }
        client.close()
      }
      let end = Instant.now.advanced(milliseconds: 5000)
      let isThere = { (location: Location) in
        (try? served.places.find("K", at: location))?.value == 1
      }
      while Instant.now < end, !locations.allSatisfy(isThere) { Instant.sleep(milliseconds: 10) }
      for location in locations { #expect(isThere(location), "\(location)") }
    }
  }

  @Test("a client and the owner give the same answers")
  func same() throws {
    try withServedStore(prepare: {
      $0.makeList($0.config + "/d.plist", "dict(A=1, B='two', C=[1, 2.5, True])")
      $0.makeList($0.system + "/managed/d.plist", "dict(F='forced')")
      $0.makeList($0.system + "/e.plist", "dict(X=b'data')")
      $0.shell("echo broken > $C/broken.plist")
    }) { served in
      let client = try served.client()
      defer { client.close() }
      for places in [served.places, client] as [any PersistentPlaces] {
        #expect(Set(try places.keys(at: user)) == ["A", "B", "C"])
        #expect(try places.find("A", at: user)?.value == 1)
        #expect(try places.find("None", at: user) == nil)
        #expect(try places.find("F", at: Location(.managed, "d"))?.value == "forced")
        #expect(try places.exists(Location(.anyUser, "e")))
        #expect(try !places.exists(Location(.user, "none")))
        #expect(try places.domains(in: .user) == ["d", "broken"])
        #expect(throws: EngineError.self) { try places.find("K", at: Location(.user, "broken")) }
        for (intent, reason) in [
          (Intent.set("F", "d", 1, .unknown), EngineError.Reason.forced),
          (.remove("None", "d"), .noSuchKey), (.createDomain("d"), .domainExists),
          (.removeDomain("d"), .domainNotEmpty), (.set("K", "a/b", 1, .unknown), .invalidDomain),
        ] {
          #expect { try places.apply([intent], by: author) } throws: {
            ($0 as? EngineError)?.reason == reason
          }
        }
      }
      let (one, other) = (
        try served.places.find("A", at: user), try client.find("A", at: user)
      )
      #expect(one == other)
      #expect(try served.places.modified(user) == client.modified(user))
    }
  }

  @Test("a client reads a large list, whose last changes are not in it yet, as the owner does")
  func large() throws {
    try withServedStore(prepare: {
      $0.makeList(
        $0.config + "/d.plist", "{f'a key of some length {i}': [i, str(i)] for i in range(5000)}")
    }) { served in
      _ = try served.places.apply(
        [
          .set("a key of some length 1", "d", "changed", .exact(Array("changed".utf8))),
          .set("new", "d", true, .canonical), .remove("a key of some length 2", "d"),
          .describe("a key of some length 3", "d", Description(mode: 0o400)),
        ], by: author)
      let client = try served.client()
      defer { client.close() }
      for round in 0..<2 {
        let keys = try client.keys(at: user)
        #expect(Set(keys) == Set(try served.places.keys(at: user)) && keys.count == 5000)
        for key in keys {
          #expect(try client.find(key, at: user) == served.places.find(key, at: user))
        }
        if round == 0 {
          #expect(try client.find("a key of some length 2", at: user) == nil)
          _ = try served.places.apply(
            [.set("a key of some length 2", "d", 2, .canonical)], by: author)
          _ = try client.apply([.remove("new", "d")], by: author)
        }
      }
    }
  }

  @Test("a list that is larger than what may wait for a client reaches it, among notices")
  func longMessage() throws {
    try withServedStore(prepare: {
      $0.makeList($0.config + "/d.plist", "dict(Data=b'x' * (80 << 20))")
    }) { served in
      let (slow, good) = (try served.connection(), try served.client())
      defer { good.close() }
      for request in [
        Request.hello(version: Request.version, client: 9, clock: .now).frame(1),
        Request.load(user).frame(2),
      ] { _ = slow.value.send(request[...]) }
      // It has got its answer, and does not read on, while others make changes.
      let hasAnswer = slow.value.wait(until: Instant.now.advanced(milliseconds: 5000))
      #expect(hasAnswer)
      _ = try good.find("Data", at: user)
      for number in 0..<10 as Range<Int64> {
        _ = try good.apply(
          [.set("K", "other", .integer(WideInteger(number)), .canonical)], by: author)
      }
      var reader = FrameReader(largest: Message.largest)
      var (notices, size, file) = (0, 0, SharedDescriptor?.none)
      while notices < 10, slow.value.wait(until: Instant.now.advanced(milliseconds: 5000)) {
        guard slow.value.receive(into: &reader.bytes, &file) != .ended else { break }
        while let frame = try reader.next() {
          if frame.number == 2 { size = frame.payload.count }
          if frame.number == 0 { notices += 1 }
        }
      }
      #expect(size > 80 << 20 && notices == 10)
    }
  }

  @Test("several large answers reach a client that makes no haste, among notices")
  func largeAnswers() throws {
    try withServedStore(prepare: {
      $0.makeList($0.config + "/d.plist", "dict(Data=b'x' * (40 << 20))")
    }) { served in
      let (slow, good) = (try served.connection(), try served.client())
      defer { good.close() }
      _ = slow.value.send(
        Request.hello(version: Request.version, client: 9, clock: .now).frame(1)[...])
      for number in 2..<6 as Range<UInt64> {
        _ = slow.value.send(Request.load(user).frame(number)[...])
      }
      _ = try good.find("Data", at: user)
      for number in 0..<10 as Range<UInt8> {
        let value = Value.data(Array(repeating: number, count: 1 << 16))
        _ = try good.apply([.set("K", "other", value, .canonical)], by: author)
      }
      var reader = FrameReader(largest: Message.largest)
      var (notices, answers, file) = (0, Set<UInt64>(), SharedDescriptor?.none)
      while notices < 10 || answers.count < 5,
        slow.value.wait(until: Instant.now.advanced(milliseconds: 5000))
      {
        guard slow.value.receive(into: &reader.bytes, &file) != .ended else { break }
        while let frame = try reader.next() {
          if frame.number == 0 { notices += 1 } else { answers.insert(frame.number) }
        }
      }
      #expect(answers == [1, 2, 3, 4, 5] && notices == 10)
    }
  }

  @Test("what the owner or a client sets, all others read at once, 2,000 times")
  func coherent() throws {
    try withServedStore { served in
      let clients = [try served.client(), try served.client()]
      defer { for client in clients { client.close() } }
      let all: [any PersistentPlaces] = [served.places] + clients
      for index in 0..<2000 {
        let value = Value.integer(WideInteger(Int64(index)))
        let changeset = try all[index % 3].apply([.set("K", "d", value, .canonical)], by: author)
        // The first of them makes the domain.
        #expect(changeset.items.count == (index == 0 ? 2 : 1))
        for places in all where try places.find("K", at: user)?.value != value {
          Issue.record("\(index) is not read")
        }
      }
    }
  }

  @Test("a client is told of changes in order, with their author and events")
  func notices() throws {
    try withServedStore { served in
      let (one, other) = (try served.client(), try served.client())
      defer { for client in [one, other] { client.close() } }
      let heard = Mutex<[Notice]>([])
      let own = Mutex(0)
      other.observe(except: nil) { notice in heard.withLock { $0.append(notice) } }
      one.observe(except: author) { _ in own.withLock { $0 += 1 } }
      _ = try other.find("K", at: user)
      _ = try one.apply([.set("K", "d", 1, .canonical)], by: author)
      _ = try one.apply([.set("K", "d", 1, .canonical)], by: author)
      _ = try one.apply([.set("K", "d", 2, .canonical), .remove("K", "d")], by: author)
      _ = try other.find("K", at: user)
      let notices = heard.withLock { $0 }
      #expect(notices.map(\.author) == [author, author])
      #expect(notices.first?.events == [KeyEvent("d", "K", .created)])
      #expect(notices.map(\.changeset.version).sorted() == notices.map(\.changeset.version))
      #expect(own.withLock { $0 } == 0)
    }
  }

  @Test("a request that is sent twice is carried out once, also by the next owner")
  func once() throws {
    try withSandbox { sandbox in
      let origin = Origin(client: 9, serial: 1)
      let deadline = Instant.now.advanced(milliseconds: 60_000)
      let intent = [Intent.set("K", "d", 1, .canonical)]
      do {
        let served = try ServedStore(sandbox)
        defer { served.end() }
        let client = try served.client(9)
        defer { client.close() }
        let first = try client.apply(intent, by: author, origin: origin, until: deadline)
        _ = try served.places.apply([.set("K", "d", 2, .canonical)], by: author)
        let again = try client.apply(intent, by: author, origin: origin, until: deadline)
        #expect(first.version == again.version)
        #expect(try client.find("K", at: user)?.value == 2)
      }
      // A crash after the journal has the record and before the answer.
      let layout = ServedStore.layout(sandbox)
      let next = Origin(client: 9, serial: 2)
      do {
        let store = try Store(layout) { _ in }
        let item = Changeset.Item(user, .set("K", 3, .canonical))
        _ = try store.commit([item], by: author, origin: next)
        _ = try store.commit([Changeset.Item(user, .set("K", 4, .canonical))])
        store.unlock()
      }
      let served = try ServedStore(sandbox)
      defer { served.end() }
      let client = try served.client(9)
      defer { client.close() }
      _ = try client.apply(
        [.set("K", "d", 3, .canonical)], by: author, origin: next, until: deadline)
      #expect(try client.find("K", at: user)?.value == 4)
    }
  }

  @Test("a change that is in a list is not replayed over another program's change")
  func replayed() throws {
    try withSandbox { sandbox in
      let layout = ServedStore.layout(sandbox)
      let item = Changeset.Item(user, .set("K", 1, .canonical))
      do {
        let store = try Store(layout) { _ in }
        _ = try store.commit([item], by: author, origin: Origin(client: 9, serial: 1))
        store.unlock()
      }
      do {
        let served = try ServedStore(sandbox)
        served.end()
      }
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['K']") == "1")
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K='theirs')")
      let served = try ServedStore(sandbox)
      defer { served.end() }
      #expect(try served.places.find("K", at: user)?.value == "theirs")
    }
  }

  @Test("the next owner knows two requests of one client that were not answered")
  func several() throws {
    try withSandbox { sandbox in
      let layout = ServedStore.layout(sandbox)
      let origins = [1, 2].map { Origin(client: 9, serial: $0) }
      do {
        let store = try Store(layout) { _ in }
        for (index, origin) in origins.enumerated() {
          let edit = Edit.set(Key("K\(index)"), 1, .canonical)
          _ = try store.commit([.init(user, edit)], by: author, origin: origin)
        }
        _ = try store.commit([.init(user, .set("K0", 2, .canonical))])
        store.unlock()
      }
      let served = try ServedStore(sandbox)
      defer { served.end() }
      let client = try served.client(9)
      defer { client.close() }
      let deadline = Instant.now.advanced(milliseconds: 5000)
      for (index, origin) in origins.enumerated() {
        let intent = Intent.set(Key("K\(index)"), "d", 1, .canonical)
        let change = try client.apply([intent], by: author, origin: origin, until: deadline)
        #expect(!change.isEmpty && change.version > 0)
      }
      #expect(try client.find("K0", at: user)?.value == 2)
    }
  }

  @Test("garbage, wrong versions and requests before hello are refused, and others go on")
  func garbage() throws {
    try withServedStore { served in
      let good = try served.client()
      defer { good.close() }
      let hostile: [[UInt8]] = [
        Array("GET / HTTP/1.0\r\n\r\n".utf8), Array(repeating: 0xFF, count: 100_000),
        Request.synchronize(mounts: false).frame(1),
        Request.hello(version: 8, client: 1, clock: .now).frame(1),
        Request.hello(version: 1, client: 0, clock: .now).frame(1),
        Request.hello(version: 1, client: 5, clock: .now).frame(1) + [
          9, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        [],
      ]
      for bytes in hostile {
        let socket = try served.connection()
        _ = socket.value.send(bytes[...])
        if bytes.isEmpty { continue }
        var answer: [UInt8] = []
        var file: SharedDescriptor?
        let deadline = Instant.now.advanced(milliseconds: 5000)
        while socket.value.wait(until: deadline),
          socket.value.receive(into: &answer, &file) != .ended
        {}
        #expect(Instant.now < deadline, "\(bytes.prefix(20)) was not refused")
      }
      _ = try good.apply([.set("K", "d", 1, .canonical)], by: author)
      #expect(try good.find("K", at: user)?.value == 1)
    }
  }

  @Test("only the user can open the socket")
  func modes() throws {
    try withServedStore { served in
      let status = try Files.status(served.path)
      #expect(status?.st_mode == S_IFSOCK | 0o600)
    }
  }

  @Test("a client that reads nothing does not delay others, and is disconnected")
  func slow() throws {
    try withServedStore { served in
      let slow = try served.connection()
      _ = slow.value.send(
        Request.hello(version: Request.version, client: 3, clock: .now).frame(1)[...])
      let good = try served.client()
      defer { good.close() }
      for index in 0..<40 {
        let bytes = Value.data(Array(repeating: UInt8(index), count: 4 << 20))
        _ = try good.apply([.set("Large", "d", bytes, .canonical)], by: author)
      }
      var bytes: [UInt8] = []
      var file: SharedDescriptor?
      var hasEnded = false
      let deadline = Instant.now.advanced(milliseconds: 5000)
      while !hasEnded, slow.value.wait(until: deadline) {
        hasEnded = slow.value.receive(into: &bytes, &file) == .ended
        bytes = []
      }
      #expect(hasEnded)
    }
  }

  @Test("a client that loads a domain while it changes misses no change")
  func loading() throws {
    try withServedStore { served in
      for round in 0..<50 {
        let location = Location(.user, DomainName("d\(round)"))
        let isOver = Atomic<Bool>(false)
        try withThread {
          for index in 0..<200 {
            let intent = Intent.set(
              "K", location.domain, .integer(WideInteger(Int64(index))), .unknown)
            _ = try? served.places.apply([intent], by: author)
          }
          isOver.store(true, ordering: .releasing)
        } while: {
          let client = try served.client()
          defer { client.close() }
          while !isOver.load(ordering: .acquiring) { _ = try client.find("K", at: location) }
          #expect(try client.find("K", at: location)?.value == 199)
        }
      }
    }
  }

  private func withThread(
    _ body: @escaping @Sendable () -> Void, while other: () throws -> Void
  ) throws {
    let thread = try WorkerThread(name: "test", body)
    defer { thread.join() }
    try other()
  }

  @Test("four clients that set and remove at once lose nothing, and agree in the end")
  func contention() throws {
    try withServedStore { served in
      let clients = try (0..<4).map { _ in try served.client() }
      defer { for client in clients { client.close() } }
      let threads = try clients.enumerated().map { number, client in
        try WorkerThread(name: "client") {
          for index in 1...300 {
            let value = Value.integer(WideInteger(Int64(index)))
            let intents: [Intent] =
              switch number {
              case 0: [.set("A", "d", value, .canonical), .set("B", "d", value, .canonical)]
              case 1: [.set("Own", "d", value, .canonical)]
              case 2: [.set("Shared", "d", value, .canonical)]
              default: [.remove("Shared", "d")]
              }
            // Only the removal of a missing key may be refused.
            do { _ = try client.apply(intents, by: Author(number: UInt64(number + 1))) } catch {
              if number != 3 { Issue.record("\(error)") }
            }
          }
        }
      }
      for thread in threads { thread.join() }
      for places in [served.places] + clients as [any PersistentPlaces] {
        #expect(try places.find("A", at: user)?.value == 300)
        #expect(try places.find("B", at: user)?.value == 300)
        #expect(try places.find("Own", at: user)?.value == 300)
        #expect(
          try places.find("Shared", at: user) == served.places.find("Shared", at: user))
      }
    }
  }

  @Test("a client gets one message for a change by another client, the notice")
  func messages() throws {
    try withServedStore { served in
      let client = try served.client()
      defer { client.close() }
      let raw = try served.connection()
      _ = raw.value.send(
        Request.hello(version: Request.version, client: 3, clock: .now).frame(1)[...])
      _ = raw.value.send(Request.mount(Author(number: 9)).frame(0)[...])
      var reader = FrameReader(largest: Message.largest)
      var (file, seen) = (SharedDescriptor?.none, [Message]())
      func receive() throws {
        guard raw.value.wait(until: Instant.now.advanced(milliseconds: 100)) else { return }
        _ = raw.value.receive(into: &reader.bytes, &file)
        while let frame = try reader.next() { seen.append(try Message(frame)) }
      }
      try receive()
      #expect(seen.count == 1 && file != nil)
      let change = try client.apply([.set("K", "d", 1, .canonical)], by: author)
      for settlement in Settlement.allCases {
        let frame = Request.settle(settlement, through: change.version, Author(number: 9)).frame(0)
        _ = raw.value.send(frame[...])
      }
      try client.synchronize()
      try receive()
      #expect(seen.count == 2)
      guard case .notice(let notice) = try #require(seen.last) else {
        Issue.record("\(seen)")
        return
      }
      #expect(notice.changeset.version == change.version && notice.author == author)
    }
  }

  @Test("changes wait until mounts have dropped attributes and entries, a second at most")
  func settlements() throws {
    try withServedStore { served in
      let mount = Author(number: 77)
      let client = try served.client()
      defer { client.close() }
      let told = Mutex<UInt64>(0)
      client.observe(except: mount) { notice in told.withLock { $0 = notice.changeset.version } }
      client.addMount(mount)
      try client.synchronize()
      let change = try client.apply([.set("K", "d", 1, .canonical)], by: author)
      #expect(told.withLock { $0 } == change.version)
      let settled = Mutex<[Settlement]>([])
      for kind in Settlement.allCases {
        served.places.settlements.whenSettled(kind, through: change.version, except: author) {
          settled.withLock { $0.append(kind) }
        }
      }
      #expect(settled.withLock { $0 } == [])
      client.settle(.attributes, through: change.version, by: mount)
      wait { settled.withLock { $0 } == [.attributes] }
      client.settle(.entries, through: change.version, by: mount)
      wait { settled.withLock { $0 } == [.attributes, .entries] }
      // A mount's own change does not wait for that mount.
      let own = try client.apply([.set("K", "d", 2, .canonical)], by: mount)
      served.places.settlements.whenSettled(.entries, through: own.version, except: mount) {
        settled.withLock { $0 = [] }
      }
      #expect(settled.withLock { $0 } == [])
      // The first change waits a second for a silent mount, the next one does not.
      for limit in [2.0, 0.3] {
        let start = Date()
        _ = try served.places.apply([.set("K", "d", .real(limit), .canonical)], by: author)
        try client.synchronize()
        #expect(Date().timeIntervalSince(start) < limit)
      }
    }
  }

  @Test("a silent mount is not waited for while the writer waits for a disk")
  func settlementsOfHungDisk() throws {
    try withServedStore { served in
      let isHung = Monitor(true)
      defer { isHung.change { $0 = false } }
      served.places.save(nil) { _ in _ = isHung.wait { $0 ? nil : true } }
      let client = try served.client()
      defer { client.close() }
      client.addMount(Author(number: 77))
      client.observe(except: nil) { _ in }
      try client.synchronize()
      let change = try served.places.apply([.set("K", "d", 1, .canonical)], by: author)
      let isOver = Mutex(false)
      served.places.settlements.whenSettled(
        .entries, through: change.version, except: author
      ) { isOver.withLock { $0 = true } }
      #expect(!isOver.withLock { $0 })
      wait { isOver.withLock { $0 } }
    }
  }

  private func wait(_ condition: () -> Bool) {
    for _ in 0..<500 {
      if condition() { return }
      usleep(10_000)
    }
    Issue.record("the condition is still false after 5 s")
  }
}
