import Foundation
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceSchemas

@Suite("Schemas of GSettings on the machine") struct MachineSchemasTests {
  /// Directories `0`, `1` with these files, and what the log gets.
  private final class Machine: Sendable {
    let root: String
    let lines = Mutex<[String]>([])

    init(_ files: [String: String]) throws {
      root = FileManager.default.temporaryDirectory.path + "/prefsfs-\(UUID().uuidString)"
      for (name, text) in files { try write(name, text) }
    }

    func write(_ name: String, _ text: String) throws {
      try Files.makeDirectories(Files.parent(of: "\(root)/\(name)"), mode: 0o700)
      try Files.replace("\(root)/\(name)", with: Array(text.utf8))
    }

    func schemas() -> MachineSchemas {
      MachineSchemas(["\(root)/0", "\(root)/1", "\(root)/none"]) { [self] line in
        lines.withLock { $0.append(line.text.replacing(root + "/", with: "")) }
      }
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }
  }

  private static func list(_ schemas: String) -> String { "<schemalist>\(schemas)</schemalist>" }

  /// A schema with string keys, which have their names as defaults.
  private static func schema(
    _ id: String, path: String?, _ keys: [String], extends base: String? = nil
  ) -> String {
    let path = path.map { " path='\($0)'" } ?? ""
    let base = base.map { " extends='\($0)'" } ?? ""
    return "<schema id='\(id)'\(path)\(base)>"
      + keys.map { "<key name='\($0)' type='s'><default>'\($0)'</default></key>" }.joined()
      + "</schema>"
  }

  private static func keys(_ schemas: MachineSchemas, _ domain: DomainName) throws -> [String]? {
    try schemas.manifest(of: domain).map { try Schema(manifest: $0).keys.map(\.name.string) }
  }

  @Test("a path is the domain; an id finds it; a relocatable schema has none")
  func names() throws {
    let machine = try Machine([
      "0/a.gschema.xml": Self.list(
        Self.schema("org.x.proxy", path: "/system/proxy/", ["mode"])
          + Self.schema("org.x.a", path: "/org/x/a/", ["k"])
          + Self.schema("org.x.dot", path: "/org/x/a.b/", ["k"])
          + Self.schema("org.x.profile", path: nil, ["k"]))
    ])
    let schemas = machine.schemas()
    #expect(schemas.domains == ["system.proxy", "org.x.a", "org.x.a%2Eb"])
    #expect(try Self.keys(schemas, "system.proxy") == ["mode"])
    #expect(try Self.keys(schemas, "org.x.proxy") == ["mode"])
    #expect(schemas.manifest(of: "org.x.proxy")?["prefs_path"] == "/system/proxy/")
    #expect(try Self.keys(schemas, "org.x.a%2Eb") == ["k"])
    #expect(!schemas.has("org.x.profile") && schemas.manifest(of: "org.x.profile") == nil)
    #expect(schemas.modified(of: "org.x.a") != nil && schemas.modified(of: "org.x") == nil)
    let manifest = try #require(schemas.manifest(of: "org.x.a"))
    let schema = try Schema(manifest: manifest)
    #expect(schema.isAuthoritative == false && schema.title == "" && schema.problems == [])
  }

  @Test("schemas of one path are one domain, with the keys of bases; the first directory counts")
  func several() throws {
    let machine = try Machine([
      "0/b.gschema.xml": Self.list(
        Self.schema("org.x.old", path: "/org/x/a/", ["k", "older"])
          + Self.schema("org.x.more", path: "/org/x/more/", ["own"], extends: "org.x.base")),
      "0/a.gschema.xml": Self.list(
        Self.schema("org.x.a", path: "/org/x/a/", ["k"])
          + Self.schema("org.x.base", path: nil, ["inherited"])),
      "1/a.gschema.xml": Self.list(Self.schema("org.x.a", path: "/org/x/a/", ["other"])),
      "1/parent.gschema.xml": Self.list(Self.schema("org.x.parent", path: "/org/x/parent/", [])),
      "1/c.gschema.xml": Self.list(Self.schema("org.x.c", path: "/org/x/c/", ["c"])),
    ])
    let schemas = machine.schemas()
    #expect(try Self.keys(schemas, "org.x.a") == ["k", "older"])
    #expect(try Self.keys(schemas, "org.x.more") == ["inherited", "own"])
    #expect(try Self.keys(schemas, "org.x.c") == ["c"])
    #expect(try Self.keys(schemas, "org.x.parent") == [])
    #expect(machine.lines.withLock { $0 } == [])
  }

  @Test("overrides change defaults, but not those for one desktop, nor what does not fit")
  func overrides() throws {
    let keys = """
      <schema id='org.x.a' path='/org/x/a/'>
      <key name='n' type='i'><range min='0' max='9'/><default>4</default></key>
      <key name='e' enum='org.x.e'><default>'one'</default></key>
      <key name='s' type='s'><default>'x'</default></key>
      </schema>
      """
    let machine = try Machine([
      "0/x.enums.xml": Self.list(
        "<enum id='org.x.e'><value nick='one' value='1'/><value nick='two' value='2'/></enum>"),
      "0/a.gschema.xml": Self.list(keys),
      "0/20.gschema.override": "[org.x.a]\ns='second'\n",
      "0/10.gschema.override": """
      # A comment
      [org.x.a]
      n = 7
      e='two'
      s='first'
      none=1
      [org.x.a:GNOME]
      n=8
      [org.x.a]
      n=99
      [org.x.none]
      n=1
      """,
    ])
    let schema = try Schema(manifest: try #require(machine.schemas().manifest(of: "org.x.a")))
    #expect(schema["n"]?.fallback == 7 && schema["e"]?.fallback == "two")
    #expect(schema["s"]?.fallback == "second" && schema["e"]?.choices == ["one", "two"])
    #expect(schema.problems == [])
  }

  @Test("a file that is malformed or too large is skipped, with one line until it changes")
  func malformed() throws {
    let good = Self.list(Self.schema("org.x.a", path: "/org/x/a/", ["k"]))
    let bad = "<schemalist>" + Self.schema("org.x.bad", path: "/org/x/bad/", ["k"])
    let machine = try Machine([
      "0/a.gschema.xml": good, "0/bad.gschema.xml": bad,
      "0/large.gschema.xml": Self.list(String(repeating: " ", count: 5 << 20)),
      "0/refused.gschema.xml": Self.list(
        Self.schema("org.x.first", path: "/org/x/first/", ["k"])
          + Self.schema("org.x.refused", path: "/org/x/refused/", ["Bad_Name"])),
      "0/none.gschema.xml": "", "0/binary.gschema.xml": "<schema\0 id='<<>\"",
    ])
    let schemas = machine.schemas()
    for _ in 0..<3 {
      #expect(try Self.keys(schemas, "org.x.a") == ["k"])
      for domain in ["bad", "first", "refused"] {
        #expect(schemas.manifest(of: DomainName("org.x.\(domain)")) == nil, "\(domain)")
      }
    }
    let lines = machine.lines.withLock { $0 }
    let names = lines.map { $0.prefix { $0 != ":" } }.sorted()
    #expect(
      names == ["0/bad.gschema.xml", "0/large.gschema.xml", "0/refused.gschema.xml"], "\(lines)")
  }

  @Test("only tags of the file count, and none in comments, texts or values of attributes")
  func tags() {
    let file = GSettingsFile(
      Array(
        """
        <?xml version='1.0'?><!DOCTYPE schemalist [<!-- don't [ -->]>
        <schemalist><!-- <schema id='no' path='/no/'> --><![CDATA[<schema id='no'/>]]>
        <schema path = "/a>b/"
          id='yes'><key name='<schema id="no">' type='s'/></schema><schemas id='no'/>
        <enum id='e'/><flags id="f"></flags><schema id='q' gettext-domain="x"/>
        <!--><schema id='no'/>--><schema no-id=''/><schema id='cut
        """.utf8))
    #expect(file.schemas.map(\.id) == ["yes", "q"])
    #expect(file.schemas.map(\.path) == ["/a>b/", nil] && file.enumerations == ["e", "f"])
  }

  @Test("what is installed later is found, and what is removed is not")
  func changes() throws {
    let machine = try Machine(["0/a.gschema.xml": Self.list("")])
    let schemas = machine.schemas()
    #expect(schemas.domains == [])
    try machine.write("1/b.gschema.xml", Self.list(Self.schema("org.b", path: "/org/b/", ["k"])))
    #expect(schemas.domains == ["org.b"])
    try machine.write(
      "0/b.gschema.xml", Self.list(Self.schema("org.b", path: "/org/b/", ["first"])))
    #expect(try Self.keys(schemas, "org.b") == ["first"])
    try Files.remove("\(machine.root)/0/b.gschema.xml")
    #expect(try Self.keys(schemas, "org.b") == ["k"])
  }

  @Test(
    "a key is described as its file has it",
    arguments: [
      ("b", "true", .boolean, true), ("i", "4", .integer, 4), ("t", "5", .integer, 5),
      ("d", "2", .real, 2), ("s", "'14'", .string, "14"), ("o", "'/a'", .string, "/a"),
      ("as", "['a']", .array, ["a"]), ("ay", "[1, 2]", .array, [1, 2]),
      ("ay", "b'a'", .array, [97, 0]),
      ("(ii)", "(1, 2)", .array, [1, 2]), ("a{ss}", "{'a': 'b'}", .dictionary, ["a": "b"]),
      ("a{sv}", "{'a': <1>}", .dictionary, ["a": "<1>"]), ("v", "<1>", nil, "<1>"),
      ("mi", "3", nil, 3), ("mi", "nothing", nil, nil), ("h", "2", nil, 2),
      ("a{is}", "{1: 'a'}", nil, "{1: 'a'}"), ("aay", "[b'a']", .array, [[97, 0]]),
      ("av", "[<1>]", .array, ["<1>"]), ("ami", "[@mi 3]", nil, "[@mi 3]"),
      ("aa{us}", "[{1: 'a'}]", nil, "[{1: 'a'}]"),
    ] as [(String, String, Kind?, Value?)])
  func types(_ type: String, _ fallback: String, _ kind: Kind?, _ value: Value?) throws {
    let machine = try Machine([
      "0/a.gschema.xml": Self.list(
        "<schema id='a.b' path='/a/b/'><key name='k' type='\(type)'>"
          + "<default>\(fallback.replacing("<", with: "&lt;"))</default></key></schema>")
    ])
    let manifest = try #require(machine.schemas().manifest(of: "a.b"))
    let schema = try Schema(manifest: manifest)
    let key = try #require(schema["k"])
    #expect(key.kind == kind && key.fallback == value && schema.problems == [])
  }
}
