import Foundation
import PropertyList
import Support
import Testing

/// Runs the command in a directory with a list of each kind.
@Suite("The plutil command") struct PlutilCommandTests {
  /// A command, and the output, messages and exit status that it must have.
  struct Session: Sendable, CustomTestStringConvertible {
    var command: String
    var output: String
    var errors: String
    var status: Int32

    init(_ command: String, _ output: String, _ errors: String, _ status: Int32) {
      (self.command, self.output, self.errors, self.status) = (command, output, errors, status)
    }

    var testDescription: String { command }
  }

  static let header = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  private static let all =
    header + """
      <dict>
      <key>str</key><string>a/b</string> <key>int</key><integer>42</integer>
      <key>real</key><real>3.14</real> <key>bool</key><true/>
      <key>date</key><date>2024-01-15T10:30:00Z</date> <key>data</key><data>AAECAwo=</data>
      <key>array</key><array><integer>1</integer><string>two</string></array>
      <key>dict</key><dict><key>k</key><string>v</string></dict>
      <key>dot.key</key><string>dotted</string>
      </dict></plist>
      """

  private static let files: [String: String] = [
    "all.plist": all, "-x.plist": all, "one.json": "{\"a\":1}", "empty.json": "{}", "zero": "",
    "bad.plist": "<plist version=\"1.0\">\n<dict>\n<key>a</key>\n</dict>\n</plist>\n",
    "word.txt": "garbage\n", "os.plist": "{ a = ( x, \"y z\" ); }\n",
    "nat.plist": header + "<dict><key>Item10</key><string/><key>Item2</key><string/>"
      + "<key>item1</key><string/></dict></plist>",
    "long.plist": header + "<data>"
      + Data((0..<32).map { UInt8($0) }).base64EncodedString() + "</data></plist>",
    "arr.plist": header + "<array><string>a</string><string>b</string></array></plist>",
  ]

  private func withFiles(_ body: (Sandbox) throws -> Void) throws {
    try withSandbox { sandbox in
      for (name, text) in Self.files {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(sandbox.root)/home/\(name)"))
      }
      try body(sandbox)
    }
  }

  private func run(_ command: String, _ sandbox: Sandbox) -> Outcome {
    sandbox.shell("cd $HOME && PATH=\(Program.beside("plutil").dropLast(7)):$PATH && \(command)")
  }

  /// Commands, with what macOS's plutil prints and its exit status.
  static let sessions: [Session] = [
    Session("plutil", "", "No files specified.\n", 1),
    Session("plutil all.plist", "all.plist: OK\n", "", 0),
    Session("plutil -lint -s all.plist", "", "", 0),
    Session(
      "printf '/* No Localized Strings */' > none.strings; plutil -lint none.strings",
      "none.strings: OK\n", "", 0),
    Session(
      "echo '{\"a\":{\"CF$UID\":1}}' > u.json; plutil -convert xml1 u.json -o - | grep -c UID",
      "1\n", "", 0),
    Session("plutil -lint one.json", "", "one.json: (Unexpected character { at line 1)\n", 1),
    Session("plutil -lint zero", "", "zero: (Cannot parse a NULL or zero-length data)\n", 1),
    Session("plutil - < all.plist", "<stdin>: OK\n", "", 0),
    Session(
      "plutil -p one.json > /dev/full", "",
      "one.json: Could not write to standard output: No space left on device\n", 1),
    Session("plutil -convert xml1 -o - all.plist | true", "", "", 0),
    Session(
      "plutil -lint nope.plist", "",
      "nope.plist: (The file “nope.plist” couldn’t be opened because there is no such file.)\n", 1),
    Session("plutil -lint -o x all.plist", "", "-o is not used with -lint.\n", 1),
    Session("plutil --foo", "", "unrecognized option: --foo\n", 1),
    Session("plutil -lint -lint all.plist", "", "unrecognized option: -lint\n", 1),
    Session("plutil -lint -o", "", "Missing argument for -o.\n", 1),
    Session(
      "plutil -p all.plist",
      "{\n  \"array\" => [\n    0 => 1\n    1 => \"two\"\n  ]\n  \"bool\" => true\n  \"data\" => {length = 5, bytes = 0x000102030a}\n  \"date\" => 2024-01-15 10:30:00 +0000\n  \"dict\" => {\n    \"k\" => \"v\"\n  }\n  \"dot.key\" => \"dotted\"\n  \"int\" => 42\n  \"real\" => 3.14\n  \"str\" => \"a/b\"\n}\n",
      "", 0),
    Session(
      "plutil -p long.plist",
      "{length = 32, bytes = 0x000102030405060708090a0b0c0d0e0f ... 18191a1b1c1d1e1f}\n", "", 0),
    Session(
      "plutil -p nat.plist",
      "{\n  \"item1\" => \"\"\n  \"Item2\" => \"\"\n  \"Item10\" => \"\"\n}\n", "", 0),
    Session(
      "plutil -p -s one.json", "{\n  \"a\" => 1\n}\n", "-s doesn't make a lot of sense with -p.\n",
      0),
    Session("plutil -p -e x all.plist", "", "-e is not used with -p.\n", 1),
    Session("plutil -extract str raw all.plist", "a/b\n", "", 0),
    Session("plutil -extract str raw -n all.plist", "a/b", "", 0),
    Session("plutil -extract real raw all.plist", "3.140000\n", "", 0),
    Session("plutil -extract bool raw all.plist", "true\n", "", 0),
    Session("plutil -extract date raw all.plist", "2024-01-15T10:30:00Z\n", "", 0),
    Session("plutil -extract data raw all.plist", "AAECAwo=\n", "", 0),
    Session("plutil -extract array raw all.plist", "2\n", "", 0),
    Session("plutil -extract dict raw all.plist", "k\n", "", 0),
    Session("plutil -extract array.1 raw all.plist", "two\n", "", 0),
    Session("plutil -extract 'dot\\.key' raw all.plist", "dotted\n", "", 0),
    Session(
      "plutil -extract dot.key raw all.plist", "",
      "all.plist: Could not extract value, error: No value at that key path or invalid key path: dot.key\n",
      1),
    Session("plutil -extract array json -o - all.plist", "[1,\"two\"]", "", 0),
    Session(
      "plutil -extract str json -o - all.plist", "",
      "all.plist: Invalid object in plist for JSON format\n", 1),
    Session(
      "plutil -extract str xml1 -o - all.plist", header + "<string>a/b</string>\n</plist>\n", "", 0),
    Session(
      "plutil -extract int raw -expect string all.plist", "",
      "all.plist: Value at [int] expected to be string but is integer\n", 1),
    Session(
      "plutil -type bool -expect integer all.plist", "",
      "all.plist: Value at [bool] expected to be integer but is boolean\n", 1),
    Session("plutil -type bool all.plist", "bool\n", "", 0),
    Session("plutil -extract a raw -expect foo one.json", "", "-expect type [foo] not valid.\n", 1),
    Session(
      "plutil -convert json -o - all.plist", "",
      "all.plist: Invalid object in plist for JSON format\n", 1),
    Session(
      "plutil -convert xml1 -o - one.json",
      header + "<dict>\n\t<key>a</key>\n\t<integer>1</integer>\n</dict>\n</plist>\n", "", 0),
    Session(
      "plutil -convert xml1 -o - - < os.plist",
      header
        + "<dict>\n\t<key>a</key>\n\t<array>\n\t\t<string>x</string>\n\t\t<string>y z</string>\n\t</array>\n</dict>\n</plist>\n",
      "", 0),
    Session("plutil -convert foo all.plist", "", "Unknown format specifier: foo\n", 1),
    Session("plutil -convert", "", "Missing format specifier for command.\n", 1),
    Session(
      "plutil -convert swift -o - all.plist",
      "/// Generated from all.plist\nlet all : [String : Any] = [\n    \"array\" : [\n        1,\n        \"two\",\n    ],\n    \"bool\" : true,\n    \"data\" : Data(bytes: [0x00,0x01,0x02,0x03,0x0A,]),\n    \"date\" : Date(timeIntervalSinceReferenceDate: 727007400.0),\n    \"dict\" : [\n        \"k\" : \"v\",\n    ],\n    \"dot.key\" : \"dotted\",\n    \"int\" : 42,\n    \"real\" : 3.140000,\n    \"str\" : \"a/b\",\n]\n",
      "", 0),
    Session(
      "plutil -convert objc -o - all.plist", "",
      "all.plist: Input contains an object that cannot be represented in Obj-C literal syntax\n", 1),
    Session(
      "plutil -convert xml1 -header all.plist", "",
      "-header is only valid for objc literal conversions.\n", 1),
    Session("plutil -insert b -json '[1,true]' -o - one.json", "{\"a\":1,\"b\":[1,true]}", "", 0),
    Session(
      "plutil -insert a -integer 2 one.json", "", "one.json: Value already exists at key path a\n",
      1),
    Session("plutil -insert x.y -string z one.json", "", "one.json: Key path not found x.y\n", 1),
    Session(
      "plutil -insert a -string z -append one.json", "",
      "one.json: Appending to a non-array at key path a\n", 1),
    Session(
      "plutil -insert a.b -string z one.json", "",
      "one.json: Unable to insert value at key path a.b\n", 1),
    Session(
      "plutil -replace 0 -string z -o - arr.plist",
      header
        + "<array>\n\t<string>z</string>\n\t<string>a</string>\n\t<string>b</string>\n</array>\n</plist>\n",
      "", 0),
    Session(
      "plutil -insert 5 -string z arr.plist", "",
      "arr.plist: Index 5 out of bounds in array at key path 5\n", 1),
    Session(
      "plutil -insert k -string z arr.plist", "",
      "arr.plist: Unable to index into array with key path k\n", 1),
    Session(
      "plutil -insert a -string z empty.json", "",
      "empty.json: Conversion to OpenStep format is not supported\n", 1),
    Session(
      "plutil -insert k -string", "",
      "'Insert' and 'Replace' require a key path, a type, and a value2.\n", 1),
    Session("plutil -insert k -foo v one.json", "", "Unknown insert or replace type -foo\n", 1),
    Session("plutil -replace a -bool yes -o - one.json", "{\"a\":true}", "", 0),
    Session(
      "plutil -remove 0 -o - arr.plist",
      header + "<array>\n\t<string>b</string>\n</array>\n</plist>\n", "", 0),
    Session("plutil -remove q one.json", "", "one.json: No value to remove at key path q\n", 1),
    Session("plutil -remove a -r -o - one.json", "{\n\n}", "", 0),
    Session("plutil -create json -", "{}", "", 0),
    Session("plutil -create xml1 -", header + "<dict/>\n</plist>\n", "", 0),
    Session("plutil -create type -", "dictionary\n", "", 0),
    Session(
      "plutil -extract a raw one.json nope.plist one.json", "1\n1\n",
      "nope.plist: (The file “nope.plist” couldn’t be opened because there is no such file.)\n", 1),
    Session("plutil -lint \"\"", "", ": Empty path specified\n", 1),
    Session("plutil -lint -- -x.plist", "-x.plist: OK\n", "", 0),
    Session(
      "plutil -lint - < /dev/null", "", "<stdin>: (Unable to read file from standard input)\n", 1),
    Session("plutil -insert k -date today one.json", "", "Invalid date in argument\n", 1),
  ]

  @Test("a command prints what macOS's plutil prints", arguments: sessions)
  func session(_ session: Session) throws {
    try withFiles { sandbox in
      let outcome = run(session.command, sandbox)
      #expect(outcome.output == session.output)
      #expect(outcome.errors == session.errors)
      #expect(outcome.status == session.status)
    }
  }

  @Test("-convert and -extract write in place, beside the file and with a header")
  func files() throws {
    try withFiles { sandbox in
      let before = run("plutil -p all.plist", sandbox).output
      #expect(run("plutil -convert binary1 all.plist", sandbox).status == 0)
      #expect(
        run("head -c 8 all.plist; plutil -p all.plist", sandbox).output == "bplist00" + before)
      #expect(
        run("plutil -convert json -e js arr.plist; cat arr.js", sandbox).output == "[\"a\",\"b\"]")
      let literal = run("plutil -convert objc -header arr.plist; cat arr.m arr.h", sandbox).output
      #expect(literal.hasPrefix("#import \"arr.h\"\n\n/// Generated from arr.plist\n"))
      #expect(literal.contains("NSArray * const arr = @[\n    @\"a\",\n    @\"b\",\n];\n"))
      #expect(literal.hasSuffix("extern NSArray * const arr;\n"))
      #expect(run("plutil -extract str raw -o out all.plist; cat out", sandbox).output == "a/b")
    }
  }

  @Test("an edit that cannot be written changes nothing; one that can keeps the file's mode")
  func refused() throws {
    try withFiles { sandbox in
      let session =
        "chmod 640 one.json; plutil -insert k -data AAAA one.json; cat one.json; "
        + "plutil -replace a -bool yes one.json; cat one.json; stat -c %a one.json"
      #expect(run(session, sandbox).output == "{\"a\":1}{\"a\":true}640\n")
    }
  }

  @Test("XML has dates in whole seconds, and a date outside of the calendar is printed whole")
  func dates() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $HOME; printf '<plist><dict><key>d</key><date>2024-01-15T10:30:00.5Z</date><key>e</key>'\\
        '<date>@inf</date></dict></plist>' > x; plutil -convert binary1 x
        plutil -extract d xml1 -o - x | grep -o '<date>.*</date>'; plutil -p x
        """)
      #expect(
        outcome.output == """
          <date>2024-01-15T10:30:00Z</date>
          {
            "d" => 2024-01-15 10:30:00 +0000
            "e" => @inf
          }

          """, "\(outcome)")
    }
  }

  @Test("Python's plistlib and libplist read what plutil writes")
  func judges() throws {
    try withFiles { sandbox in
      #expect(run("plutil -insert list -json '[1, {\"x\": 2.5}]' all.plist", sandbox).status == 0)
      let list = sandbox.root + "/home/all.plist"
      #expect(
        sandbox.evaluate(list, "d['list'], d['int'], d['data']")
          == "[1, {'x': 2.5}] 42 b'\\x00\\x01\\x02\\x03\\n'")
      #expect(run("plistutil -i all.plist -o /dev/null", sandbox).status == 0)
    }
  }
}
