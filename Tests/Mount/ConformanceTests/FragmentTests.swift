import Foundation
import Support
import Testing

/// Lists of the machine that nobody writes: drop-in fragments, and the defaults of packages.
@Suite("Fragments and vendors' lists") struct FragmentTests {
  private static let helpers = """
    cd $C/..; exec 2>&1
    give() { mkdir -p "$(dirname "$1")"; printf '<plist><dict>%s</dict></plist>' "$2" > "$1.new"
      mv "$1.new" "$1"; }
    key() { printf '<key>%s</key><integer>%s</integer>' $1 $2; }
    S=$PREFSFS_SYSTEM_DIR V=$C/../share/preferences
    """

  @Test("fragments apply after their list, in byte order, in each place of the machine")
  func fragments() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        give $S/app.plist "$(key A 1)$(key B 1)$(key L 1)"
        give $S/app.d/10-a.plist "$(key A 2)$(key B 2)"
        give $S/app.d/9-b.plist "$(key B 3)"; give $S/app.d/.hidden.plist "$(key A 9)"
        give $S/app.d/note.txt "$(key A 9)"
        give $S/managed/app.d/x.plist "$(key F 1)"; give $S/managed/app.plist "$(key F 2)"
        give $S/managed/$(id -un)/app.d/x.plist "$(key O 1)"
        give $S/.GlobalPreferences.d/x.plist "$(key Everywhere 5)"
        sleep 0.3
        cat $M/app/{A,B,L,F,O,Everywhere}; stat -c %a $M/app/{A,F}; ls $M/app | xargs
        ls $M/.prefs/places/managed-for
        echo 7 > $M/.prefs/places/any-user/app/A; rm $M/.prefs/places/any-user/app/A
        cat $M/.prefs/places/any-user/app/A
        defaults write $S/app A -int 9 | cat; defaults write $S/app L -int 6 && cat $M/app/L
        echo 7 > $M/.prefs/places/any-user/app/L && cat $M/app/L
        echo 7 > $M/app/A && cat $M/app/A
        """)
      #expect(
        outcome.output.replacing(#/.*: line \d+: /#, with: "").replacing(
          #/.*defaults\[[0-9:]+\] .*\n/#, with: "") == """
            2
            3
            1
            1
            1
            5
            600
            400
            A B F L O
            \(NSUserName())
            \(sandbox.mountPoint)/.prefs/places/any-user/app/A: Operation not permitted
            rm: cannot remove '\(sandbox.mountPoint)/.prefs/places/any-user/app/A': Operation not permitted
            2
            defaults: app A: the file \(sandbox.system)/app.d/10-a.plist sets it, and is never written; change or remove it
            6
            7
            7

            """, "\(outcome)")
    }
  }

  @Test("the last persistent row are the lists of packages, the first directory of the path first")
  func vendors() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        give $V/app.plist "$(key A 1)$(key B 1)$(key C 1)"; give $V/app.d/a.plist "$(key B 2)"
        give $C/../local/preferences/app.plist "$(key C 3)"
        give $V/NSGlobalDomain.plist "$(key X 1)"; give $V/.GlobalPreferences.plist "$(key G 8)"
        sleep 0.3
        ls $M/app | xargs; cat $M/app/{A,B,C} $M/d/G; ls $M | grep app
        for key in A G; do getfattr --absolute-names --only-values -n user.prefs.source $M/app/$key; echo; done
        ls $M/.prefs/places/vendor/app | xargs; stat -c %a $M/.prefs/places/vendor/app/A
        echo 4 > $M/.prefs/places/vendor/app/A; touch $M/.prefs/places/vendor/app/New
        mkdir $M/.prefs/places/vendor/new
        echo 4 > $M/app/A && cat $M/app/A && rm $M/app/A && sleep 1.1 && cat $M/app/A
        rm $M/app/A; defaults domains | grep -o app; defaults read --effective app | grep B
        rm -r $V/app.plist; sleep 0.3; ls $M/app | xargs
        """)
      let place = "\(sandbox.mountPoint)/.prefs/places/vendor"
      #expect(
        outcome.output.replacing(#/.*: line \d+: /#, with: "") == """
          A B C
          1
          2
          3
          8
          app
          vendor
          vendor-global
          A B C
          400
          \(place)/app/A: Operation not permitted
          touch: cannot touch '\(place)/app/New': Operation not permitted
          mkdir: cannot create directory ‘\(place)/new’: Operation not permitted
          4
          1
          rm: cannot remove '\(sandbox.mountPoint)/app/A': Operation not permitted
          app
          app B: 2 (vendor)
          B C

          """, "\(outcome)")
    }
  }

  @Test("search and explain name the files")
  func reports() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        give $S/app.plist "$(key A 1)"; give $S/app.d/1.plist "$(key A 2)"
        give $S/app.d/2.plist "$(key A 3)"; give $V/app.plist "$(key A 4)"
        sleep 0.3; cat $M/app/A > /dev/null
        defaults explain app A; grep -E '^(any-user|vendor)' $M/.prefs/search/app
        """)
      let (system, vendor) = (sandbox.system, "\(sandbox.root)/share/preferences")
      #expect(
        outcome.output == """
          * any-user: 3
              \(system)/app.d/2.plist
            any-user: 2
              \(system)/app.d/1.plist
            any-user: 1
              \(system)/app.plist
            vendor: 4
              \(vendor)/app.plist
          any-user: app \(system)/app.d/2.plist
          any-user: app \(system)/app.d/1.plist
          any-user: app \(system)/app.plist
          any-user-global: NSGlobalDomain \(system)/.GlobalPreferences.plist
          vendor: app \(vendor)/app.plist
          vendor-global: NSGlobalDomain \(vendor)/.GlobalPreferences.plist

          """, "\(outcome)")
    }
  }

  @Test("a damaged fragment stops its domain in its place, until it is mended, and no other domain")
  func damaged() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        give $S/managed/app.plist "$(key F 1)"; give $V/app.plist "$(key A 4)"
        sleep 0.3; cat $M/app/F
        mkdir -p $S/managed/app.d; echo '<plist' > $S/managed/app.d/x.plist; sleep 0.3
        cat $M/app/F; cat $M/app/A; cat $M/d/Integer
        jq -r '.failures | keys[]' $M/.prefs/status.json
        rm $S/managed/app.d/x.plist; sleep 0.3; cat $M/app/F
        """)
      #expect(
        outcome.output == """
          1
          cat: \(sandbox.mountPoint)/app/F: Input/output error
          cat: \(sandbox.mountPoint)/app/A: Input/output error
          42
          app (managed)
          1

          """, "\(outcome)")
      #expect(sandbox.backgroundLog.contains("app.d/x.plist: "))
    }
  }

  @Test("a user's directory is no directory of fragments, also where the user is called martin.d")
  func users() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        cp /etc/passwd passwd; echo "test.d:x:54325:54325::/none:/bin/sh" >> passwd
        give $S/managed/test.d/com.example.editor.plist "$(key A 1)"
        give $S/managed/away.d/com.example.editor.plist "$(key A 1)"
        give $S/managed/com.example.editor.d/50-a.plist "$(key A 2)"
        give $S/managed/com.example.editor.d/com.example.vendor.plist "$(key B 3)"
        cat > ask <<'END'
        mount --bind passwd /etc/passwd; prefsfs $M
        defaults write $S/managed/wrote.d/com.example.editor A -int 1
        defaults read --effective; ls $M/.prefs/places/managed-for | xargs; fusermount3 -u $M
        defaults check $S; echo "[$?]"
        mv $S/managed/test.d/com.example.editor.plist $S/managed/test.d/5-a.plist
        defaults check $S | grep -o 'test.d: lists.*'
        sleep 1.2; defaults read --effective
        END
        S=$S unshare -m bash ask
        """)
      #expect(
        outcome.output.replacing(sandbox.system, with: "S") == """
          com.example.editor A: 2 (managed, forced)
          com.example.editor B: 3 (managed, forced)
          away.d test.d wrote.d
          S/managed/away.d: lists of the user away.d, or fragments of the domain away? \
          They count for that user alone; for all, name them as 50-NAME.plist
          S/managed/wrote.d: there is no user wrote.d on this machine
          [1]
          test.d: lists of the user test.d, or fragments of the domain test? \
          They count for that user alone; for all, put the values into test.plist
          com.example.editor A: 2 (managed, forced)
          com.example.editor B: 3 (managed, forced)

          """, "\(outcome)")
    }
  }

  @Test("a name service that does not answer holds up no reading of managed lists")
  func silentNames() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        \(Self.helpers)
        printf '#!/bin/sh\\necho $$ >> %s\\nexec sleep 60\\n' "$PWD/asked" > silent
        chmod 755 silent
        give $S/managed/app.d/50-a.plist "$(key A 2)"; give $S/managed/app.plist "$(key B 3)"
        unshare -m bash -c 'mount --bind silent /usr/bin/getent && defaults read --effective'
        kill $(cat asked)
        """)
      #expect(
        outcome.output == "app A: 2 (managed, forced)\napp B: 3 (managed, forced)\n", "\(outcome)")
    }
  }

  @Test("a fragment that is installed, replaced or removed is announced")
  func announced() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/Integer").output == "42\n")
      sandbox.shell("\(Self.helpers)\ngive $V/d.plist \"$(key New 1)\"")
      sandbox.waitUntil("[ -e $M/d/New ]")
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      sandbox.shell("\(Self.helpers)\ngive $V/d.d/x.plist \"$(key New 2)$(key More 1)\"")
      sandbox.waitUntil("grep -q 'CREATE d/More' $C/../events")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE d/New' $C/../events")
      #expect(sandbox.shell("cat $M/d/New $M/d/More").output == "2\n1\n")
      sandbox.shell("rm -r $C/../share/preferences/d.d")
      sandbox.waitUntil("grep -q 'DELETE d/More' $C/../events")
      #expect(sandbox.shell("cat $M/d/New").output == "1\n")
    }
  }
}
