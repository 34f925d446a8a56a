import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// One write(2) with O_APPEND that the kernel divides into two requests, and another mount that
/// changes the key between them.
@Suite("Divided appends") struct AppendTests {
  /// What is appended, where the kernel divides it, and what the text is in the end.
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var before = "a\n"
    var appended: [UInt8]
    /// The offsets in `appended` at which the kernel divides it.
    var parts: [Int]
    /// Before which of the requests another program changes the key, from 1; nil means the last
    /// one.
    var turn: Int?
    /// The string that the other program sets; "+": it appends; nil if there is none.
    var meanwhile: String?
    var after: [UInt8]

    var testDescription: String { name }
  }

  private static let umlauts = Array((String(repeating: "ä", count: 2050) + "\n").utf8)
  private static let letters = Array((String(repeating: "a", count: 4100) + "\n").utf8)
  private static let a = Array("a\n".utf8)
  private static let b = Array("b\n".utf8)
  private static let x = Array("x\n".utf8)

  static let cases = [
    Case(
      name: "between characters, nobody else", appended: letters, parts: [4094], after: a + letters),
    Case(
      name: "between characters, an append", appended: letters, parts: [4094], meanwhile: "+",
      after: a + letters + b),
    Case(
      name: "inside a character, nobody else", before: "aa\n", appended: umlauts, parts: [4093],
      after: Array("aa\n".utf8) + umlauts),
    Case(
      name: "inside a character, an append", before: "aa\n", appended: umlauts, parts: [4093],
      meanwhile: "+", after: Array("aa\nb\n".utf8) + umlauts),
    Case(
      name: "inside a character after a whole part, an append", appended: letters + umlauts,
      parts: [4094, 8190], meanwhile: "+", after: a + letters + umlauts + b),
    Case(
      name: "inside a character twice, an append before the third", before: "aa\n",
      appended: umlauts.dropLast() + umlauts, parts: [4093, 8189], meanwhile: "+",
      after: Array("aa\nb\n".utf8) + umlauts.dropLast() + umlauts),
    Case(
      name: "inside a character twice, an append before the second", before: "aa\n",
      appended: umlauts.dropLast() + umlauts, parts: [4093, 8189], turn: 2, meanwhile: "+",
      after: Array("aa\nb\n".utf8) + umlauts.dropLast() + umlauts),
    Case(
      name: "inside a character after a whole part, an append before the middle one",
      appended: letters + umlauts + umlauts, parts: [4094, 8190, 12286], turn: 3, meanwhile: "+",
      after: a + letters + umlauts + umlauts + b),
    Case(
      name: "the same where the middle part ends inside a character too",
      appended: letters + umlauts.dropLast() + umlauts, parts: [4094, 8190, 12286], turn: 3,
      meanwhile: "+",
      after: a + letters.prefix(4094) + b + letters.suffix(7) + umlauts.dropLast() + umlauts),
    Case(
      name: "inside a character, another text", before: "aa\n", appended: umlauts, parts: [4093],
      meanwhile: "x", after: x + umlauts),
  ]

  @Test("the bytes of one write(2) stay together, and are all there", arguments: cases)
  func divided(_ sample: Case) throws {
    let bench = try EffectsTests.Bench()
    try bench.set("K", .string(String(sample.before.dropLast())))
    let key = try bench.key("K")
    let offset = sample.before.utf8.count
    let cuts = [0] + sample.parts + [sample.appended.count]
    for part in 1..<cuts.count {
      if part == sample.turn ?? cuts.count - 1, let other = sample.meanwhile {
        let present = try text(bench)
        try bench.set("K", .string(other == "+" ? present + "b" : other))
      }
      let bytes = sample.appended[cuts[part - 1]..<cuts[part]]
      try append(bytes, at: offset + cuts[part - 1], bench, key)
    }
    #expect(try text(bench) == String(decoding: sample.after, as: UTF8.self))
  }

  @Test("what was held is not appended again by a later write")
  func later() throws {
    let bench = try EffectsTests.Bench()
    try bench.set("K", .string("aa"))
    let key = try bench.key("K")
    try append(Self.umlauts.prefix(4093), at: 3, bench, key)
    bench.now.instant = bench.now.instant.advanced(milliseconds: 5001)
    bench.tree.tick(now: bench.now)
    try append(Self.b[...], at: 4096, bench, key)
    #expect(try text(bench) == "aa\nb\n")
  }

  @Test("an append goes on where another descriptor has made the held text shorter")
  func shortened() throws {
    let bench = try EffectsTests.Bench()
    try bench.set("K", .string(String(repeating: "a", count: 8191)))
    let key = try bench.key("K")
    try append(([0x61] + Self.umlauts.dropLast()).prefix(4096), at: 8192, bench, key)
    try bench.tree.write(key, WriteRequest([0xC3], at: 0), now: bench.now)
    bench.now.instant = bench.now.instant.advanced(milliseconds: 60)
    bench.tree.tick(now: bench.now)
    let cut = Self.umlauts[1..<4097]
    try append(cut, at: 12288, bench, key)
    // The other descriptor's text is what is held, and what was appended goes behind it.
    let shown = try Array(bench.tree.read(key, at: 0, count: 1 << 16))
    #expect(shown == [0xC3] + cut)
  }

  @Test("what was held and then committed is not appended again", arguments: ["fsync", "pause"])
  func committed(_ how: String) throws {
    let bench = try EffectsTests.Bench()
    var flags = CreationFlags()
    flags.exclusively = true
    let made = try bench.tree.create(bench.domain, Array("N".utf8), flags, now: bench.now)
    let node = made.entry.node
    let bytes = Array("a".utf8) + Self.umlauts + Self.umlauts
    let append = { (part: Range<Int>) in
      var write = WriteRequest(Array(bytes[part]), at: part.lowerBound)
      (write.appending, write.writer, write.handle) = (true, 7, made.handle)
      try bench.tree.write(node, write, now: bench.now)
    }
    try append(0..<4096)
    if how == "pause" {
      bench.now.instant = bench.now.instant.advanced(milliseconds: 5001)
      bench.tree.tick(now: bench.now)
    } else {
      try bench.tree.prepareSynchronize(node, now: bench.now)
    }
    try append(4096..<8192)
    try append(8192..<bytes.count)
    let shown = try Array(bench.tree.read(node, at: 0, count: 1 << 16))
    #expect(shown == bytes)
  }

  /// The text of what the engine has. A string that was set without text ends with a newline.
  private func text(_ bench: EffectsTests.Bench) throws -> String {
    let stored = try bench.engine.resolve("K", in: "d")
    if let text = stored?.text { return String(decoding: text, as: UTF8.self) }
    guard case .string(let string)? = stored?.value else { throw TreeError.missing }
    return string + "\n"
  }

  private func append(
    _ bytes: ArraySlice<UInt8>, at offset: Int, _ bench: EffectsTests.Bench, _ key: NodeID
  ) throws {
    var write = WriteRequest(Array(bytes), at: offset)
    (write.appending, write.writer) = (true, 7)
    try bench.tree.write(key, write, now: bench.now)
  }
}
