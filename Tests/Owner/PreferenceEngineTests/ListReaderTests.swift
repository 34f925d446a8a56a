import PreferenceEngine
import PreferenceModel
import PreferenceSearch
import PreferenceStore
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

@Suite("ListReader") struct ListReaderTests {
  /// Calls the body with a reader over the places of a store, and a wake-up that is signalled when
  /// a domain was read.
  private func withReader(
    prepare: (Sandbox) -> Void = { _ in }, _ body: (ListReader, LocalPlaces, Wakeup) throws -> Void
  ) throws {
    try withPlaces(prepare: prepare) { (_, places: LocalPlaces) throws -> Void in
      let (reader, wakeup) = (ListReader(places), try Wakeup())
      reader.whenRead { wakeup.signal() }
      try body(reader, places, wakeup)
    }
  }

  private func read(_ domain: DomainName, _ reader: ListReader, _ wakeup: Wakeup) {
    let end = Instant.now.advanced(milliseconds: 5000)
    reader.read(domain)
    while !reader.isAtHand(domain), Instant.now < end {
      wakeup.wait(until: end)
      wakeup.clear()
    }
  }

  @Test("what was read stays at hand, also a domain and a global domain without most lists")
  func read() throws {
    try withReader(prepare: { $0.makeList($0.config + "/d.plist", "dict(K=1)") }) {
      reader, places, wakeup in
      #expect(!reader.isAtHand("d"))
      read("d", reader, wakeup)
      reader.forget()
      // No request waits for a thread any more.
      #expect(reader.isAtHand("d"))
      #expect(reader.isAtHand(.global))
      #expect(places.isLoaded(Location(.user, "d")))
    }
  }

  @Test("where nothing is, one look suffices; a list, or a fragment that adds keys, is read")
  func nothing() throws {
    let prepare = { (sandbox: Sandbox) in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K=1)")
      sandbox.shell("mkdir -p \(sandbox.system)/managed/e.d")
      sandbox.makeList(sandbox.system + "/managed/e.d/1.plist", "dict(K=2)")
    }
    try withPlaces(prepare: prepare) { (_, places: LocalPlaces) throws -> Void in
      let lists = places.store.lists
      let (there, added) = (Location(.user, "d"), Location(.managed, "e"))
      for location in [there, added] {
        let isKept = lists.keepNothing(at: location, since: lists.appearances)
        #expect(!isKept && !lists.isLoaded(location))
        #expect(try places.keys(at: location) == ["K"])
      }
      let missing = [Location(.managed, "d"), Location(.host, "d"), Location(.user, "e")]
      for location in missing {
        let isKept = lists.keepNothing(at: location, since: lists.appearances)
        #expect(isKept && lists.isLoaded(location))
        #expect(try places.keys(at: location) == [])
      }
      // A list may have appeared since.
      let later = Location(.host, "e")
      let isKept = lists.keepNothing(at: later, since: lists.appearances - 1)
      #expect(!isKept && !lists.isLoaded(later))
    }
  }

  @Test("of many domains, those that no place has are found together, by a look at each directory")
  func many() throws {
    let prepare = { (sandbox: Sandbox) in
      for name in ["d7", "D8"] { sandbox.makeList("\(sandbox.config)/\(name).plist", "dict(K=1)") }
      sandbox.shell(
        """
        mkdir -p \(sandbox.system)/gsettings; cd \(sandbox.system)/gsettings
        cat > d9.gschema.xml <<'END'
        <schemalist><schema id='d9' path='/d9/'><key name='k' type='s'><default>''</default></key>
        </schema></schemalist>
        END
        """)
    }
    try withReader(prepare: prepare) { reader, places, wakeup in
      let told = Mutex(0)
      reader.whenRead {
        told.withLock { $0 += 1 }
        wakeup.signal()
      }
      let user = (0..<500).map { Location(.user, DomainName("d\($0)")) }
      reader.read(user.map { ListReader.Need($0.domain, changing: [$0]) })
      let end = Instant.now.advanced(milliseconds: 5000)
      while told.withLock({ $0 < 4 }), Instant.now < end {
        wakeup.wait(until: end)
        wakeup.clear()
      }
      // Once for the absent ones and the global domain, and once for each of the two names and the
      // domain that only GSettings knows.
      #expect(told.withLock { $0 } == 4)
      #expect(try places.exists(Location(.schema, "d9")))
      for location in user {
        #expect(reader.isAtHand(location.domain, changing: [location]))
        #expect(places.isLoaded(location) && places.isLoaded(Location(.managed, location.domain)))
        #expect(reader.finding(location)?.error == nil)
        #expect(try places.keys(at: location) == (location.domain == "d7" ? ["K"] : []))
      }
      let change = try places.apply(
        user.map { .set("N", $0.domain, 1, .unknown) }, by: Author(number: 1))
      #expect(change.items.count == 999, "each key, and each domain but the one that there was")
    }
  }

  @Test("a domain that is not there is looked for again, and no list of it is kept")
  func missing() throws {
    try withReader { reader, places, wakeup in
      read("none", reader, wakeup)
      let finding = reader.finding(Location(.user, "none"))
      #expect(finding != nil && finding?.modified == nil && finding?.error == nil)
      #expect(!places.isLoaded(Location(.user, "none")))
      reader.forget()
      #expect(!reader.isAtHand("none"))
      #expect(reader.finding(Location(.user, "none")) == nil)
    }
  }

  @Test("a list that cannot be read is a finding of its location alone, until it is forgotten")
  func unreadable() throws {
    try withReader(prepare: { $0.shell("echo broken > $C/d.plist") }) { reader, _, wakeup in
      read("d", reader, wakeup)
      #expect(reader.finding(Location(.user, "d"))?.error?.reason == .unreadable)
      #expect(reader.finding(Location(.host, "d"))?.error == nil)
      #expect(throws: EngineError.self) { try reader.refuse([.set("K", "d", 1, .unknown)]) }
      #expect(throws: Never.self) { try reader.refuse([.set("K", "e", 1, .unknown)]) }
      reader.forget()
      #expect(!reader.isAtHand("d"))
    }
  }

  @Test(
    "a list that was read, and left memory with the owner of the store, is not taken for absent")
  func newOwner() throws {
    try withPlaces(prepare: { $0.makeList($0.config + "/d.plist", "dict(K=1)") }) {
      (_, places: LocalPlaces) throws -> Void in
      let forgetful = ForgetfulPlaces(places)
      let (reader, wakeup) = (ListReader(forgetful), try Wakeup())
      reader.whenRead { wakeup.signal() }
      read("d", reader, wakeup)
      forgetful.hasForgotten.store(true, ordering: .relaxed)
      #expect(reader.finding(Location(.user, "d")) == nil)
      let engine = SearchEngine(places: forgetful, lists: reader)
      #expect(try engine.resolve("K", in: "d")?.value == 1)
      #expect(try engine.hasDomain("d"))
    }
  }

  @Test("what is refused at once is at hand at once, an error of its lists, and calls nobody")
  func refused() throws {
    try withPlaces(prepare: { $0.makeList($0.config + "/d.plist", "dict(K=1)") }) {
      (_, places: LocalPlaces) throws -> Void in
      let reader = ListReader(ForgetfulPlaces(places, refuses: true))
      reader.whenRead { Issue.record("a body was called by the thread that asks") }
      reader.read("d", changing: [Location(.user, "d")])
      #expect(reader.isAtHand("d", changing: [Location(.user, "d")]))
      #expect(reader.finding(Location(.user, "d"))?.error?.reason == .system(.inputOutput))
    }
  }

  @Test("what a thread refuses that looks at many domains calls whoever waits for them")
  func refusedLater() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      let reader = ListReader(ForgetfulPlaces(places, refuses: true))
      let isTold = Monitor(false)
      reader.whenRead { isTold.change { $0 = true } }
      let domains = (0..<16).map { DomainName("d\($0)") }
      reader.read(domains.map { ListReader.Need($0) })
      let end = Instant.now.advanced(milliseconds: 4000)
      #expect(isTold.wait(until: end) { $0 ? true : nil } == true)
      #expect(domains.allSatisfy(reader.isAtHand))
    }
  }
}

/// Places that say, once they are told to, that they have nothing in memory: a client whose owner
/// has just been replaced.
private final class ForgetfulPlaces: PersistentPlaces {
  let hasForgotten = Atomic<Bool>(false)
  /// Whether no list can be read on another thread: none can be made.
  private let refuses: Bool
  private let places: LocalPlaces

  init(_ places: LocalPlaces, refuses: Bool = false) {
    (self.places, self.refuses) = (places, refuses)
  }

  func loadLists(
    _ load: ListLoad, on threads: BlockingThreads, begun: @escaping @Sendable () -> Void,
    then body: @escaping @Sendable ([Location: ListFinding]) -> Void
  ) -> Bool {
    !refuses && threads.run { body(self.loadLists(load)) }
  }

  func isLoaded(_ location: Location) -> Bool {
    !hasForgotten.load(ordering: .relaxed) && places.isLoaded(location)
  }

  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try places.find(key, at: location)
  }

  func keys(at location: Location) throws(EngineError) -> [Key] { try places.keys(at: location) }

  func exists(_ location: Location) throws(EngineError) -> Bool { try places.exists(location) }

  func modified(_ location: Location) throws(EngineError) -> Timestamp? {
    try places.modified(location)
  }

  func snapshots(of locations: [Location]) throws(EngineError) -> [LocationSnapshot] {
    try places.snapshots(of: locations)
  }

  func domains(in place: Place) throws(EngineError) -> Set<DomainName> {
    try places.domains(in: place)
  }

  func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try places.apply(intents, by: author)
  }

  func observe(except author: Author?, _ observer: @escaping @Sendable (Notice) -> Void) {
    places.observe(except: author, observer)
  }

  var isReadOnly: Bool { places.isReadOnly }
  var isFresh: Bool { true }
}
