import Support
import Testing

/// `undo` as a user of the commands and of a mount meets it.
@Suite("Undo") struct UndoTests {
  @Test("undo goes back, an undo of the undo forward; texts come back byte for byte")
  func undo() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/d; printf '{"a":   1}' > $M/d/K; printf '{"a":2}' > $M/d/K; cat $M/d/K; echo
        defaults undo 2; cat $M/d/K; echo; defaults undo 3; cat $M/d/K; echo
        printf '{"a": 2}' > $M/d/K; defaults undo 5; cat $M/d/K; echo
        defaults undo 1 --over; ls $M/d; echo "[$?]"
        """)
      #expect(
        outcome.output == """
          {"a":2}
          d K: { a = 2; } -> { a = 1; }
          {"a":   1}
          d K: { a = 1; } -> { a = 2; }
          {"a":2}
          d K: { a = 2; } -> { a = 2; }
          {"a":2}
          d K: { a = 2; } -> (none)
          [0]

          """, "\(outcome)")
    }
  }

  @Test(
    "a key that was changed since is a conflict: nothing is done, and the later change is named")
  func conflicts() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1
        defaults write d A 1; defaults write d B 1; defaults write d A 2; defaults write d B 2
        defaults write d A 3
        defaults undo --since 3 --until 4; echo "[$?]"; defaults read d B
        defaults undo --since 3 --until 4 --skip; echo "[$?]"; defaults read d B
        defaults undo 3 --dry-run --over; defaults read d A
        defaults undo 3 --over; defaults read d A
        defaults undo 99; echo "[$?]"
        defaults write e A -int 3; defaults write e A 3; defaults undo 8
        """)
      #expect(
        outcome.output == """
          defaults: d A: is 3, not 2: changed again by 5; nothing was changed
          [1]
          2
          defaults: d A: is 3, not 2: changed again by 5; it stays as it is
          d B: 2 -> 1
          [0]
          1
          d A: 3 -> 1
          3
          d A: 3 -> 1
          1
          defaults: there is no such change; `history` shows them
          [1]
          defaults: e A: is 3 (string), not 3 (integer): changed again by 9; nothing was changed

          """, "\(outcome)")
    }
  }

  @Test(
    "a change of somebody else between selected ones is a conflict; of forced keys nothing is undone"
  )
  func between() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1
        defaults write d K 1; echo 2 > $M/d/K; defaults write d K 3
        defaults undo --by defaults; echo "[$?]"
        defaults undo --by defaults --over; echo "[$?]"; defaults read d K; echo "[$?]"
        defaults write d K 4; mkdir -p $PREFSFS_SYSTEM_DIR/managed
        /usr/bin/python3 -c "import plistlib
        plistlib.dump({'K': 'forced'}, open('$PREFSFS_SYSTEM_DIR/managed/d.plist', 'wb'))"
        while [ "$(cat $M/d/K)" != forced ]; do sleep 0.05; done
        defaults undo --since 5 2>&1 | grep -o 'administrator has set it'; defaults read d K
        """)
      #expect(
        outcome.output.hasPrefix(
          """
          defaults: d K: was changed in between by 2; nothing was changed
          [1]
          d K: 3 -> (none)
          [0]
          """), "\(outcome)")
      #expect(outcome.output.hasSuffix("administrator has set it\n4\n"), "\(outcome)")
      // What the administrator has set is a conflict like others, and the rest is undone.
      let rest = sandbox.shell(
        """
        exec 2>&1; defaults write d Other 1; defaults undo --since 4 --skip --by defaults
        defaults read d
        """)
      #expect(
        rest.output == """
          defaults: d K: the administrator has set it (a managed list); it stays as it is
          d Other: 1 -> (none)
          {
              K = 4;
          }

          """, "\(rest)")
    }
  }

  @Test("undo of what has made a domain removes it; one that mkdir has made stays")
  func madeDomain() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        defaults write new A 1; defaults write new B 1; mkdir $M/made; echo 1 > $M/made/K
        defaults synchronize; defaults undo 2; defaults domains; defaults undo --since 1h
        [ -e $M/new ] || echo gone; defaults domains; sleep 1.5; ls $C | grep -c '^new'
        defaults undo 5; defaults read new
        """)
      #expect(
        outcome.output == """
          new B: 1 -> (none)
          made, new
          new A: 1 -> (none)
          made K: 1 -> (none)
          gone
          made
          0
          new A: (none) -> 1
          made K: (none) -> 1
          {
              A = 1;
          }

          """, "\(outcome)")
    }
  }

  @Test("an undo of all changes since a moment leaves those of profiles out")
  func undoBesideProfiles() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; defaults write d K 1; defaults write d P -bool yes; P=$PREFSFS_SYSTEM_DIR/managed
        mkdir -p $P; defaults record --since 2 --as profile | sed s/Set-Once/Forced/ > $C/../p
        defaults delete d P
        cp $C/../p $P/p.mobileconfig; until [ -e $M/d/P ]; do sleep 0.05; done
        rm $P/p.mobileconfig; while [ -e $M/d/P ]; do sleep 0.05; done; defaults write d K 2
        defaults history --via profile | grep -c ' P: '; defaults undo --since 1h; echo "[$?]"
        ls $M/d $P; defaults undo 4; echo "[$?]"; defaults undo 5; echo "[$?]"
        """)
      #expect(
        outcome.output.replacing(sandbox.root, with: "") == """
          2
          defaults: left out: 1 key of profiles or of the machine's lists (--via, --place, or a number names them)
          d K: 2 -> (none)
          [0]
          ls: cannot access '/mount/d': No such file or directory
          /system/managed:
          [0]
          defaults: managed d P: a profile has set it; install or remove that; nothing was changed
          [1]

          """, "\(outcome)")
    }
  }

  @Test("an undone domain is gone as before, and no list is left; one that mkdir has made stays")
  func undoneDomain() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        defaults write born A 1; defaults -currentHost write born B 1; defaults synchronize
        mkdir $M/made; defaults write made A 1; defaults write two A 1; defaults write two B 1
        defaults synchronize
        defaults undo 2; defaults undo 1; defaults undo 3; defaults undo 4; sleep 1.5
        ls $C | grep -v ByHost; ls $C/ByHost; ls -d $M/born; ls $M/made; echo "[$?]"
        defaults undo 6; defaults read born
        """)
      #expect(
        outcome.output == """
          host born B: 1 -> (none)
          born A: 1 -> (none)
          made A: 1 -> (none)
          two A: 1 -> (none)
          made.plist
          two.plist
          [0]
          host born B: (none) -> 1
          {
              B = 1;
          }

          """, "\(outcome)")
    }
  }

  @Test("undo says how many changes of a program's state it leaves out")
  func leftOut() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1; defaults write d Theme a > /dev/null; defaults write d "NSWindow Frame Main" x
        defaults undo d --since 1h; defaults read d
        """)
      #expect(outcome.output.contains("# left out: 1 change of keys"), "\(outcome)")
      #expect(
        outcome.output.contains("NSWindow Frame Main") && !outcome.output.contains("Theme = "))
    }
  }
}
