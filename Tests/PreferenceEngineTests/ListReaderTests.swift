import PreferenceEngine
import PreferenceModel
import Support
import SystemCalls
import Testing

@Suite("ListReader") struct ListReaderTests {
  /// Calls the body with a reader over the places of a store, and a bell that rings when a domain
  /// was read.
  private func withReader(
    prepare: (Sandbox) -> Void = { _ in }, _ body: (ListReader, LocalPlaces, Wakeup) throws -> Void
  ) throws {
    try withPlaces(prepare: prepare) { (_, places: LocalPlaces) throws -> Void in
      let (reader, bell) = (ListReader(places), try Wakeup())
      reader.whenRead { bell.ring() }
      try body(reader, places, bell)
    }
  }

  private func read(_ domain: DomainName, _ reader: ListReader, _ bell: Wakeup) {
    let end = Instant.now.advanced(milliseconds: 5000)
    reader.read(domain)
    while !reader.isAtHand(domain), Instant.now < end {
      bell.wait(until: end)
      bell.clear()
    }
  }

  @Test("what was read stays at hand, also a domain and a global domain without most lists")
  func read() throws {
    try withReader(prepare: { $0.makeList($0.config + "/d.plist", "dict(K=1)") }) {
      reader, places, bell in
      #expect(!reader.isAtHand("d"))
      read("d", reader, bell)
      reader.forget()
      // No request waits for a thread any more.
      #expect(reader.isAtHand("d"))
      #expect(reader.isAtHand(.global))
      #expect(places.isLoaded(Location(.user, "d")))
    }
  }

  @Test("a domain that is not there is looked for again, and no list of it is kept")
  func missing() throws {
    try withReader { reader, places, bell in
      read("none", reader, bell)
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
    try withReader(prepare: { $0.shell("echo broken > $C/d.plist") }) { reader, _, bell in
      read("d", reader, bell)
      #expect(reader.finding(Location(.user, "d"))?.error?.reason == .unreadable)
      #expect(reader.finding(Location(.host, "d"))?.error == nil)
      #expect(throws: EngineError.self) { try reader.refuse([.set("K", "d", 1, .unknown)]) }
      #expect(throws: Never.self) { try reader.refuse([.set("K", "e", 1, .unknown)]) }
      reader.forget()
      #expect(!reader.isAtHand("d"))
    }
  }
}
