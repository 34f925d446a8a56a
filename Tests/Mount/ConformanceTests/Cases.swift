import Foundation
import Support
import Testing

/// One behaviour of files, which must be the same on the bare tree and on a mount. Each case starts
/// with the lists that `Fixture` makes.
struct Case: Sendable, CustomTestStringConvertible {
  var name: String
  var run: @Sendable (any TestFiles) throws -> Void

  init(_ name: String, _ run: @escaping @Sendable (any TestFiles) throws -> Void) {
    self.name = name
    self.run = run
  }

  var testDescription: String { name }
}

/// The lists that every case starts with.
enum Fixture {
  /// The keys of the user's domain `d`, as Python writes the dictionary.
  static let python = """
    dict(Integer=42, Real=1.5, Boolean=True, String='hello', Empty='', Data=b'\\x01\\x02',
    Date=datetime.datetime(2026,11,21,7,20,0), Array=[1,'a',2.5], Dict={'b':{'c':[True]},'a':1})
    """

  /// Writes the user's domains `d`, `other` and the global one, and the machine's and managed
  /// lists of `d`.
  static func make(_ sandbox: Sandbox) {
    sandbox.makeList(sandbox.config + "/d.plist", python)
    sandbox.makeList(sandbox.config + "/other.plist", "dict(Key='other')", format: "XML")
    sandbox.makeList(
      sandbox.config + "/.GlobalPreferences.plist", "dict(Inherited='global', Languages=['de'])")
    sandbox.makeList(sandbox.system + "/d.plist", "dict(Integer=1, Machine='m')")
    sandbox.makeList(sandbox.system + "/managed/d.plist", "dict(Forced=7)")
  }
}

/// Expects that the operation throws a `Refusal` with the errno.
func expectRefused(
  _ number: Int32, _ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) {
  #expect(throws: Refusal(number), sourceLocation: sourceLocation) { try body() }
}

enum ReadingCases {
  static let list = [
    Case("scalars read as their text and a newline", scalarsReadAsTheirTextAndA),
    Case("containers read as JSON", containersReadAsJson),
    Case("inherited keys open by name and are not listed", inheritedKeysOpenByNameAndAre),
    Case(
      "a listing shows the keys of the domain in every place, machine and managed too",
      aListingShowsEveryOwnKeyMachine),
    Case("the size of a file is what a read returns", sizeIsWhatReadGives),
    Case("extended attributes show type and source", typesAndSourcesShowAsAttributes),
    Case("a key or domain that does not exist is ENOENT", whatIsNotThereIsEnoent),
  ]

  private static func scalarsReadAsTheirTextAndA(_ files: any TestFiles) throws {
    #expect(try files.get("d/Integer") == "42\n")
    #expect(try files.get("d/Real") == "1.5\n")
    #expect(try files.get("d/Boolean") == "true\n")
    #expect(try files.get("d/String") == "hello\n")
    #expect(try files.get("d/Empty") == "\n")
    #expect(try files.get("d/Date") == "2026-11-21T07:20:00Z\n")
    #expect(try files.get("d/Data") == "\u{1}\u{2}")
  }

  private static func containersReadAsJson(_ files: any TestFiles) throws {
    #expect(try files.get("d/Array") == "[\n  1,\n  \"a\",\n  2.5\n]\n")
    #expect(try files.get("d/Dict").hasPrefix("{\n  \"a\": 1,\n  \"b\": {"))
  }

  private static func inheritedKeysOpenByNameAndAre(_ files: any TestFiles) throws {
    #expect(try files.get("d/Inherited") == "global\n")
    #expect(try files.attribute("d/Inherited", "user.prefs.source") == "global")
    #expect(try !files.names("d").contains("Inherited"))
  }

  private static func aListingShowsEveryOwnKeyMachine(_ files: any TestFiles) throws {
    #expect(
      try files.names("d") == [
        "Array", "Boolean", "Data", "Date", "Dict", "Empty", "Forced", "Integer", "Machine", "Real",
        "String",
      ])
    #expect(try files.names("") == ["NSGlobalDomain", "d", "other"])
  }

  private static func sizeIsWhatReadGives(_ files: any TestFiles) throws {
    for name in try files.names("d") {
      #expect(try files.status("d/\(name)").size == files.get("d/\(name)").utf8.count)
    }
  }

  private static func typesAndSourcesShowAsAttributes(_ files: any TestFiles) throws {
    #expect(try files.type("d/Dict") == "dictionary")
    #expect(try files.attribute("d/Forced", "user.prefs.forced") == "1")
    #expect(try files.attribute("d/Forced", "user.prefs.source") == "managed")
    #expect(try files.attribute("d/Machine", "user.prefs.source") == "any-user")
    expectRefused(EOPNOTSUPP) { _ = try files.attribute("d/Dict", "system.posix_acl_access") }
    expectRefused(ENODATA) { _ = try files.attribute("d/Dict", "user.other") }
  }

  private static func whatIsNotThereIsEnoent(_ files: any TestFiles) throws {
    expectRefused(ENOENT) { _ = try files.get("d/Missing") }
    expectRefused(ENOENT) { _ = try files.get("missing/Integer") }
    expectRefused(ENOENT) { _ = try files.get("d/%zz") }
  }
}

enum WritingCases {
  static let list = [
    Case("a file reads back the bytes that were written", theBytesThatWereWrittenAreRead),
    Case("write refuses a bad value and the old text stays", aBadValueIsRefusedByWrite),
    Case("a write keeps the type of the key", typesAreKept),
    Case("a forced key cannot be written, removed or replaced", aForcedKeyIsRefused),
    Case("O_APPEND appends at the present end of the text", o_appendAppendsAtTheEndAsIt),
    Case("several writes make one text", severalWritesMakeOneText),
    Case("new bytes move the modification time, the same bytes do not", aWriteMovesTheTimeTheSame),
    Case("a write to an inherited key gives the domain its own", aWriteIntoAnInheritedKeyMakes),
    Case("a change of the global domain shows in other domains", aChangeOfTheGlobalDomainShows),
    Case("a value of more than 16 MiB is EFBIG", moreThan16MibIsEfbig),
  ]

  private static func theBytesThatWereWrittenAreRead(_ files: any TestFiles) throws {
    for (key, text) in [
      ("Integer", " +007\n\n"), ("Boolean", "YES\n"), ("Real", "1e3"), ("String", "no newline"),
      ("String", "two\n\n"), ("Dict", "{\"a\" :1}"), ("Array", "( a, b )"),
      ("Date", "2026-11-21 07:20:00 +0000\n"), ("Data", "text\n"), ("String", "e\u{301}\n"),
    ] {
      try files.put("d/\(key)", text)
      #expect(try files.get("d/\(key)") == text)
      #expect(try files.status("d/\(key)").size == text.utf8.count)
    }
  }

  private static func aBadValueIsRefusedByWrite(_ files: any TestFiles) throws {
    for (key, bad) in [
      ("Integer", "bad\n"), ("Integer", "1.5\n"), ("Integer", "18446744073709551616\n"),
      ("Real", "1,5\n"), ("Boolean", "maybe\n"), ("Date", "yesterday\n"), ("Array", "{}\n"),
      ("Dict", "[1]\n"), ("Dict", "{\"a\": null}\n"), ("String", "a\0b"),
    ] {
      var old = try files.get("d/\(key)")
      let begin = ContinuousClock.now
      expectRefused(EINVAL) { try files.put("d/\(key)", bad) }
      // A truncation that no write has followed for 50 ms empties a string.
      if key == "String", ContinuousClock.now - begin > .milliseconds(50) { old = "" }
      #expect(try files.get("d/\(key)") == old, "\(key)")
      #expect(try files.status("d/\(key)").size == old.utf8.count)
    }
  }

  private static func typesAreKept(_ files: any TestFiles) throws {
    try files.put("d/String", "42\n")
    #expect(try files.type("d/String") == "string")
    try files.put("d/Real", "7\n")
    #expect(try files.type("d/Real") == "real")
  }

  private static func aForcedKeyIsRefused(_ files: any TestFiles) throws {
    let old = try files.get("d/Forced")
    #expect(throws: Refusal.self) { try files.put("d/Forced", "8\n") }
    expectRefused(EPERM) { try files.unlink("d/Forced") }
    expectRefused(EPERM) { try files.rename("d/Integer", "d/Forced", flags: 0) }
    #expect(try files.get("d/Forced") == old)
    #expect(try files.status("d/Forced").mode == 0o400)
    #expect(try files.status("d/Integer").mode == 0o600)
  }

  private static func o_appendAppendsAtTheEndAsIt(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_WRONLY | O_APPEND)
    try files.write(file, "more\n", at: 0)
    try files.put("d/String", "short\n")
    try files.write(file, "end\n", at: 0)
    files.close(file)
    #expect(try files.get("d/String") == "short\nend\n")
  }

  private static func severalWritesMakeOneText(_ files: any TestFiles) throws {
    try files.put("d/String", "one two three four\n", pieces: 3)
    #expect(try files.get("d/String") == "one two three four\n")
    try files.put("d/Dict", "{\"key\": [1, 2, {\"x\": \"e\"}]}\n", pieces: 1)
    #expect(try files.get("d/Dict") == "{\"key\": [1, 2, {\"x\": \"e\"}]}\n")
  }

  private static func aWriteMovesTheTimeTheSame(_ files: any TestFiles) throws {
    let before = try files.status("d/String").modified
    try files.put("d/String", "new\n")
    let after = try files.status("d/String").modified
    #expect(after > before)
    try files.put("d/String", "new\n")
    #expect(try files.status("d/String").modified == after)
  }

  private static func aWriteIntoAnInheritedKeyMakes(_ files: any TestFiles) throws {
    try files.put("d/Inherited", "mine\n")
    #expect(try files.names("d").contains("Inherited"))
    #expect(try files.attribute("d/Inherited", "user.prefs.source") == "user")
    #expect(try files.get("NSGlobalDomain/Inherited") == "global\n")
    #expect(try files.get("other/Inherited") == "global\n")
  }

  private static func aChangeOfTheGlobalDomainShows(_ files: any TestFiles) throws {
    expectRefused(ENOENT) { _ = try files.get("other/NewGlobal") }
    #expect(try files.get("other/Inherited") == "global\n")
    try files.put("NSGlobalDomain/Inherited", "changed\n")
    try files.put("NSGlobalDomain/NewGlobal", "1\n")
    files.pass(milliseconds: 20)
    #expect(try files.get("other/Inherited") == "changed\n")
    #expect(try files.get("other/NewGlobal") == "1\n")
    try files.unlink("NSGlobalDomain/NewGlobal")
    files.pass(milliseconds: 20)
    expectRefused(ENOENT) { _ = try files.get("other/NewGlobal") }
  }

  private static func moreThan16MibIsEfbig(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_WRONLY)
    expectRefused(EFBIG) { try files.truncate(file, to: 1 << 40) }
    expectRefused(EFBIG) { try files.write(file, "x", at: 16 << 20) }
    files.close(file)
    #expect(try files.get("d/String") == "hello\n")
  }
}
