import Glibc
import Support
import Testing

/// The programs under systemd, as the units of the package start them.
@Suite("Services") struct ServiceTests {
  @Test("prefsd is started by the first program that needs preferences, through its socket")
  func socketActivation() throws {
    try withSandbox { sandbox in
      let script = """
        mkdir -p $XDG_RUNTIME_DIR/prefsfs; chmod 700 $XDG_RUNTIME_DIR $XDG_RUNTIME_DIR/prefsfs
        systemd-socket-activate -E HOME -E XDG_CONFIG_HOME -E XDG_STATE_HOME -E XDG_RUNTIME_DIR \\
          -E PREFSFS_SYSTEM_DIR -l $XDG_RUNTIME_DIR/prefsfs/prefsd $PREFSD -f 2> $C/../notes & P=$!
        until [ -S $XDG_RUNTIME_DIR/prefsfs/prefsd ]; do sleep 0.05; done
        cat /proc/$P/comm; defaults write d Key -int 4; defaults read d Key; cat /proc/$P/comm
        kill $P; wait $P
        """
      let outcome = sandbox.shell(script)
      #expect(outcome.output == "systemd-socket-\n4\nprefsd\n", "\(outcome)")
    }
  }

  @Test("the units of the package are what systemd expects, and restart a mount that ended")
  func units() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C; for unit in prefsfs.user.service prefsfs.prefsfs-deadlines.service prefsd.service \\
          prefsd.socket; do
          sed "s,/usr/bin/prefs,$(dirname $PREFSFS)/prefs,; s,/usr/lib/prefsfs,$S," $S/$unit \\
            > $(echo $unit | sed 's/.user//; s/^prefsfs.prefsfs-/prefsfs-/')
        done
        systemd-analyze verify --man=no $C/prefsfs.service $C/prefsd.socket \\
          $C/prefsfs-deadlines.service 2>&1
        grep -c '^Restart=on-failure' prefsfs.service
        """.replacingOccurrences(of: "$S", with: Program.script("debian")))
      #expect(outcome.output == "1\n", "\(outcome)")
    }
  }

  @Test("the unit of the machine starts an owner for declarations, which meets missed deadlines")
  func deadlines() throws {
    try withSandbox { sandbox in
      let unit = Program.script("debian/prefsfs.prefsfs-deadlines.service")
      let ledger = "L=$PREFSFS_SYSTEM_DIR/managed/prefsfs.declared.plist; V=${L/prefsfs.declared/d}"
      let before = sandbox.shell(
        """
        \(ledger); cd $C/..; echo '{"d": {"K": 1}}' > d.json
        prefs apply --as s --place managed --lease 2 d.json
        sed -n "s,/etc/preferences,$PREFSFS_SYSTEM_DIR,; s/^ConditionPathExists=|//p" \(unit) | grep -cFx $L
        """)
      // With everything saved, and before the deadline.
      sandbox.killOwner(with: SIGTERM)
      let after = sandbox.shell(
        """
        \(ledger); ls $L $V | wc -l; sleep 2
        $PREFSD $(sed -n 's,^ExecStart=/usr/bin/prefsd,,p' \(unit)) 2> $C/../log & P=$!
        until [ ! -e $L ] && [ ! -e $V ]; do sleep 0.05; done
        kill $P; wait $P; grep -c 'the declaration s has ended at its deadline' $C/../log
        """)
      #expect(before.output == "d K: (none) -> 1\n1\n", "\(before)")
      #expect(after.output == "2\n1\n", "\(after)")
    }
  }

  @Test("a service that finds an owner there ends as one that was ready")
  func owned() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..
        python3 -c "import socket as s; n = s.socket(s.AF_UNIX, s.SOCK_DGRAM); n.bind('notify')
        n.settimeout(20); print(n.recv(99).decode())" > said 2>&1 & P=$!
        until [ -S notify ]; do sleep 0.05; done
        defaults write d K 1; NOTIFY_SOCKET=$PWD/notify timeout 20 $PREFSD -f; echo "[$?]"
        wait $P; cat said
        """)
      #expect(outcome.output == "[0]\nREADY=1\n", "\(outcome)")
    }
  }

  @Test("a service of the system, which has no HOME, forces a value and reads")
  func withoutHome() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; S=$PREFSFS_SYSTEM_DIR; unset HOME; umask 027
        defaults write $S/managed/d Key -int 7; echo $?
        for i in $(seq 40); do cat $M/d/Key 2>/dev/null && break; sleep 0.1; done; defaults read $S/managed/d Key
        defaults write /Library/Preferences/d Other 8; defaults read $S/d Other
        defaults read -app None; defaults write d More 9; cat $M/d/More
        """)
      #expect(
        outcome.output.replacing(#/.*defaults\[[0-9:]+\] /#, with: "") == """
          0
          7
          7
          8
          Couldn't find an application named "None"; defaults unchanged
          9

          """, "\(outcome)")
    }
  }

  /// What is at ~/Preferences when a user logs in, and what the link script leaves there.
  static let homes = [
    (":", 0, "symbolic link", "nothing"),
    ("mkdir Preferences", 0, "symbolic link", "an empty directory"),
    ("ln -s $XDG_RUNTIME_DIR/preferences Preferences", 0, "symbolic link", "the link"),
    ("mkdir Preferences; echo > Preferences/file", 1, "directory", "files of the user"),
    ("echo text > Preferences", 1, "regular file", "a file"),
    ("ln -s /nowhere Preferences", 1, "symbolic link", "a link to elsewhere"),
  ]

  @Test("~/Preferences links to the mount, where nothing else is", arguments: homes)
  func link(_ prepare: String, _ status: Int, _ kind: String, _ name: String) throws {
    try withSandbox { sandbox in
      let script = Program.script("debian/link-preferences")
      let before = sandbox.shell("cd; \(prepare); ls -lR --time-style=+ | tail -n +2").output
      let outcome = sandbox.shell("\(script) $XDG_RUNTIME_DIR/preferences ~/Preferences")
      let after = sandbox.shell("cd; stat -c %F Preferences; ls -lR --time-style=+ | tail -n +2")
      #expect(outcome.status == Int32(status), "\(name): \(outcome)")
      #expect(after.output.hasPrefix("\(kind)\n"), "\(name): \(after)")
      if status == 0 {
        let target = sandbox.shell("readlink ~/Preferences; echo $XDG_RUNTIME_DIR/preferences")
        #expect(Set(target.output.split(separator: "\n")).count == 1, "\(name): \(target)")
      } else {
        #expect(after.output == "\(kind)\n\(before)", "\(name)")
        #expect(outcome.errors.contains("stays as it is"), "\(name): \(outcome)")
      }
    }
  }
}
