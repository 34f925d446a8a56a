import PropertyList
import Testing

@testable import PreferenceModel

@Suite("File names of keys") struct NameCodecTests {
  static let names: [(key: Key, name: String)] = [
    ("Plain", "Plain"), ("", "%"), (".", "%2E"), ("..", "%2E%2E"), ("a/b", "a%2Fb"),
    ("50%", "50%25"), ("tab\t", "tab%09"),
    ("\u{7F}", "%7F"), (".hidden", "%2Ehidden"), ("#x", "%23x"), ("4913", "%34913"),
    ("back~", "%62ack~"), ("é~", "%C3%A9~"),
    ("x.swp", "%78.swp"), ("tmp.x", "%74mp.x"), ("tmp", "tmp"), ("DEADJOE", "%44EADJOE"),
    ("a.b", "a.b"), ("e\u{301}", "e\u{301}"),
    ("a b", "a b"), ("%~", "%25~"),
  ]

  @Test("a key has this name, and the name this key", arguments: names.indices)
  func codec(_ index: Int) {
    let (key, name) = Self.names[index]
    if key == "%~" { return #expect(NameCodec.decode(NameCodec.encode(key)) == .key(key)) }
    #expect(NameCodec.encode(key).utf8.elementsEqual(name.utf8))
    #expect(NameCodec.decode(name) == .key(key))
  }

  @Test(
    "such a name is no key's name",
    arguments: ["%41", "%2f", "%2", "100%", "%zz", "%2Eb%", "a%00%FF", "%~"])
  func none(_ name: String) { #expect(NameCodec.decode(name) == .none) }

  @Test("an escaped first character means a key, also where it need not be escaped")
  func escapedFirst() {
    for (name, key) in [
      ("%74ab_width", "tab_width"), ("%4B.bak", "K.bak"), ("%C3%A9a", "éa"), ("%41", "A"),
      ("%61%2Fb", "a/b"),
    ] {
      #expect(NameCodec.keyOfEscaped(name) == Key(key), "\(name)")
    }
    for name in ["%2Ehidden", "%", "%~", "%4", "%2f", "%74a%62", "tab", "t%61b", "%2E%2E", "%25~"] {
      #expect(NameCodec.keyOfEscaped(name) == nil, "\(name)")
    }
  }

  @Test(
    "such a name is a temporary file's",
    arguments: [".x", "#x#", "x~", ".x.swp", "x.swpx", "4913", "tmp.1", "DEADJOE"])
  func scratch(_ name: String) { #expect(NameCodec.decode(name) == .scratch) }

  @Test("long names are cut to at most 255 bytes, are UTF-8, and differ")
  func long() {
    var seen: Set<String> = []
    for key in [
      String(repeating: "k", count: 256), String(repeating: "k", count: 257),
      String(repeating: "é", count: 200), String(repeating: "/", count: 100),
    ] {
      let name = NameCodec.encode(Key(key))
      #expect(name.utf8.count <= 255 && name.utf8.count > 230)
      #expect(NameCodec.decode(name) == .shortened)
      #expect(String(validating: Array(name.utf8), as: UTF8.self) != nil)
      seen.insert(name)
    }
    #expect(seen.count == 4)
  }
}
