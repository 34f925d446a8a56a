import Foundation
import Support
import Testing

/// Incomplete text, truncation, text over longer text, and the types of new keys.
enum TextCases {
  private static func creatorCloses(_ files: any TestFiles) throws {
    let creator = try files.open("d/New", O_WRONLY | O_CREAT)
    try files.write(creator, "hello\n", at: 0)
    files.close(try files.open("d/New", O_WRONLY | O_TRUNC))
    files.close(creator)
    files.pass(milliseconds: 80)
    #expect(try files.get("d/New") == "")
  }

  private static func creatorWritesBefore(_ files: any TestFiles) throws {
    let long = 100_000
    for (first, second, rest) in [("[1]", "[2]", " "), ("xx", "y", "x"), ("1", "\u{20AC}", "x")] {
      let creator = try files.open("d/New", O_WRONLY | O_CREAT)
      let tail = String(repeating: rest, count: long)
      try files.write(creator, first + tail, at: 0)
      try files.write(creator, second, at: 0)
      files.close(creator)
      let kept = (first + tail).utf8.dropFirst(second.utf8.count)
      #expect(try files.get("d/New") == second + String(decoding: kept, as: UTF8.self), "\(first)")
      try files.unlink("d/New")
      files.pass(milliseconds: 1100)
    }
  }

  private static func renameHeldText(_ files: any TestFiles) throws {
    let file = try files.open("d/Dict", O_WRONLY | O_TRUNC)
    try files.write(file, "{\"a\": ", at: 0)
    expectRefused(EPERM) { try files.rename("d/Dict", "d/Other", flags: 0) }
    files.close(file)
  }

  static let list = [
    Case(
      "incomplete text is held: readers see it, fsync refuses it, more text completes it",
      incompleteTextIsHeldReadersSeeIt),
    Case(
      "text that stays incomplete for 5 s is dropped, and cannot be continued",
      textLeftIncompleteIsDroppedAfter5),
    Case(
      "a truncation alone empties strings and data, and leaves other values",
      aTruncationAloneEmptiesStringsAndData),
    Case(
      "a write long after a truncation starts from empty text",
      aWriteLongAfterTheTruncationStarts),
    Case("a write after a refused one starts from empty text", aWriteAfterARefusedOneStarts),
    Case("fsync makes a truncation take effect at once", fsyncDecidesATruncationAtOnce),
    Case("a truncation moves the time once, also of an empty string", aTruncationMovesTheTimeOnce),
    Case("the tail of a longer old text is cut if it spoils the value", oldTailCutWhereTheWholeIs),
    Case("the tail of a longer old text stays if the whole is a value", oldTailKeptWhereTheWholeIs),
    Case("text over a longer one and ftruncate, as rsync --inplace does", newTextOverALongerOneAnd),
    Case("ftruncate shortens a string, and does not lengthen it", ftruncateToALength),
    Case("a new key takes its type from its text", aNewKeyTakesItsTypeFrom),
    Case(
      "a new key takes its type anew with each write until it is closed", theTypeOfANewKeyIs),
    Case("a file created and left empty is an empty string", aFileCreatedAndLeftEmptyIs),
    Case("the creator's close does not undo another program's truncation", creatorCloses),
    Case(
      "a new key's creator writes its beginning again and closes it: the rest stays",
      creatorWritesBefore),
    Case("a rename of a key with incomplete text is EPERM", renameHeldText),
    Case("setting user.prefs.type converts, or is EINVAL", userPrefsTypeConvertsOrIsEinval),
  ]

  private static func incompleteTextIsHeldReadersSeeIt(_ files: any TestFiles) throws {
    let file = try files.open("d/Dict", O_WRONLY | O_TRUNC)
    try files.write(file, "{\"a\": ", at: 0)
    #expect(try files.get("d/Dict") == "{\"a\": ")
    expectRefused(EINVAL) { try files.synchronize(file) }
    try files.write(file, "2}", at: 6)
    #expect(try files.get("d/Dict") == "{\"a\": 2}")
    try files.synchronize(file)
    files.close(file)
  }

  private static func textLeftIncompleteIsDroppedAfter5(_ files: any TestFiles) throws {
    let file = try files.open("d/Array", O_WRONLY | O_TRUNC)
    try files.write(file, "[1, ", at: 0)
    files.pass(milliseconds: 5100)
    #expect(try files.get("d/Array") == "[\n  1,\n  \"a\",\n  2.5\n]\n")
    expectRefused(EINVAL) { try files.write(file, "2]", at: 4) }
    files.close(file)
    try files.put("d/Array", "[2]\n")
    #expect(try files.get("d/Array") == "[2]\n")
  }

  private static func aTruncationAloneEmptiesStringsAndData(_ files: any TestFiles) throws {
    for key in ["String", "Data", "Integer", "Dict", "Boolean"] {
      files.close(try files.open("d/\(key)", O_WRONLY | O_TRUNC))
    }
    files.pass(milliseconds: 80)
    #expect(try files.get("d/String") == "")
    #expect(try files.get("d/Data") == "")
    #expect(try files.get("d/Integer") == "42\n")
    #expect(try files.get("d/Boolean") == "true\n")
    #expect(try files.status("d/Integer").size == 3)
    #expect(try files.get("d/Dict").hasPrefix("{"))
  }

  private static func aWriteLongAfterTheTruncationStarts(_ files: any TestFiles) throws {
    let file = try files.open("d/Integer", O_WRONLY | O_TRUNC)
    files.pass(milliseconds: 300)
    #expect(try files.get("d/Integer") == "42\n")
    try files.write(file, "7", at: 0)
    files.close(file)
    #expect(try files.get("d/Integer") == "7")
  }

  private static func aWriteAfterARefusedOneStarts(_ files: any TestFiles) throws {
    let file = try files.open("d/Integer", O_WRONLY | O_TRUNC)
    expectRefused(EINVAL) { try files.write(file, "bad", at: 0) }
    try files.write(file, "7", at: 0)
    files.close(file)
    #expect(try files.get("d/Integer") == "7")
  }

  private static func aTruncationMovesTheTimeOnce(_ files: any TestFiles) throws {
    for _ in 0..<2 {
      let before = try files.status("d/String").modified
      let file = try files.open("d/String", O_WRONLY | O_TRUNC)
      files.close(file)
      let truncated = try files.status("d/String").modified
      #expect(truncated > before)
      files.pass(milliseconds: 60)
      #expect(try files.status("d/String").modified == truncated)
      #expect(try files.get("d/String") == "")
    }
  }

  private static func fsyncDecidesATruncationAtOnce(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_WRONLY | O_TRUNC)
    try files.synchronize(file)
    files.close(file)
    #expect(try files.get("d/String") == "")
  }

  private static func oldTailCutWhereTheWholeIs(_ files: any TestFiles) throws {
    let file = try files.open("d/Integer", O_WRONLY)
    try files.put("d/Integer", "12345\n")
    try files.write(file, "7\n", at: 0)
    files.pass(milliseconds: 80)
    files.close(file)
    #expect(try files.get("d/Integer") == "7\n")
    #expect(try files.status("d/Integer").size == 2)
  }

  private static func oldTailKeptWhereTheWholeIs(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_WRONLY)
    try files.write(file, "J", at: 0)
    files.pass(milliseconds: 80)
    files.close(file)
    #expect(try files.get("d/String") == "Jello\n")
  }

  private static func newTextOverALongerOneAnd(_ files: any TestFiles) throws {
    let file = try files.open("d/Dict", O_WRONLY)
    try files.write(file, "{\"a\": 2}\n", at: 0)
    try files.truncate(file, to: 9)
    files.close(file)
    #expect(try files.get("d/Dict") == "{\"a\": 2}\n")
  }

  private static func ftruncateToALength(_ files: any TestFiles) throws {
    let file = try files.open("d/String", O_WRONLY)
    try files.truncate(file, to: 2)
    #expect(try files.get("d/String") == "he")
    expectRefused(EINVAL) { try files.truncate(file, to: 5) }
    #expect(try files.get("d/String") == "he")
    files.close(file)
  }

  private static func aNewKeyTakesItsTypeFrom(_ files: any TestFiles) throws {
    let texts = [
      ("13\n", "integer"), ("1.5", "real"), ("true\n", "boolean"), ("007\n", "string"),
      ("1.10\n", "string"), ("+5\n", "string"), ("NO\n", "string"), ("inf\n", "string"),
      ("nan\n", "string"), ("{\"a\": 1}\n", "dictionary"), ("[]", "array"), ("[1\n", "string"),
      ("{ a = 1; }\n", "string"), ("<plist><integer>5</integer></plist>\n", "integer"),
      ("<plist><dict/></plist>", "dictionary"), ("<html>\n", "string"), ("a\0b", "data"),
      ("18446744073709551615\n", "integer"), ("-9223372036854775809\n", "string"),
      ("-0\n", "string"), ("1e5\n", "string"), ("yes", "string"), ("13\n\n", "string"),
    ]
    for (index, (text, type)) in texts.enumerated() {
      let file = "d/New\(index)"
      try files.put(file, text)
      #expect(try files.type(file) == type, "\(text)")
      #expect(try files.get(file) == text)
    }
  }

  private static func theTypeOfANewKeyIs(_ files: any TestFiles) throws {
    let file = try files.open("d/New", O_WRONLY | O_CREAT)
    #expect(try files.type("d/New") == "string")
    try files.write(file, "1", at: 0)
    #expect(try files.type("d/New") == "integer")
    try files.write(file, ".5", at: 1)
    #expect(try files.type("d/New") == "real")
    files.close(file)
    files.pass(milliseconds: 20)
    expectRefused(EINVAL) { try files.put("d/New", "word\n") }
  }

  private static func aFileCreatedAndLeftEmptyIs(_ files: any TestFiles) throws {
    files.close(try files.open("d/New", O_WRONLY | O_CREAT | O_EXCL))
    #expect(try files.type("d/New") == "string")
    #expect(try files.get("d/New") == "")
    expectRefused(EEXIST) { _ = try files.open("d/New", O_WRONLY | O_CREAT | O_EXCL) }
  }

  private static func userPrefsTypeConvertsOrIsEinval(_ files: any TestFiles) throws {
    try files.setAttribute("d/Integer", "user.prefs.type", "string")
    #expect(try files.type("d/Integer") == "string")
    #expect(try files.get("d/Integer") == "42\n")
    try files.put("d/Integer", "word\n")
    expectRefused(EINVAL) { try files.setAttribute("d/Integer", "user.prefs.type", "integer") }
    expectRefused(EINVAL) { try files.setAttribute("d/Integer", "user.prefs.type", "nothing") }
    try files.setAttribute("d/Boolean", "user.prefs.type", "integer")
    #expect(try files.get("d/Boolean") == "1\n")
    try files.setAttribute("d/Boolean", "user.prefs.source", "elsewhere")
    #expect(try files.attribute("d/Boolean", "user.prefs.source") == "user")
    expectRefused(EOPNOTSUPP) { try files.setAttribute("d/Boolean", "user.other", "x") }
  }
}
