import Foundation
import Support
import Testing

/// What the page on declarations shows, run by the tools that it names.
@Suite("Declarations and tools") struct DeclarationToolTests {
  /// The code blocks of the page that are in that language.
  private static func blocks(_ language: String) throws -> [String] {
    let page = Program.package.appendingPathComponent(
      "Sources/Client/Preferences/Preferences.docc/Declarations.md")
    let parts = try String(contentsOf: page, encoding: .utf8).components(
      separatedBy: "```\(language)\n")
    return parts.dropFirst().compactMap { $0.components(separatedBy: "\n```").first }
  }

  @Test("Puppet declares, finds nothing to do the second time, and takes back")
  func puppet() throws {
    let manifest = try #require(try Self.blocks("puppet").first)
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let file = sandbox.root + "/site.pp"
      try "$prefs = '\(sandbox.mountPoint)'\n\(manifest)\n".write(
        toFile: file, atomically: true, encoding: .utf8)
      let outcome = sandbox.shell(
        """
        cd $C/..; defaults write com.example.editor TabWidth -int 8
        defaults write com.example.editor Font Serif
        printf '{"com.example.editor": {"Font": "Mono"}}' > $M/.prefs/declared/old.json
        puppet_() { HOME=$C/../home puppet apply --vardir $PWD/v --confdir $PWD/c \
          --detailed-exitcodes "$@" > puppet.log 2>&1; echo "[$?]"; }
        puppet_ --noop site.pp; cat $M/com.example.editor/{TabWidth,Font}
        puppet_ site.pp; cat $M/com.example.editor/{TabWidth,Font}; puppet_ site.pp
        echo "file { '$M/.prefs/declared/site.json': ensure => absent }" > site.pp
        puppet_ site.pp; cat $M/com.example.editor/TabWidth; puppet_ site.pp; defaults declared
        """)
      let log = (try? String(contentsOfFile: sandbox.root + "/puppet.log", encoding: .utf8)) ?? ""
      #expect(
        outcome.output == "[0]\n8\nMono\n[2]\n2\nSerif\n[0]\n[2]\n8\n[0]\n",
        "\(outcome)\(log)\(mount.log)")
    }
  }

  @Test("a repository of dotfiles is installed, shortened and installed again, and removed")
  func dotfiles() throws {
    let script = try #require(try Self.blocks("sh").first)
    try withSandbox { sandbox in
      try (script + "\n").write(
        toFile: sandbox.root + "/install.sh", atomically: true, encoding: .utf8)
      let outcome = sandbox.shell(
        """
        cd $C/..; exec 2>&1; mkdir preferences; defaults write e TabWidth -int 8
        echo '{"e": {"TabWidth": 2, "Theme": "Dark"}}' > preferences/e.json
        echo '{"f": {"Wrap": true}}' > preferences/f.json
        sh install.sh; sh install.sh; echo "[$?]"
        defaults write e Theme Light; rm preferences/f.json
        echo '{"e": {}}' > preferences/e.json; sh install.sh | sed 's/    (.*//'
        defaults undeclare dotfiles; defaults read e; defaults declared
        """)
      #expect(
        outcome.output == """
          e TabWidth: 8 -> 2
          e Theme: (none) -> Dark
          f Wrap: (none) -> 1
          [0]
          e TabWidth: 2 -> 8
          e Theme: Light stays
          f Wrap: 1 -> (none)
          {
              TabWidth = 8;
              Theme = Light;
          }

          """, "\(outcome)")
    }
  }

  @Test("a timer makes the machine what a repository says, and its units are valid")
  func gitOps() throws {
    let script = try #require(try Self.blocks("sh").dropFirst().first)
    let units = try Self.blocks("ini")
    try #require(units.count == 3)
    try withSandbox { sandbox in
      let files = [
        ("declare", script.replacing("/var/lib/preferences", with: sandbox.root + "/clone")),
        ("prefsfs-deadlines.service", units[0]), ("declare-preferences.service", units[1]),
        ("declare-preferences.timer", units[2]),
      ]
      for (name, text) in files {
        let text = text.replacing("/usr/local/sbin/declare-preferences", with: "/bin/true")
          .replacing("/usr/local/bin/prefsd", with: "/bin/true")
        try (text + "\n").write(
          toFile: "\(sandbox.root)/\(name)", atomically: true, encoding: .utf8)
      }
      let outcome = sandbox.shell(
        """
        cd $C/..; exec 2>&1; export HOME=$PWD/home GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b
        export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; mkdir -p home
        commit() { git -C origin add -A; git -C origin commit -qm x; sh declare; echo "[$?]"; }
        git init -q origin; mkdir origin/managed; echo '{"e": {"T": 0}}' > origin/managed/a.json
        git -C origin add -A; git -C origin commit -qm x; git clone -q origin clone
        sh declare; echo "[$?]"; sh declare; echo "[$?]"
        mkdir origin/any-user; echo '{"e": {"S": 1}}' > origin/any-user/b.json; commit
        defaults read --effective e
        git -C origin rm -q managed/a.json; commit; echo broken > origin/any-user/b.json; commit
        defaults read --effective e
        systemd-analyze verify $PWD/*.service $PWD/*.timer
        """)
      #expect(
        outcome.output == """
          e T: (none) -> 0
          [0]
          [0]
          e S: (none) -> 1
          [0]
          e S: 1 (any-user)
          e T: 0 (managed, forced)
          e T: 0 -> (none)    (back: no longer declared)
          [0]
          prefs: Could not apply any-user/b.json; nothing was changed
          prefs: it is a string, and not a dictionary of domains
          [1]
          e S: 1 (any-user)

          """, "\(outcome)")
    }
  }

  @Test("what dconf and GSettings have is imported as a document, and applied to nothing by itself")
  func otherStores() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; exec 2>&1; mkdir -p keys schemas $C/dconf; echo user-db:user > profile
        printf "[org/gnome/desktop]\\nclock='24h'\\nsizes=[1, 2]\\nzoom=1.5\\nwide=uint64 7\\n" > keys/a
        printf "raw=[byte 0x01, 0x02]\\nmore={'a': <true>}\\n" >> keys/a
        dconf compile $C/dconf/user keys; export DCONF_PROFILE=$PWD/profile
        defaults import-from dconf > dconf.plist; python3 -c "import plistlib
        print(plistlib.load(open('dconf.plist', 'rb')))"
        cat > schemas/org.a.gschema.xml <<'END'
        <schemalist><enum id="org.a.E"><value nick="one" value="1"/><value nick="two" value="2"/></enum>
        <schema id="org.a" path="/org/a/"><key name="wrap" type="b"><default>false</default></key>
        <key name="mode" enum="org.a.E"><default>'two'</default></key></schema></schemalist>
        END
        glib-compile-schemas --strict schemas; export GSETTINGS_SCHEMA_DIR=$PWD/schemas GSETTINGS_BACKEND=keyfile
        gsettings set org.a wrap true; defaults import-from gsettings > gsettings.plist
        python3 -c "import plistlib; print(plistlib.load(open('gsettings.plist', 'rb'))['org.a'])"
        defaults domains; defaults apply --as gnome dconf.plist; defaults read-type org.gnome.desktop zoom
        """)
      #expect(
        outcome.output == """
          {'org.gnome.desktop': {'clock': '24h', 'more': {'a': '<true>'}, 'raw': [1, 2], 'sizes': [1, 2], 'wide': 7, 'zoom': 1.5}}
          {'mode': 'two', 'wrap': True}

          org.gnome.desktop clock: (none) -> 24h
          org.gnome.desktop more: (none) -> { a = "<true>"; }
          org.gnome.desktop raw: (none) -> ( 1, 2 )
          org.gnome.desktop sizes: (none) -> ( 1, 2 )
          org.gnome.desktop wide: (none) -> 7
          org.gnome.desktop zoom: (none) -> "1.5"
          Type is float

          """, "\(outcome)")
    }
  }
}
