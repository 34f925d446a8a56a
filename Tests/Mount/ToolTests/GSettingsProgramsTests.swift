import Foundation
import Support
import Testing

/// What programs that use GSettings set, of every type; schemas of the machine; and a mount that
/// comes later.
@Suite("Types and schemas of GSettings programs") struct GSettingsProgramsTests {
  /// Keys: name, the attribute of their type, default, and the value that they get, as GVariants.
  private static let keys: [(name: String, type: String, fallback: String, value: String)] = [
    ("boolean", "b", "false", "true"), ("byte", "y", "1", "byte 0xff"),
    ("int16", "n", "1", "int16 -32768"), ("uint16", "q", "1", "uint16 65535"),
    ("int32", "i", "1", "-2147483648"), ("uint32", "u", "1", "uint32 4294967295"),
    ("int64", "x", "1", "int64 -9223372036854775808"),
    ("uint64", "t", "1", "uint64 18446744073709551615"), ("handle", "h", "1", "handle 5"),
    ("double", "d", "1.0", "-1.5"), ("whole", "d", "1.0", "2.0"), ("endless", "d", "1.0", "inf"),
    ("string", "s", "'d'", "'x'"), ("number", "s", "'d'", "'14'"), ("truth", "s", "'d'", "'true'"),
    ("empty", "s", "'d'", "''"), ("json", "s", "'d'", #"'["a"]'"#),
    ("lines", "s", "'d'", #"'a\nb\n'"#), ("unicode", "s", "'d'", #"'é😀\t"'"#),
    ("object", "o", "'/'", "objectpath '/a/b'"), ("signature", "g", "''", "signature 'a{sv}'"),
    ("variant", "v", "<1>", "<uint32 5>"), ("variants", "av", "[]", "[<1>, <'x'>]"),
    ("strings", "as", "[]", #"['a', 'b"\\']"#), ("none", "as", "['d']", "@as []"),
    ("objects", "ao", "[]", "[objectpath '/a']"), ("integers", "ai", "[]", "[1, -2]"),
    ("bytes", "ay", "[]", "[byte 0x00, 0xff]"), ("text", "ay", "[]", "b'ab'"),
    ("texts", "aay", "[]", "[b'ab', b'c']"), ("doubles", "ad", "[]", "[1.0, -2.5, inf]"),
    ("booleans", "ab", "[]", "[true, false]"), ("lists", "aas", "[]", "[['a'], []]"),
    ("pair", "(ii)", "(0, 0)", "(1, 2)"), ("mixed", "(sib)", "('', 0, false)", "('a', 1, true)"),
    ("nested", "(s(ib))", "('', (0, false))", "('a', (1, true))"), ("unit", "()", "()", "()"),
    ("one", "(s)", "('',)", "('a',)"), ("pairs", "a(ss)", "[]", "[('xkb', 'us'), ('xkb', 'de')]"),
    ("words", "a{ss}", "{}", "{'a': 'b', 'c': '1'}"),
    ("any", "a{sv}", "{}", "{'a': <[1, 2]>, 'b': <'x'>}"), ("by-number", "a{is}", "{}", "{1: 'a'}"),
    ("points", "a{s(ii)}", "{}", "{'a': (1, 2)}"),
    ("dictionaries", "aa{sv}", "[]", "[{'a': <true>}, {}]"),
    ("by-object", "a{ob}", "{}", "{objectpath '/a': true}"), ("maybe", "mi", "nothing", "@mi 5"),
    ("nothing", "mi", "3", "@mi nothing"), ("maybe-string", "ms", "nothing", "@ms 'x'"),
    ("maybe-list", "mas", "nothing", "@mas ['a']"), ("maybes", "ami", "[]", "[@mi 1, nothing]"),
    ("maybe-pair", "m(ii)", "nothing", "@m(ii) (1, 2)"),
  ]

  private static let named = """
    <enum id="org.t.e"><value nick="one" value="1"/><value nick="two" value="2"/></enum>
    <flags id="org.t.f"><value nick="aa" value="1"/><value nick="bb" value="2"/></flags>
    """

  /// Keys with an enumeration, flags, a range and choices.
  private static let limited = """
    <key name="enum" enum="org.t.e"><default>'one'</default></key>
    <key name="flags" flags="org.t.f"><default>[]</default></key>
    <key name="range" type="i"><range min="1" max="9"/><default>1</default></key>
    <key name="choice" type="s"><choices><choice value="a"/><choice value="b"/></choices>
    <default>'a'</default></key>
    """

  private static let limitedValues = [
    ("enum", "'two'"), ("flags", "['aa', 'bb']"), ("range", "9"), ("choice", "'b'"),
  ]

  /// Commands that install a file of schemas where all programs find it.
  private static func install(_ schemas: String) -> String {
    """
    mkdir -p $R/share/glib-2.0/schemas; cat > $R/share/glib-2.0/schemas/t.gschema.xml <<'END'
    <schemalist>\(schemas)</schemalist>
    END
    glib-compile-schemas --strict $R/share/glib-2.0/schemas

    """
  }

  /// A function that waits until a command succeeds, five seconds at most.
  private static let wait = """
    until_() { for try in {1..100}; do eval "$1" && return; sleep 0.05; done; echo "never: $1"; }

    """

  @Test("keys of every type are read as they were set, and as their files are written")
  func types() throws {
    let schema = Self.keys.map { key in
      "<key name='\(key.name)' type='\(key.type)'><default>"
        + "\(key.fallback.replacing("<", with: "&lt;"))</default></key>"
    }
    let values = Self.keys.map { ($0.name, $0.value) } + Self.limitedValues
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        GSettingsTests.build
          + Self.install(
            Self.named + "<schema id='org.t.types' path='/org/t/types/'>" + schema.joined()
              + Self.limited + "</schema>") + """
            mkdir -p $R/oracle/glib-2.0/settings $R/saved; D=$M/org.t.types
            cat > $R/values <<'END'
            \(values.map { "\($0)=\($1)" }.joined(separator: "\n"))
            END
            (echo '[org/t/types]'; cat $R/values) > $R/oracle/glib-2.0/settings/keyfile
            all() { gsettings list-recursively org.t.types | sort; }
            GSETTINGS_BACKEND=keyfile XDG_CONFIG_HOME=$R/oracle all > $R/expected
            grep -c . $R/expected; while IFS='=' read -r key value; do
              gsettings set org.t.types "$key" "$value" < /dev/null
            done < $R/values
            all | diff $R/expected -; ls $D | wc -l; cp $D/* $R/saved; rm -r $D; all | diff $R/expected - | grep -c '^>'
            mkdir $D; for file in $R/saved/*; do cat $file > $D/${file##*/}; done
            all | diff $R/expected -; gsettings reset-recursively org.t.types; ls $D | wc -l
            """)
      // The empty tuple is the default, too.
      let count = values.count
      #expect(outcome.output == "\(count)\n\(count)\n\(count - 1)\n0\n", "\(outcome)")
    }
  }

  @Test("schemas of the machine inform: types of new keys, descriptions, completion, no copies")
  func schemas() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "exec 2>&1; R=$(realpath $C/..)\n" + Self.wait
          + Self.install(
            """
            <schema id="org.t.a" path="/org/t/a/">
            <key name="width" type="i"><range min="1" max="9"/><default>4</default>
            <summary>Columns</summary></key>
            <key name="name" type="s"><default>'x'</default></key>
            <key name="on" type="b"><default>false</default></key>
            <key name="size" type="d"><default>1.5</default></key>
            <key name="list" type="as"><default>[]</default></key>
            <key name="any" type="a{sv}"><default>{}</default></key></schema>
            <schema id="org.t.proxy" path="/system/t/"><key name="mode" type="s">
            <choices><choice value="none"/><choice value="auto"/></choices>
            <default>'none'</default></key></schema>
            <schema id="org.t.profile"><key name="k" type="s"><default>''</default></key></schema>
            """) + """
            mkdir $M/org.t.a; cd $M/org.t.a; echo 14 > name; echo 1 > on; echo 2 > size
            echo '["c"]' > list; echo '{"a": "<1>"}' > any; defaults write org.t.a width 99
            for key in name on size list any width; do defaults read-type org.t.a $key; done
            rm width; echo wide > width; defaults read-type org.t.a width; defaults write org.t.a width 8
            defaults describe org.t.a width; defaults describe org.t.proxy | head -n 2
            defaults describe org.t.profile; defaults complete keys system.t; defaults complete values system.t mode
            ls $M/.prefs/schemas | grep -c '^\\(org.t.a\\|system.t\\).plist$'; defaults complete domains | grep system.t
            grep -rl pfm_ $C $R/state $PREFSFS_SYSTEM_DIR 2> /dev/null | wc -l
            printf '[org.t.a]\\nname="over"\\n' > $R/share/glib-2.0/schemas/1.gschema.override
            glib-compile-schemas $R/share/glib-2.0/schemas; until_ 'defaults describe org.t.a name | grep -q over'
            rm $R/share/glib-2.0/schemas/t.gschema.xml; glib-compile-schemas $R/share/glib-2.0/schemas > $R/none 2>&1
            until_ '! defaults describe org.t.a > $R/out 2>&1'; tail -n 1 $R/out
            """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] /#, with: "") == """
          Type is string
          Type is boolean
          Type is float
          Type is array
          Type is dictionary
          Type is integer
          Type is string
          width: integer, 1 to 9, default 4
              Columns
              now 8 (user)
          system.t: org.t.proxy (informs only)
          mode: string, one of none, auto, default none
          There is no schema of the domain org.t.profile
          mode
          none
          auto
          2
          system.t
          0
          There is no schema of the domain org.t.a

          """, "\(outcome)")
    }
  }

  @Test("a program that runs without a mount is told when one comes")
  func mountComes() throws {
    try withSandbox { sandbox in
      let built = sandbox.shell(
        GSettingsTests.build
          + Self.install(
            """
            <schema id="org.t.a" path="/org/t/a/">
            <key name="width" type="i"><default>4</default></key></schema>
            """) + "mkdir -p $M; gsettings set org.t.a width 5; gsettings writable org.t.a width")
      // A message of the module goes to standard error, as that of gsettings does.
      let said = built.output.split(separator: "\n").filter { !$0.hasPrefix("** Message: ") }
      #expect(said == ["The key is not writable", "false"], "\(built)")
      // Its output goes into a file, and it is the process that is killed.
      let monitor = try sandbox.start(
        GSettingsTests.environment
          + "exec stdbuf -oL gsettings monitor org.t.a > $R/told 2>&1 < /dev/null")
      defer { sandbox.end(monitor) }
      sandbox.waitUntil("grep -q 'no preferences are mounted' $C/../told")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      sandbox.waitUntil("grep -qx 'width: 4' $C/../told")
      sandbox.shell("mkdir $M/org.t.a; echo 9 > $M/org.t.a/width")
      sandbox.waitUntil("grep -qx 'width: 9' $C/../told")
    }
  }
}
