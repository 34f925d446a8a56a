import Foundation
import Support
import Testing

/// The commands for schemas.
@Suite("Commands for schemas") struct SchemaCommandTests {
  @Test("describe, changed, lint, complete, and what is made of a schema")
  func verbs() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; \(SchemaMountTests.install)
        install_schema yes; defaults write e Width -int 15; defaults write --force e Theme Blue
        defaults write e Widht -int 3; defaults describe e Width; defaults describe e | grep Fonts
        defaults describe -k tab; defaults describe e Widht | tail -1; defaults describe none | tail -1
        defaults changed e; defaults lint; echo "[$?]"
        defaults complete keys e | xargs; defaults complete values e Theme | xargs
        defaults complete values e Wrap | xargs; defaults complete domains | xargs
        defaults schema json e | jq -c '.properties | [.Width.maximum, .Theme.enum, .Fonts.items.type, .When.format]'
        defaults schema markdown e | grep -A4 '## .Theme'; defaults schema swift e | grep -E 'width|theme|case'
        echo '{"e": {"Width": 99}}' > bad.json; defaults lint bad.json; echo "[$?]"
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] /#, with: "") == """
          defaults: e has no key Widht; did you mean Width?
          Width: integer, 10 to 20, default 12
              Width of a tab.
              now 15 (user)
          Fonts: array of string
          e Width: Width of a tab.
          The schema of e has no key Widht; did you mean Width?
          There is no schema of the domain none
          e Theme: Blue (default Light)
          e Widht: 3
          e Width: 15 (default 12)
          user e Theme: "Blue" is not one of "Light", "Dark"
          user e Widht: no such key; Width?
          [1]
          Blob Color Fonts Margins Needed Ratio Theme When Widht Width Wrap
          Light Dark
          true false
          NSGlobalDomain e
          [20,["Light","Dark"],"string","date-time"]
          ## `Theme`

          string, one of Light, Dark, default Light

          Light: Bright. Dark: Dim.
            public static let width = PreferenceKey<Int>("Width", default: 12)
            public static let theme = PreferenceKey<Theme>("Theme", default: .light)
            case light = "Light"
            case dark = "Dark"
          bad.json e Width: 99 is more than 20
          [1]

          """, "\(outcome)")
    }
  }

  @Test("an old-style list, which has no types, has those of the schema; JSON has its own")
  func untyped() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; \(SchemaMountTests.install)
        install_schema yes; defaults write e Width 15; defaults write e Wrap yes; defaults write e Margins '{Left = 5;}'
        defaults read e > list; defaults delete e; defaults import e list; types() { for k in Width Wrap; do defaults read-type e $k; done; }
        types; defaults export e - | grep -A1 Left | tail -1 | xargs
        defaults write e '{Width = 16; Wrap = 0; }'; types; defaults write e '{"Width": "16"}' | cat
        echo '{e = {Width = 17;};}' > d.apply; defaults apply d.apply; defaults read-type e Width
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] .*\n/#, with: "") == """
          Type is integer
          Type is boolean
          <integer>5</integer>
          Type is integer
          Type is boolean
          defaults: e Width: "16" is not an integer (--force sets it)
          e Width: 16 -> 17
          Type is integer

          """, "\(outcome)")
    }
  }

  @Test("while the owner is stopped, nobody is told that there is no schema")
  func stopped() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; \(SchemaMountTests.install)
        install_schema yes; defaults describe e Width | head -1; owner=$(cat $XDG_STATE_HOME/prefsfs/*/lock)
        kill -STOP $owner; defaults describe e Width > a 2>&1 & defaults schema swift e > b 2>&1; wait; kill -CONT $owner
        grep -h -o 'stopped?\\|no schema' a b
        """)
      #expect(
        outcome.output == "Width: integer, 10 to 20, default 12\nstopped?\nstopped?\n",
        "\(outcome)")
    }
  }

  @Test("a default that is stored as another kind of number is no change")
  func sameDefault() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; mkdir -p $PREFSFS_SYSTEM_DIR/schemas
        python3 -c "import plistlib, sys
        plistlib.dump(dict(pfm_subkeys=[dict(pfm_name='A', pfm_type='real', pfm_default=1),
          dict(pfm_name='B', pfm_type='real', pfm_default=0.5)]), open(sys.argv[1], 'wb'))" $PREFSFS_SYSTEM_DIR/schemas/f.plist
        defaults write f A 1; defaults write f B -float 0.5; defaults changed f; echo --
        defaults write f A 2; defaults changed f
        """)
      #expect(outcome.output == "--\nf A: 2 (default 1)\n", "\(outcome)")
    }
  }

  @Test(
    "the schema of the global domain has either of its names",
    arguments: ["NSGlobalDomain", ".GlobalPreferences"])
  func global(_ name: String) throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; S=$PREFSFS_SYSTEM_DIR/schemas; mkdir -p $S; defaults write -g Rate fast
        python3 -c "import plistlib, sys
        plistlib.dump(dict(prefs_authoritative=True, pfm_subkeys=[
          dict(pfm_name='Rate', pfm_type='integer')]), open(sys.argv[1], 'wb'))" $S/\(name).plist
        for i in $(seq 40); do defaults describe -g > /dev/null && break; sleep 0.1; done
        defaults describe -g Rate; defaults lint; defaults write -g Rate slow | cat
        echo slow > $M/NSGlobalDomain/Rate; echo 5 > $M/NSGlobalDomain/Rate; defaults read-type -g Rate
        rm $S/\(name).plist; sleep 1.2; defaults write -g Rate slow; defaults read -g Rate
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] .*\n/#, with: "").replacing(
          #/.*: line \d+: /#, with: "") == """
            Rate: integer
                now fast (user): "fast" is not an integer
            user NSGlobalDomain Rate: "fast" is not an integer
            defaults: NSGlobalDomain Rate: "slow" is not an integer (--force sets it)
            echo: write error: Invalid argument
            Type is integer
            slow

            """, "\(outcome)")
    }
  }

  @Test("schemas of GSettings are imported, and what glib refuses is refused")
  func imported() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $C/..; mkdir -p in out $PREFSFS_SYSTEM_DIR/schemas
        cat > in/a.enums.xml <<'END'
        <schemalist><enum id="org.a.E"><value nick="one" value="1"/><value nick="two" value="2"/></enum></schemalist>
        END
        cat > in/a.gschema.xml <<'END'
        <?xml version="1.0"?><!-- a comment --><schemalist><schema id="org.a" path="/org/a/">
        <key name="wrap" type="b"><default>false</default><summary>Wrap &amp; break</summary></key>
        <key name="width" type="u"><range min="1" max="16"/><default>4</default></key>
        <key name="mode" enum="org.a.E"><default>'two'</default></key>
        <key name="words" type="as"><default>['a']</default></key>
        </schema><schema id="org.b"><key name="k" type="i"><default>1</default></key></schema></schemalist>
        END
        defaults schema import in/a.gschema.xml | tail -1; defaults schema import in/a.gschema.xml --into $PREFSFS_SYSTEM_DIR/schemas
        defaults describe org.a | grep -v "^org.a:"; defaults describe org.b k
        glib-compile-schemas --strict --dry-run in && echo fine
        sed 's/>4</>40</' in/a.gschema.xml > in/b.gschema.xml; defaults schema import in/b.gschema.xml | tail -1
        echo '<schemalist><enum id="org.E"><value nick="xy" value="0"/></enum></schemalist>' > in/org.enums.xml
        (cd in; defaults schema import org.enums.xml a.gschema.xml --into ../out && ls ../out)
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] /#, with: "") == """
          There are 2 schemas: org.a, org.b
          defaults: --into DIRECTORY writes a file for each
          wrap: boolean, default false
              Wrap & break
          width: integer, 1 to 16, default 4
          mode: string, one of one, two, default two
          words: array of string, default ( a )
          k: integer, -2147483648 to 2147483647, default 1
          fine
          Could not import in/b.gschema.xml
          defaults: org.a width: its default: it is out of range
          org.a.plist
          org.b.plist

          """, "\(outcome)")
    }
  }
}
