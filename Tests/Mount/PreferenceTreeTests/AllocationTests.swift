import CAllocations
import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// How often a request that was made before allocates memory, in the tree, the engine and places in
/// memory, in a build without optimisation. One more means that something is copied, or looked up,
/// once more for each request.
@Suite("Allocations of a request") struct AllocationTests {
  private typealias Bench = EffectsTests.Bench
  private typealias Act = @Sendable (Bench, _ key: NodeID) throws -> Void

  private static let requests: [(name: String, most: Int, act: Act)] = [
    ("stat", 3, { bench, key in _ = try bench.tree.attributes(key) }),
    ("look-up", 4, { bench, _ in _ = try bench.tree.lookup(bench.domain, [0x4B], now: bench.now) }),
    (
      "look-up of a missing name", 4,
      { bench, _ in _ = try bench.tree.lookup(bench.domain, [0x4C], now: bench.now) }
    ),
    ("read", 3, { bench, key in _ = try bench.tree.read(key, at: 0, count: 4096) }),
    (
      "overwrite", 30,
      { bench, key in
        var truncation = AttributeChange()
        truncation.size = 0
        _ = try bench.tree.setAttributes(key, truncation, now: bench.now)
        try bench.tree.write(key, WriteRequest([0x35, 0x0A], at: 0), now: bench.now)
      }
    ),
  ]

  @Test("a request that was made before allocates memory a few times", arguments: requests.indices)
  func count(_ index: Int) throws {
    let (name, most, act) = Self.requests[index]
    let bench = try Bench()
    let key = try bench.key("K")
    for _ in 0..<3 { try act(bench, key) }
    let counts = try (0..<10).map { _ in
      _ = bench.tree.removeEffects()
      prefsfs_begin_counting_allocations()
      try act(bench, key)
      return prefsfs_end_counting_allocations()
    }
    let least = try #require(counts.min())
    #expect(least > 0 && least <= most, "\(name): \(counts)")
  }

  /// A text that is written in pieces: its rule, its beginning, and a piece that may be repeated.
  private typealias Text = (name: String, rule: Judge.Rule, head: String, piece: String)

  private static let xml = "<?xml version=\"1.0\"?><plist version=\"1.0\"><array>"
  private static let texts: [Text] = [
    ("JSON", .kind(.array), "[", "12, "),
    ("XML", .kind(.array), xml, "<integer>12</integer>"),
    ("old-style", .kind(.array), "(", "ab, "),
    ("nested JSON", .kind(.dictionary), "{\"a\": [[", "{\"b\": 1}, "),
    ("a string in JSON", .kind(.array), "[\"", "text "),
    ("a string in XML", .kind(.array), xml + "<string>", "text "),
    ("data in XML", .kind(.array), xml + "<data>", "AAAA\n"),
    ("an old-style string", .kind(.array), "(\"", "text "),
    ("old-style data", .kind(.array), "(<", "00 "),
    ("string", .kind(.string), "", "text "),
    ("data", .kind(.data), "", "data "),
    ("text of a new key", .inferred(preferred: nil), "", "text "),
    ("text of a key made again", .inferred(preferred: .array), "", "text "),
    ("JSON of a new key", .inferred(preferred: nil), "[", "12, "),
    ("XML of a new key", .inferred(preferred: nil), xml, "<integer>12</integer>"),
    ("JSON of a key made again", .inferred(preferred: .array), "[", "12, "),
  ]

  @Test("a text in pieces is not copied for each piece", arguments: texts.indices)
  func pieces(_ index: Int) {
    let text = Self.texts[index]
    // Four times the pieces take four times the bytes; sixteen times, if each piece copied the rest.
    let (short, long) = (bytes(text, 2000), bytes(text, 8000))
    #expect(long < 7 * short, "\(text.name): \(short) and \(long) bytes")
  }

  @Test(
    "a text in pieces over a longer one is not copied for each piece",
    arguments: texts.indices.filter { !texts[$0].rule.isInferred })
  func piecesOverText(_ index: Int) {
    let text = Self.texts[index]
    let (short, long) = (bytes(text, 2000, isOver: true), bytes(text, 8000, isOver: true))
    #expect(long < 7 * short, "\(text.name): \(short) and \(long) bytes")
  }

  @Test(
    "pieces over a longer text that end inside of characters are committed once each",
    arguments: [false, true])
  func piecesOfCharacters(isInferred: Bool) {
    // Three bytes a character, and pieces of 4,096.
    let text = Array(String(repeating: "\u{20AC}", count: 1 << 18).utf8)
    let old = [UInt8](repeating: 0x20, count: 1 << 20)
    let editor = TextEditor(
      text: old, rule: isInferred ? .inferred(preferred: nil) : .kind(.string),
      committed: .init(kind: .string, count: old.count))
    let now = Instant(nanoseconds: 0)
    var (shown, committed) = (old, 0)
    for start in stride(from: 0, to: text.count, by: 4096) {
      let piece = Array(text[start..<min(start + 4096, text.count)])
      switch editor.write(piece, at: start, appending: false, now: now) {
      case .nothing: break
      case .splice(let splice):
        committed += splice.bytes.count
        shown.replaceSubrange(
          splice.offset..<splice.offset + splice.bytes.count, with: splice.bytes)
      case let action: Issue.record("\(action)")
      }
    }
    #expect(committed <= text.count + 3 * (text.count / 4096))
    // The last piece ends between two characters.
    #expect(shown == text + old[text.count...] && editor.text == shown)
  }

  /// How many bytes of memory are allocated while that many pieces are written.
  /// - Parameter isOver: whether they are written over a longer text, and not appended.
  private func bytes(_ text: Text, _ count: Int, isOver: Bool = false) -> Int {
    let old = isOver ? [UInt8](repeating: 0x20, count: 1 << 18) : []
    let kind: Kind = text.name == "data" ? .data : .string
    let editor = TextEditor(
      text: old, rule: text.rule, committed: isOver ? .init(kind: kind, count: old.count) : nil)
    let now = Instant(nanoseconds: 0)
    // Beyond the length up to which a text is a whole value at each write.
    let start = text.head + String(repeating: text.piece, count: 1000)
    _ = editor.write(Array(start.utf8), at: 0, appending: !isOver, now: now)
    var offset = start.utf8.count
    prefsfs_begin_counting_allocations()
    for _ in 0..<count {
      _ = editor.write(Array(text.piece.utf8), at: offset, appending: !isOver, now: now)
      offset += text.piece.utf8.count
    }
    _ = prefsfs_end_counting_allocations()
    return prefsfs_allocated_bytes()
  }
}

extension Judge.Rule {
  fileprivate var isInferred: Bool { if case .inferred = self { true } else { false } }
}
