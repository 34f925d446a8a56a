import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceEngine

@Suite("Keys that two writers change in turns") struct TurnsTests {
  private static func writer(_ process: Int32, _ program: String) -> Turns.Writer {
    var source = ChangeSource(.library)
    (source.process, source.program) = (process, program)
    return Turns.Writer(source, by: .unique())
  }

  private static func item(_ key: Key, _ place: Place = .user) -> Changeset.Item {
    Changeset.Item(Location(place, "d"), .set(key, 1, .unknown))
  }

  static let (ada, bob, eve) = (writer(1, "/ada"), writer(2, "/bob"), writer(3, "/eve"))

  /// The writers in turn, the milliseconds between two changes, the place, and whether the key is
  /// named.
  static let cases: [(name: String, writers: [Turns.Writer], pause: Int64, Place, Bool)] = [
    ("two in turns", [ada, bob], 500, .user, true),
    ("in the cloud", [ada, bob], 0, .cloud, true),
    ("slowly", [ada, bob], 1100, .user, false),
    ("one alone", [ada], 10, .user, false),
    ("three", [ada, bob, eve], 10, .user, false),
    ("two processes of a program", [ada, writer(4, "/ada")], 10, .user, true),
    ("in a list of the machine's", [ada, bob], 10, .anyUser, false),
  ]

  @Test("a key is named once, after the eleventh turn in 10 s", arguments: cases)
  func named(
    _ example: (name: String, writers: [Turns.Writer], pause: Int64, place: Place, isNamed: Bool)
  ) {
    var turns = Turns()
    var named: [Int] = []
    var now = Instant(nanoseconds: 1_000_000_000)
    for number in 0..<60 {
      let writer = example.writers[number % example.writers.count]
      let found = turns.note([Self.item("K", example.place)], by: writer, at: now)
      if !found.isEmpty { named.append(number) }
      now = now.advanced(milliseconds: example.pause)
    }
    #expect(named == (example.isNamed ? [11] : []), "\(example.name)")
    #expect(turns.quarrels.count == (example.isNamed ? 1 : 0))
  }

  @Test("commands of one program are one writer, and both writers are named")
  func writers() throws {
    var source = ChangeSource(.command)
    (source.process, source.program) = (7, "/usr/bin/defaults")
    let first = Turns.Writer(source, by: .unique())
    source.process = 8
    #expect(Turns.Writer(source, by: .unique()) == first)
    var turns = Turns()
    for number in 0..<12 {
      let writer = number.isMultiple(of: 2) ? first : Self.bob
      _ = turns.note([Self.item("K")], by: writer, at: Instant(nanoseconds: 1))
    }
    #expect(turns.quarrels.first?.writers == ["/bob", "/usr/bin/defaults"])
    #expect(try #require(turns.quarrels.first).sentence.hasPrefix("d K: /bob and /usr/bin/def"))
  }

  @Test("the keys that it knows are no more than 1,024")
  func many() {
    var turns = Turns()
    for round in 0..<12 {
      for number in 0..<2000 {
        let writer = round.isMultiple(of: 2) ? Self.ada : Self.bob
        _ = turns.note([Self.item(Key("K\(number)"))], by: writer, at: Instant(nanoseconds: 1))
      }
    }
    #expect(turns.quarrels.isEmpty)
  }
}
