import Foundation
import Support
import Testing

/// The history as a user of the commands and of a mount meets it.
@Suite("History") struct HistoryTests {
  /// `defaults history`, without times, paths of programs and units.
  private static let show = """
    show() { defaults history "$@" | sed -E \
      -e 's/ [0-9]{4}-[0-9-]+T[0-9:]+Z / /' -e 's|^    ([a-z]+), .*/|    \\1, |' -e 's/, [^,]*scope$//' \
      -e 's/, [^,]*service$//' -e 's/, [^,/]*slice$//'; }
    """

  @Test("each way is named, with its program: a shell, defaults, the library, another program")
  func ways() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.show)
        defaults write d K -int 1; /bin/sh -c "echo 2 > $M/d/K"; $PROBE set d K 3
        defaults synchronize d
        /usr/bin/python3 -c "import plistlib; p = '$C/d.plist'
        v = plistlib.load(open(p, 'rb')); v['K'] = 4; plistlib.dump(v, open(p, 'wb'))"
        while [ "$(defaults read d K)" != 4 ]; do sleep 0.05; done
        show d K
        """)
      #expect(
        outcome.output == """
          1 user d K: (none) -> 1
              command, defaults
          2 user d K: 1 -> 2
              mount, dash
          3 user d K: 2 -> 3
              library, prefs-probe
          4 user d K: 3 -> 4
              list (another program)

          """, "\(outcome)")
    }
  }

  @Test("filters: time, number, program, way, domain and key; JSON is a line for each change")
  func filters() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.show)
        defaults write a K 1; defaults write b K 2; mkdir $M/c; echo 3 > $M/c/K
        defaults write a 'NSWindow Frame main' x
        count() { defaults history "$@" | grep -c '^[0-9]'; }
        count; count --all; count a; count a K; count --since 2; count --until 2; count --via mount
        count --by defaults; count --since -1h; count --since now; count --until yesterday
        defaults history c --json | /usr/bin/python3 -c "import json, sys
        for line in sys.stdin: r = json.loads(line); print(r['number'], r['via'], r['changes'][0]['after'])"
        defaults history --since nonsense; echo $?
        count --since -2000000d; defaults read --at 2020-01-01 a K; echo $?
        """)
      #expect(
        outcome.output == "3\n4\n1\n1\n2\n2\n1\n2\n3\n0\n0\n3 mount 3\n1\n3\n1\n", "\(outcome)")
    }
  }

  @Test("forget removes values from all files, and says how many records had one")
  func forget() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        defaults write d A hunter1; defaults write d A hunter2; defaults write d B kept
        defaults write e A other; defaults history d > /dev/null
        find $XDG_STATE_HOME -path '*/history/*' -exec grep -l hunter {} + | wc -l
        defaults history forget d A; defaults history forget d A
        find $XDG_STATE_HOME -path '*/history/*' -exec grep -l hunter {} + | wc -l
        defaults write d A new; defaults history --all | grep '^[0-9]' | cut -d ' ' -f 1,4-
        """)
      #expect(
        outcome.output == """
          1
          2 records had values, which are removed
          0 records had values, which are removed
          0
          1 d A: (none) -> (not kept)
          2 d A: changed (not kept)
          3 d B: (none) -> kept
          4 e A: (none) -> other
          5 d A: hunter2 -> new

          """, "\(outcome)")
    }
  }

  @Test("the past is read by number and time, and compared; keys that were not there are not")
  func past() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2>&1
        defaults write d A 1; defaults write d B -int 5; sleep 1.1; then=$(date -u +%FT%TZ); sleep 1.1
        defaults write d A 2; defaults delete d B; defaults write d C new
        defaults read --at 1 d; defaults read --at $then d; defaults read --at now d
        defaults read --at 3 d A; defaults read --at 2 d C; echo "[$?]"
        defaults diff $then now; defaults diff 1 3 d A; defaults diff now 2 d
        defaults diff 1 $(date -u +%FT%TZ) d A; defaults diff 2020-01-01 now; echo "[$?]"
        """)
      let text = outcome.output.replacing(#/.* defaults\[[0-9:]+\] /#, with: "")
      #expect(
        text == """
          {
              A = 1;
          }
          {
              A = 1;
              B = 5;
          }
          {
              A = 2;
              C = new;
          }
          2

          The domain/default pair of (d, C) does not exist
          [1]
          user d A: 1 -> 2
          user d B: 5 -> (none)
          user d C: (none) -> new
          user d A: 1 -> 2
          user d A: 2 -> 1
          user d B: (none) -> 5
          user d C: new -> (none)
          user d A: 1 -> 2
          Could not read the history
          defaults: the history does not have the moment 2020-01-01T00:00:00Z
          [1]

          """, "\(outcome)")
    }
  }

  /// Python that makes 200 random changes of values of all types, by `defaults`.
  private static let random = """
    import random, subprocess, plistlib, datetime, sys
    rng = random.Random(int(sys.argv[1]))
    def value(depth=0):
        kind = rng.randrange(9 if depth < 2 else 7)
        if kind == 0: return rng.randrange(-2**63, 2**63)
        if kind == 1: return rng.uniform(-1e9, 1e9)
        if kind == 2: return rng.random() < .5
        if kind == 3: return bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
        if kind == 4: return datetime.datetime(2026, 11, rng.randrange(1, 28), rng.randrange(24))
        if kind < 7: return ''.join(rng.choice("ab '\\"\\\\é<&$\\n-") for _ in range(rng.randrange(12)))
        if kind == 7: return [value(depth + 1) for _ in range(rng.randrange(4))]
        return {"k%d" % i: value(depth + 1) for i in range(rng.randrange(4))}
    for _ in range(200):
        domain, key = rng.choice(["one", "two.b"]), rng.choice(["A", "b c", "d'e", "F"])
        if rng.random() < .2:
            subprocess.run(["defaults", "delete", domain, key], stderr=subprocess.DEVNULL)
        else:
            xml = plistlib.dumps(value()).decode()
            subprocess.run(["defaults", "write", domain, key, xml], check=True)
    """

  @Test(
    "what record prints makes the same values in an empty store",
    arguments: ["commands", "apply", "ansible", "profile"])
  func record(_ form: String) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cat > $C/../random.py <<'END'
        \(Self.random)
        END
        defaults record --as \(form) -- python3 $C/../random.py \(Int.random(in: 0..<1 << 30)) > $C/../made
        mkdir $C/../other; for d in one two.b; do defaults export $d $C/../$d.old; done
        export XDG_CONFIG_HOME=$C/../other XDG_STATE_HOME=$C/../other-state
        case \(form) in
          commands) sh $C/../made;;
          apply) defaults apply $C/../made > /dev/null;;
          ansible) \(Self.play);;
          profile) mkdir -p $PREFSFS_SYSTEM_DIR/managed; cp $C/../made $PREFSFS_SYSTEM_DIR/managed/r.mobileconfig
            for i in $(seq 100); do
              for d in one two.b; do defaults export $d $C/../$d.new; done
              cmp -s $C/../one.old $C/../one.new && cmp -s $C/../two.b.old $C/../two.b.new && break
              sleep 0.05
            done;;
        esac
        for d in one two.b; do
          defaults export $d $C/../$d.new; cmp $C/../$d.old $C/../$d.new || cat $C/../made
        done
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
    }
  }

  /// Runs the tasks twice: the second time nothing may be changed.
  private static let play = """
    printf '%s\\n' '- hosts: localhost' '  connection: local' '  gather_facts: false' '  tasks:' \
            '    - import_tasks: made.yml' > $C/../play.yml; mv $C/../made $C/../made.yml
          for i in 1 2; do
            ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_NOCOLOR=1 ansible-playbook -i localhost, \
              $C/../play.yml > $C/../log 2>&1 < /dev/null || cat $C/../log
          done; grep -q 'changed=0' $C/../log || cat $C/../log
    """

  @Test("who changed a managed key is in root's history and in the system's log, without secrets")
  func machine() throws {
    try withMount(["--system"]) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        \(Self.show)
        mkdir -p $M/managed/d $M/managed-for/bob/d; echo 4 > $M/managed/d/K; echo x > $M/managed/d/MyToken
        defaults write $PREFSFS_SYSTEM_DIR/managed/d K -int 5; echo 1 > $M/managed-for/bob/d/K
        defaults write d Own mine
        echo '<plist version="1.0"><dict><key>PayloadType</key><string>Configuration</string>
          <key>PayloadVersion</key><integer>1</integer><key>PayloadIdentifier</key><string>a</string>
          <key>PayloadUUID</key><string>b</string><key>PayloadContent</key><array><dict>
          <key>PayloadType</key><string>com.apple.ManagedClient.preferences</string>
          <key>PayloadContent</key><dict><key>d</key><dict><key>Forced</key><array><dict>
          <key>mcx_preference_settings</key><dict><key>P</key><true/></dict>
          </dict></array></dict></dict></dict></array></dict></plist>' > $C/../p
        cp $C/../p $PREFSFS_SYSTEM_DIR/managed/p.mobileconfig
        while [ "$(defaults read d P 2> /dev/null || cat $M/managed/d/P)" != true ]; do sleep 0.05; done
        defaults write $PREFSFS_SYSTEM_DIR/managed/eve/d K -int 7; defaults read $PREFSFS_SYSTEM_DIR/managed/eve/d K
        show --place managed; show --place managed-for/bob; show --place managed-for/eve; defaults history --place nonsense 2> /dev/null; echo $?
        """)
      #expect(
        outcome.output == """
          7
          1 managed d K: (none) -> 4
              mount, bash
          2 managed d MyToken: (none) -> (not kept)
              mount, bash
          3 managed d K: 4 -> 5
              command, defaults
          6 managed d P: (none) -> 1
              profile
          4 managed-for:bob d K: (none) -> 1
              mount, bash
          7 managed-for:eve d K: (none) -> 7
              command, defaults
          1

          """, "\(outcome)")
      let log = sandbox.backgroundLog
      #expect(log.contains("managed d K: 4 -> 5 (command, "), "\(log)")
      #expect(log.contains("managed d MyToken: (none) -> (not kept) (mount, "), "\(log)")
      #expect(log.contains("managed-for:bob d K: (none) -> 1 (mount, "), "\(log)")
      #expect(log.contains("managed-for:eve d K: (none) -> 7 (command, "), "\(log)")
      #expect(log.contains("managed d P: (none) -> 1 (profile, user 0)"), "\(log)")
      #expect(!log.contains("mine"), "\(log)")
    }
  }

  @Test("where a managed list takes over a profile's key, the past and an undo have the profile's")
  func overProfile() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        S=$PREFSFS_SYSTEM_DIR/managed; mkdir -p $S; defaults write d K mine
        echo '<plist version="1.0"><dict><key>PayloadType</key><string>Configuration</string>
          <key>PayloadVersion</key><integer>1</integer><key>PayloadIdentifier</key><string>a</string>
          <key>PayloadUUID</key><string>b</string><key>PayloadContent</key><array><dict>
          <key>PayloadType</key><string>d</string><key>K</key><integer>20</integer>
          </dict></array></dict></plist>' > $C/../p
        cp $C/../p $S/p.mobileconfig; while [ "$(cat $M/d/K)" != 20 ]; do sleep 0.05; done
        last() { defaults history --all d K | grep -o '^[0-9]*' | tail -1; }; given=$(last)
        defaults write $S/d K -int 30; set=$(last); cat $M/d/K $M/.prefs/at/$given/d/K $M/.prefs/at/$set/d/K
        defaults undo --place managed $set > /dev/null; echo "[$?]"; cat $M/d/K; rm $S/p.mobileconfig
        for i in $(seq 60); do [ "$(cat $M/d/K)" = mine ] && break; sleep 0.05; done
        cat $M/d/K $M/.prefs/at/$given/d/K $M/.prefs/at/$set/d/K
        defaults history --all d K | grep managed | cut -d ' ' -f 3-
        """)
      #expect(
        outcome.output == """
          30
          20
          30
          [0]
          20
          mine
          20
          30
          managed d K: (none) -> 20
          managed d K: 20 -> 30
          managed d K: 30 -> 20
          managed d K: 20 -> (none)

          """, "\(outcome)")
    }
  }

  @Test(
    "a record of keys that this host and the user have makes both anew",
    arguments: ["commands", "ansible"])
  func recordOfHost(form: String) throws {
    try withSandbox { sandbox in
      let replay = form == "commands" ? "sh $C/../made" : Self.play
      let outcome = sandbox.shell(
        """
        defaults write d A user; defaults -currentHost write d A -int 2; defaults write d B 1
        defaults -currentHost write d C old; defaults -currentHost delete d C; defaults write d C 3
        show() { defaults explain d A | grep -c 'host: 2'; defaults -currentHost read d; defaults -currentHost delete d A
          defaults read d; }
        defaults record --since 1 --as \(form) > $C/../made; show > $C/../before
        export XDG_CONFIG_HOME=$C/../new; mkdir $C/../new; \(replay); show > $C/../after
        cmp $C/../before $C/../after && cat $C/../after
        """)
      let shown = """
        1
        {
            A = 2;
        }
        {
            A = user;
            B = 1;
            C = 3;
        }

        """
      #expect(outcome.output.hasSuffix(shown), "\(outcome)")
    }
  }

  @Test("kill -9 of everything right after echo: both values are in the history")
  func killed() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("mkdir $M/d; echo 4 > $M/d/K; echo 8 > $M/d/K")
      mount.crash()
      let lines = sandbox.shell("defaults read d K; defaults history d K").output
      #expect(
        lines.hasPrefix("8\n") && lines.contains("K: ") && lines.contains(" -> 8"), "\(lines)")
      #expect(lines.contains("-> 4\n") || lines.contains("4 -> 8"), "\(lines)")
    }
  }

  @Test("a hundred sets a second, and large values, leave little and the others' records")
  func flood() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/d; defaults write d Other before
        head -c 10000000 /dev/zero | tr '\\0' x > $C/../large
        for i in $(seq 300); do echo $i > $M/d/K; [ $((i % 100)) = 0 ] && cp $C/../large $M/d/Large; done
        defaults write d Other after; defaults history d Other | grep -c '^[0-9]'
        du -sk $HOME/.local/state/prefsfs/*/history $C/../state/prefsfs/*/history 2> /dev/null | cut -f 1
        """)
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.first == "2", "\(outcome)")
      #expect(lines.count > 1 && Int(lines[1]).map { $0 < 1024 } == true, "\(outcome)")
    }
  }

  @Test("in the mount: the changes of a key as a report, and the tree as it was")
  func tree() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $M; mkdir d; echo 4 > d/K; printf '{"a":  1}' > d/T; echo 8 > d/K; rm d/T
        echo global > NSGlobalDomain/G; P=.prefs; ls $P/history; ls $P/history/d
        cmp $P/history/d/K <(defaults history --all d K) && echo same; cat $P/history/d/None; date=$(date -u +%F)
        cat $P/at/1/d/K $P/at/3/d/T; echo; cat $P/at/5/d/G; ls $P/at/2/d; ls $P/at/0; ls $P/at
        for name in 99 yesterday nonsense 2030-01-01 18446744073709551615; do ls $P/at/$name; done
        echo 5 > $P/at/1/d/K; rm $P/at/1/d/K; mkdir $P/at/1/e; chmod 600 $P/at/1/d/K
        getfattr --only-values -n user.prefs.type $P/at/3/d/T; echo
        cp $P/at/1/d/K d/; cat d/K $P/at/now/d/K; echo 9 > d/K; cat $P/at/now/d/K $P/at/1/d/K
        cat $P/history/d/K | grep -c '^[0-9]'
        """)
      #expect(
        outcome.output.replacing(#/\d{4}-\d\d-\d\d\n/#, with: "DAY\n") == """
          NSGlobalDomain
          d
          K
          T
          same
          cat: .prefs/history/d/None: No such file or directory
          4
          {"a":  1}
          global
          K
          T
          NSGlobalDomain
          DAY
          ls: cannot access '.prefs/at/99': No such file or directory
          ls: cannot access '.prefs/at/yesterday': No such file or directory
          ls: cannot access '.prefs/at/nonsense': No such file or directory
          ls: cannot access '.prefs/at/2030-01-01': No such file or directory
          ls: cannot access '.prefs/at/18446744073709551615': No such file or directory
          /bin/bash: line 6: .prefs/at/1/d/K: Read-only file system
          rm: cannot remove '.prefs/at/1/d/K': Read-only file system
          mkdir: cannot create directory ‘.prefs/at/1/e’: Read-only file system
          chmod: changing permissions of '.prefs/at/1/d/K': Read-only file system
          dictionary
          4
          4
          9
          4
          4

          """, "\(outcome)")
    }
  }

  @Test("the values of a list that is new while prefsd runs are changes, read or not")
  func newLists() throws {
    try withSandbox { sandbox in
      sandbox.shell("echo '{\"Size\": 1}' > $C/seen.plist")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      sandbox.shell("mkdir $M/a; echo 1 > $M/a/x; sleep 1.5; defaults history > /dev/null")
      let outcome = sandbox.shell(
        """
        \(Self.show)
        echo '{"Color": "red"}' > $C/app.plist; echo '{"Color": "blue"}' > $C/other.plist
        while ! ls $M | grep -q other; do sleep 0.05; done; cat $M/app/Color
        sleep 0.3; show | grep Color | cut -d' ' -f2- | sort; cat $M/.prefs/at/1/app/Color
        """)
      #expect(
        outcome.output == """
          red
          user app Color: (none) -> red
          user other Color: (none) -> blue

          """, "\(outcome)")
      #expect(outcome.errors.contains("No such file or directory"), "\(outcome)")
    }
  }

  @Test("a change is named by its number, or by filters; a filter that says nothing is refused")
  func mixedFilters() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        defaults write d K 1; for f in "--by nobody" "--via mount" "--since now" "--until now"; do
        defaults undo 1 $f; echo $?; done; defaults undo --by ""; echo $?
        defaults undo 1 --place user; defaults read d K; mv -T $M/.prefs/history/d $M/.prefs/at
        timeout -s KILL 9 mv $M/.prefs/history/d/K $M/.prefs/at/x
        """)
      #expect(outcome.output == "1\n1\n1\n1\n1\nd K: 1 -> (none)\n", "\(outcome)")
      #expect(outcome.errors.split(separator: "\n").filter { $0.hasPrefix("mv:") }.count == 2)
    }
  }

  @Test("the past of a domain, and of a key, whose names are shortened")
  func shortenedNames() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        N=$(printf '%%%.0s' {1..120}); defaults write "$N" "$N" -int 1; defaults write "$N" K -int 2
        D=$(cd $M; ls | grep %25); for n in 1 2; do
        ls $M/.prefs/at/$n/$D | wc -l; cat $M/.prefs/at/$n/$D/$D; done
        cat $M/.prefs/at/2/${D%?}0/K; cat $M/.prefs/at/2/$D/${D%?}0
        """)
      #expect(outcome.output == "1\n1\n2\n1\n", "\(outcome)")
      let missing = outcome.errors.split(separator: "\n")
      #expect(
        missing.count == 2 && missing.allSatisfy { $0.hasSuffix("No such file or directory") })
    }
  }

  @Test("the past keeps its state, and its files survive the driver")
  func pastStays() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M; mkdir d; echo 1 > d/A; echo 2 > d/B; echo x > d/MyToken; cd .prefs/at/3
        exec 5< d/A; ls d; rm -r $M/d; ls d; kill -9 $(ps -o pid= --ppid \(mount.guardian))
        cat d/A d/B <&5; cat /dev/fd/5; ls; cat d/MyToken; echo $?; cd $M; find . | wc -l
        grep -r . . > /dev/null; echo $?; defaults write prefsfs History -dict Off -bool true
        ls .prefs/history .prefs/at; ls .prefs
        """)
      #expect(
        outcome.output == """
          A
          B
          MyToken
          A
          B
          MyToken
          1
          2
          1
          NSGlobalDomain
          d
          1
          2
          1
          apply
          at
          declared
          describe
          domains
          effective
          effects
          explain
          history
          places
          schemas
          search
          status.json
          suites

          """, "\(outcome)")
      #expect(outcome.errors.contains("d/MyToken: No data available"), "\(outcome)")
      #expect(outcome.errors.contains("'.prefs/at': No such file"), "\(outcome)")
    }
  }

  @Test("forgotten values are not shown to who stands in the past, or has a file of it open")
  func forgottenInside() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M; mkdir d; echo hunter > d/K; echo new > d/K; cd .prefs/at/1/d; exec 3< K; cat K
        defaults history forget d K > /dev/null; sleep 0.3; cat K <&3; cat K; ls; cd ../..; ls 1/d
        defaults write prefsfs History -dict Off -bool true; sleep 0.3; ls 1; cat ../history/d/K
        """)
      #expect(outcome.output == "hunter\nK\nK\n", "\(outcome)")
      #expect(outcome.errors.contains("K: No data available"), "\(outcome)")
    }
  }

  @Test("forgotten values are not shown in a mount, and only its user looks at the past")
  func privacy() throws {
    try withMount(["-o", "umask=022"]) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs; mkdir ../d; echo hunter > ../d/K; echo new > ../d/K; cat history/d/K at/1/d/K | grep -c hunter
        defaults history forget d K > /dev/null; cat history/d/K | grep -c hunter; cat at/1/d/K; echo $?
        stat -c '%a %n' ../d history history/d history/d/K at at/2 at/2/d at/2/d/K
        """)
      #expect(
        outcome.output == """
          3
          0
          1
          755 ../d
          500 history
          500 history/d
          400 history/d/K
          500 at
          700 at/2
          700 at/2/d
          600 at/2/d/K

          """, "\(outcome)")
    }
  }

  @Test("rsync of a moment over the domain gives the values of then, of all types")
  func restored() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1
        cat > $C/../random.py <<'END'
        \(Self.random)
        END
        seed() { python3 $C/../random.py $1; }; seed \(Int.random(in: 0..<1 << 30))
        defaults export one $C/../one.old; N=$(defaults history --all --json | tail -1 | sed 's/.*"number": *\\([0-9]*\\).*/\\1/')
        seed \(Int.random(in: 0..<1 << 30)); sleep 1
        rsync -aX --delete $M/.prefs/at/$N/one/ $M/one/; echo $?
        defaults export one $C/../one.new; cmp $C/../one.old $C/../one.new || diff $C/../one.old $C/../one.new
        diff -r $M/.prefs/at/$N/one $M/one && echo equal
        """)
      #expect(outcome.output == "0\nequal\n", "\(outcome)")
    }
  }
}
