import Foundation
import Support
import Testing

/// Programs that keep their preferences with GSettings, over the module `prefsfs`.
@Suite("GSettings programs") struct GSettingsTests {
  private static let sources =
    Program.package.path + "/Sources/Capabilities/GSettingsBackend"

  /// Commands that have programs use the module; `$R` is the root of the sandbox.
  static let environment = """
    exec 2>&1; R=$(realpath $C/..); export GSETTINGS_BACKEND=prefsfs GIO_EXTRA_MODULES=$R/module
    export PREFSFS_MOUNT=$M XDG_RUNTIME_DIR=$R/run

    """

  /// Commands that build the module, and have programs use it.
  static let build =
    environment + """
      mkdir $R/module
      clang -shared -fPIC -std=gnu11 -Wall -Wextra -Werror \(sources)/*.c \
        -o $R/module/libprefsfs-gsettings.so $(pkg-config --cflags --libs gio-2.0)

      """

  /// Commands that build the module, and a schema with a key of each kind of type.
  private static let prepare =
    build + """
      mkdir $R/gschemas; cat > $R/gschemas/t.gschema.xml <<'END'
      <schemalist><schema id="org.t.a" path="/org/t/a/">
      <key name="width" type="i"><default>4</default></key>
      <key name="name" type="s"><default>'x'</default></key>
      <key name="on" type="b"><default>false</default></key>
      <key name="size" type="d"><default>1.5</default></key>
      <key name="list" type="as"><default>[]</default></key>
      <key name="pair" type="(si)"><default>('a', 1)</default></key>
      <key name="dict" type="a{sv}"><default>{}</default></key>
      <key name="maybe" type="mi"><default>nothing</default></key>
      </schema><schema id="org.t.p"><key name="k" type="s"><default>''</default></key></schema>
      </schemalist>
      END
      glib-compile-schemas $R/gschemas; export GSETTINGS_SCHEMA_DIR=$R/gschemas
      get() { gsettings get org.t.a $1; }; set_() { gsettings set org.t.a "$1" "$2"; }

      """

  @Test("values that programs set are files with their types, and files are programs' values")
  func values() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        Self.prepare + """
          show() { tr -d '\\n ' < $M/org.t.a/$1; getfattr --only-values --absolute-names -n user.prefs.type $M/org.t.a/$1 | sed 's/^/ /'; echo; }
          get width; set_ width 8; show width; get width; set_ name 14; show name; get name
          set_ list "['a', 'b\\"']"; show list; get list; set_ pair "('q', 7)"; show pair; get pair
          set_ dict "{'k': <5>}"; show dict; get dict; set_ maybe 3; show maybe; get maybe
          set_ size 2; show size; echo yes > $M/org.t.a/on; get on; echo 2 > $M/org.t.a/size; get size
          echo '["c"]' > $M/org.t.a/list; get list; echo wide > $M/org.t.a/name; get name
          gsettings set org.t.p:/org/x/profiles:/a.b/ k v; cat "$M/org.x.profiles:.a%252Eb/k"
          gsettings get org.t.p:/org/x/profiles:/a.b/ k; gsettings reset org.t.a width; get width
          ls $M/org.t.a/width 2>&1 | grep -c 'No such'; defaults history org.t.a name | tail -n 1 | cut -c5-
          """)
      #expect(
        outcome.output == """
          4
          8 integer
          8
          14 string
          '14'
          ["a","b\\""] array
          ['a', 'b"']
          ["q",7] array
          ('q', 7)
          {"k":"<5>"} dictionary
          {'k': <5>}
          @mi3 string
          @mi 3
          2.0 real
          true
          2.0
          ['c']
          'wide'
          v
          'v'
          4
          1
          mount, /usr/bin/bash

          """, "\(outcome)")
    }
  }

  @Test(
    "each way of change is told once, also of a domain that comes later; forced is not writable")
  func changes() throws {
    try withSandbox { sandbox in
      sandbox.shell("mkdir -p $PREFSFS_SYSTEM_DIR/managed")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      let outcome = sandbox.shell(
        Self.prepare + """
          stdbuf -oL gsettings monitor org.t.a > $R/told & monitor=$!
          told() { for try in {1..60}; do [ "$(tail -n 1 $R/told)" = "$1" ] && return; sleep 0.05; done; echo "not told: $1"; }
          sleep 0.5; mkdir $M/org.t.a; echo 9 > $M/org.t.a/width; told 'width: 9'
          defaults write org.t.a width -int 10; told 'width: 10'; echo 10 > $M/org.t.a/width
          set_ name new; told "name: 'new'"; rm $M/org.t.a/width; told 'width: 4'
          echo '{"org.t.a": {"width": 5}}' > $M/.prefs/apply; told 'width: 5'
          rm -r $M/org.t.a; told 'width: 4'; mkdir $M/org.t.a; echo 6 > $M/org.t.a/width; told 'width: 6'
          defaults write $PREFSFS_SYSTEM_DIR/managed/org.t.a width -int 77; told 'width: 77'
          get width; gsettings writable org.t.a width; set_ width 5; gsettings writable org.t.a name
          kill -KILL $monitor; wait $monitor 2>/dev/null; sort $R/told | uniq -c | sed 's/^ *//'
          """)
      #expect(
        outcome.output == """
          77
          false
          The key is not writable
          true
          1 name: 'new'
          1 name: 'x'
          1 width: 10
          2 width: 4
          1 width: 5
          1 width: 6
          1 width: 77
          1 width: 9

          """, "\(outcome)")
    }
  }

  @Test("gsettings on writes a file for sessions, off removes it, and somebody else's file stays")
  func switched() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        Self.prepare + """
          file() { cat $C/environment.d/60-prefsfs-gsettings.conf | grep -v '^#'; }
          GIO_EXTRA_MODULES= GIO_MODULE_DIR=$R/no defaults gsettings on |& grep -c "modules ($R/no)"; ls $C/environment.d | wc -l
          defaults gsettings on |& grep -oE 'sessions need [A-Z_]*|~/.profile'; file
          PREFSFS_MOUNT=$R/no defaults gsettings on |& grep -c 'no preferences are mounted at'; file
          set_ width 8; defaults write com.example.other K 1; defaults gsettings off | tail -n 1; file
          defaults gsettings off | cut -c 1-9; echo A=b > $C/environment.d/60-prefsfs-gsettings.conf
          for word in on off; do defaults gsettings $word |& grep -c 'nothing was changed'; done; file
          """)
      #expect(
        outcome.output.replacing("\(sandbox.config)/", with: "") == """
          1
          ls: cannot access 'environment.d': No such file or directory
          0
          ~/.profile
          sessions need GIO_EXTRA_MODULES
          sessions need PREFSFS_MOUNT
          GSETTINGS_BACKEND=prefsfs
          1
          GSETTINGS_BACKEND=prefsfs
            org.t.a
          cat: environment.d/60-prefsfs-gsettings.conf: No such file or directory
          It is off
          1
          1
          A=b

          """, "\(outcome)")
    }
  }

  @Test("what dconf has comes to a mount and goes back, with every type")
  func dconf() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        Self.prepare + #"""
          mkdir -p $C/dconf $R/keys $R/again; echo user-db:user > $R/profile; export DCONF_PROFILE=$R/profile
          cat > $R/keys/a <<'END'
          [org/t/a]
          width=8
          name='14'
          on=true
          size=2.0
          list=['a', 'b"\n']
          pair=('q', 7)
          dict={'k': <uint32 5>, 'l': <[byte 0x01, 0xff]>}
          maybe=@mi 3
          [org/t/a/below:/:a.b]
          k='v'
          END
          dconf compile $C/dconf/user $R/keys; dconf dump / > $R/before
          defaults import-from dconf | defaults apply - | wc -l; defaults write com.example.other K 1
          get dict; get maybe; get pair; get size; gsettings get "org.t.p:/org/t/a/below:/:a.b/" k
          defaults export --as dconf > $R/again/a; dconf compile $C/dconf/user $R/again
          dconf dump / | diff $R/before -
          defaults export --as dconf org.t.a | grep -c .; echo '{"org.t.a": {"width": "wide"}}' > $M/.prefs/apply
          defaults export --as dconf org.t.a | grep width
          """#)
      #expect(
        outcome.output == """
          9
          {'k': <uint32 5>, 'l': <[byte 0x01, 0xff]>}
          @mi 3
          ('q', 7)
          2.0
          'v'
          9
          # left out: org.t.a width: dconf has no form for it, or it does not fit its schema

          """, "\(outcome)")
    }
  }
}
