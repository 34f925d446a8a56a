import Foundation
import Support
import Testing

/// Two mounts of one store: a change in one shows in the other and reaches its watchers, and the
/// other takes over when the owner ends.
@Suite("Several mounts of a store") struct MultiMountTests {
  /// Runs the body with mounts at `$M` (the owner) and `$M2`.
  private func withTwoMounts(
    _ arguments: [String] = [], second: [String] = [],
    prepare: (Sandbox) -> Void = Fixture.make, _ body: (Sandbox, Mount, Mount) throws -> Void
  ) throws {
    try withMount(arguments, prepare: prepare) {
      (sandbox: Sandbox, one: Mount) throws -> Void in
      let other = try Mount(sandbox, second, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      try body(sandbox, one, other)
    }
  }

  /// Runs a Python program with the two mount points as its arguments.
  private func run(_ program: String, _ sandbox: Sandbox) {
    let result = Program.run(
      "/usr/bin/python3", ["-c", program, sandbox.mountPoint, sandbox.secondMountPoint],
      environment: sandbox.environment)
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test("a key that is removed through one mount does not come back by its creator in the other")
  func removedUnderCreator() throws {
    try withTwoMounts { sandbox, _, _ in
      run(
        """
        import os, sys, threading
        one, other = sys.argv[1:]
        os.mkdir(one + '/c')
        failed = 0
        for number in range(300):
            name = '/c/%d' % number
            fd = os.open(one + name, os.O_CREAT | os.O_WRONLY, 0o600)
            begin = threading.Barrier(2)
            def remove(): begin.wait(); os.unlink(other + name)
            thread = threading.Thread(target=remove)
            thread.start()
            begin.wait()
            for _ in range(20):
                try: os.write(fd, b'x\\n')
                except OSError: failed += 1
            thread.join()
            os.close(fd)
        left = os.listdir(one + '/c') + os.listdir(other + '/c')
        sys.exit(f'{failed} writes failed, {left} are back' if failed or left else 0)
        """, sandbox)
    }
  }

  @Test("O_EXCL makes a scratch file in one mount alone, until it has the name no longer")
  func exclusive() throws {
    try withTwoMounts { sandbox, _, _ in
      run(
        """
        import os, sys, time
        one, other = [point + '/d/' for point in sys.argv[1:]]
        def makes(path, how=os.O_RDWR):
            try: os.close(os.open(path, how | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError: return False
            return True
        failures = []
        def expect(expected, *arguments):
            if makes(*arguments) != expected: failures.append((expected, *arguments))
        for name in ['Claim%d' % number for number in range(100)] + ['.lock', '.Boolean.swp']:
            expect(True, one + name)
            expect(False, other + name)
            # A lock passes from one mount to the other.
            os.unlink(one + name)
            expect(True, other + name)
            expect(False, one + name)
            os.rename(other + name, other + '.moved')
            expect(True, one + name)
            os.unlink(one + name)
            os.unlink(other + '.moved')
        expect(True, one + 'New.lock', os.O_WRONLY)
        expect(False, other + 'New.lock', os.O_WRONLY)
        # A key that somebody makes in any other way takes the place of the file.
        expect(True, one + 'Key')
        with open(other + 'Key', 'w') as file: file.write('8\\n')
        for _ in range(500):
            if open(one + 'Key').read() == '8\\n': break
            time.sleep(0.01)
        else: failures.append('the key is not shown')
        sys.exit(f'not so: {failures}' if failures else 0)
        """, sandbox)
    }
  }

  @Test("a claimed name stays claimed when driver or owner is killed, and not when the mount is")
  func exclusiveOverKills() throws {
    try withTwoMounts { sandbox, _, other in
      let make = "make() { /usr/bin/python3 -c 'import sys; open(sys.argv[1], \"x+\")' $1 2>&1; }"
      let again = "for i in $(seq 5); do make $M/d/.one.lock; done | grep -c FileExistsError"
      #expect(sandbox.shell("\(make); make $M2/d/.one.lock; \(again)").output == "5\n")
      sandbox.shell("kill -9 $(ps -o pid= --ppid \(other.guardian))")
      let known = sandbox.shell("\(make); \(again); ls -A $M2/d | grep lock")
      #expect(known.output == "5\n.one.lock\n", "\(known)")
      sandbox.killOwner()
      #expect(sandbox.shell("\(make); \(again)").output == "5\n")
      other.kill()
      sandbox.shell("fusermount3 -u -z $M2")
      let last = sandbox.shell(
        "\(make); for i in $(seq 50); do make $M/d/.one.lock > $HOME/e || sleep 0.1; "
          + "[ -s $HOME/e ] || break; done; ls -A $M/d | grep lock")
      #expect(last.output == ".one.lock\n", "\(last)")
    }
  }

  @Test("what was written is read by the next call in another mount, while others write a key")
  func neighbours() throws {
    try withTwoMounts { sandbox, _, _ in
      run(
        """
        import os, signal, sys
        mounts = sys.argv[1:]
        def write(path, text):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(fd, text)
            os.close(fd)
        for name in 'ab': os.mkdir(mounts[0] + '/' + name)
        children = []
        for first in range(2):
            child, count = os.fork(), first
            while child == 0 and os.getppid() != 1:
                count += 1
                write(mounts[count % 2] + '/b/K', b'%d' % count)
            if child == 0: os._exit(0)
            children.append(child)
        wrong = 0
        for number in range(600):
            write(mounts[0] + '/a/K', b'%d' % number)
            wrong += open(mounts[1] + '/a/K', 'rb').read() != b'%d' % number
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        sys.exit('%d old texts' % wrong if wrong else 0)
        """, sandbox)
    }
  }

  @Test("dates and data that were written as JSON keep their types in every mount")
  func keptJSON() throws {
    try withTwoMounts(second: ["-o", "format=json"]) { sandbox, _, _ in
      let outcome = sandbox.shell(
        """
        defaults write v K '{d = <*D2020-01-01 00:00:00 +0000>; b = <0001>; s = text;}'
        T=$C/../text; sed s/2020/2021/ $M2/v/K > $T; cat $T > $M2/v/K
        cat $M/v/K > $T; cat $T > $M/v/K
        sed -i s/text/more/ $M/v/K
        defaults export v - | plutil -extract K xml1 -o - - | grep -o '<[sd][ta][a-z]*>.*' | sort
        """)
      #expect(
        outcome.output.hasPrefix("<data>") && outcome.output.contains("<date>2021-01-01T00:00:00Z")
          && outcome.output.contains("<string>more"), "\(outcome)")
    }
  }

  @Test("what is written in one mount, the next command reads in the other, 1,000 times")
  func coherent() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "for i in $(seq 500); do "
          + "echo $i > $M/d/Integer; read x < $M2/d/Integer; [ $x = $i ] || echo stale $i $x; "
          + "echo -$i > $M2/d/Integer; read x < $M/d/Integer; [ $x = -$i ] || echo stale -$i $x; "
          + "done")
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("that holds too while both mounts change other keys and tell watchers of changes")
  func coherentWhileBusy() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/busy
        /usr/bin/python3 \(Program.suite("mounts.py")) $M/busy $M2/busy 12 > $HOME/busy 2>&1 &
        i=0; end=$((SECONDS + 11))
        while [ $SECONDS -lt $end ]; do
          i=$((i + 1)); echo $i > $M/d/Integer
          [ $(cat $M2/d/Integer) = $i ] || echo stale $i
          sleep 0.01
        done
        wait $! || cat $HOME/busy
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("what the next owner has acknowledged, a client reads that has not found it yet")
  func acknowledgedByNextOwner() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      // The client's connect(2) takes 0.1 s, so that it is later than the write.
      let outcome = sandbox.shell(
        """
        /usr/bin/python3 -c "import json, os, subprocess
        probe = subprocess.Popen(['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=connect',
            '-e', 'inject=connect:delay_enter=100000', '$PROBE', 'answer', 'd', 'Integer'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        def ask():
            probe.stdin.write(b'\\n'); probe.stdin.flush()
            return int(probe.stdout.readline())
        ask()
        for i in range(1, 11):
            owner = json.load(open('$M2/.prefs/status.json'))['owner']
            file = os.open('$M2/d/Integer' if i % 2 else '$M/d/Integer', os.O_WRONLY | os.O_TRUNC)
            os.kill(owner, 9)
            os.write(file, b'%d' % i)
            read = ask()
            if read != i: print('stale', i, read)
        probe.stdin.close(); probe.wait()"
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
    }
  }

  /// How the key `Only` of the domain `d` goes away. `$A` is the mount in which a process has it
  /// open, `$B` the other one.
  static let removals: [(name: String, command: String)] = [
    ("rm in the mount", "rm $A/d/Only"), ("rm in the other mount", "rm $B/d/Only"),
    ("rm in the control directory", "rm $A/.prefs/places/user/d/Only"),
    ("the whole domain as a document, removed", "rm $A/.prefs/domains/d.plist"),
    ("a document without the key", "echo '{\"Other\": 1}' > $A/.prefs/domains/d.json"),
    ("the domain renamed in the other mount", "mv $B/d $B/renamed"),
    ("defaults", "defaults write d Only -int 42; defaults delete d Only"),
    (
      "another program",
      "python3 -c 'import plistlib; p = \"'$C/d.plist'\"; "
        + "d = plistlib.load(open(p, \"rb\")); del d[\"Only\"]; "
        + "plistlib.dump(d, open(p + \".new\", \"wb\"))' && mv $C/d.plist.new $C/d.plist"
    ),
  ]

  @Test(
    "a process that has the file of a key open reads its text when the key is gone",
    arguments: removals.indices, [("$M", "$M2"), ("$M2", "$M")])
  func openFileOfRemovedKey(_ index: Int, _ mounts: (String, String)) throws {
    let (name, command) = Self.removals[index]
    let prepare = { (sandbox: Sandbox) in
      Fixture.make(sandbox)
      sandbox.makeList(sandbox.config + "/d.plist", "dict(Only=42, Text='a text')")
    }
    try withTwoMounts(prepare: prepare) { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        A=\(mounts.0) B=\(mounts.1)
        stat $A/.prefs/places/user/d/Only $A/.prefs/domains/d.* > $C/../out 2>&1
        exec 3< $A/d/Only; \(command)
        for i in $(seq 250); do [ -e $A/d/Only ] || break; sleep 0.02; done
        cat <&3
        """)
      #expect(outcome.output == "42\n", "\(name): \(outcome)")
    }
  }

  @Test("a truncation in one mount is not lost where the other appends a moment later")
  func truncatedAndAppended() throws {
    try withTwoMounts { sandbox, _, _ in
      let outcome = sandbox.shell(
        """
        for n in 1 2 3 4 5; do
          echo old > $M/d/Log; cat $M2/d/Log > $C/../out; : > $M/d/Log; echo $n >> $M2/d/Log
          sleep 0.2; cat $M/d/Log $M2/d/Log
        done
        defaults read d Log
        """)
      #expect(outcome.output == "1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n5\n", "\(outcome)")
    }
  }

  @Test("two mounts that append to one text, or write into its middle, lose nothing")
  func computed() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      sandbox.shell("echo first > $M/d/Log")
      let loop = "for i in $(seq 10001 12000); do echo"
      let outcome = sandbox.shell(
        "(\(loop) a-$i >> $M/d/Log || echo refused; done) & (\(loop) b-$i >> $M2/d/Log || echo refused; done) & wait"
      )
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
      for mount in ["$M", "$M2"] {
        #expect(
          sandbox.shell(
            "grep -cE '^[ab]-1[0-9]{4}$' \(mount)/d/Log; sort -u \(mount)/d/Log | wc -l"
          )
          .output == "4000\n4001\n")
      }
      let program = """
        import os, sys, threading
        open(sys.argv[1] + '/d/Text', 'w').write('.' * 6000)
        def write(root, part):
            f = os.open(root + '/d/Text', os.O_WRONLY)
            for i in range(500):
                assert os.pwrite(f, b'%05d' % (i + part), part * 1000 + i % 100 * 10) == 5
        threads = [threading.Thread(target=write, args=(sys.argv[1 + n % 2], n)) for n in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        text = open(sys.argv[2] + '/d/Text').read()
        for n in range(4):
            for i in range(400, 500):
                place = n * 1000 + i % 100 * 10
                assert text[place:place + 5] == '%05d' % (i + n), (n, i, text[place:place + 5])
        """
      run(program, sandbox)
    }
  }

  @Test("long lines that two mounts append stay in one piece where the kernel divides characters")
  func longLines() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      sandbox.shell("echo first > $M/d/Log")
      let program = """
        import multiprocessing, os, random, sys
        def append(root, name, lines):
            rng = random.Random(name)
            for i in range(60):
                letters = "".join(rng.choices("äöüßéñ", k=rng.randrange(1000, 9000)))
                line = f"{name}{i}:{letters}\\n".encode()
                file = os.open(root + "/d/Log", os.O_WRONLY | os.O_APPEND)
                assert os.write(file, line) == len(line), (name, i)
                os.close(file)
                lines.append(line[:-1])
        lines = multiprocessing.Manager().list()
        both = [multiprocessing.Process(target=append, args=(root, name, lines))
                for root, name in zip(sys.argv[1:], "ab")]
        [one.start() for one in both]; [one.join() for one in both]
        assert [one.exitcode for one in both] == [0, 0]
        for root in sys.argv[1:]:
            found = open(root + "/d/Log", "rb").read().splitlines()
            assert sorted(found) == sorted([b"first"] + list(lines)), len(found)
        """
      run(program, sandbox)
    }
  }

  @Test("the cost of a long value is its length, however many pieces it is written in")
  func pieces() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, other: Mount) throws -> Void in
      sandbox.shell("head -c 3000000 /dev/urandom | base64 > $C/../text")
      for (mount, key) in [("$M", "Owner"), ("$M2", "Client")] {
        sandbox.shell("cat $C/../text > \(mount)/d/\(key)")
        let before = try written(one) + written(other)
        #expect(
          sandbox.shell("dd bs=4k conv=notrunc if=$C/../text of=\(mount)/d/\(key) 2>&1").status == 0
        )
        #expect(try written(one) + written(other) - before < 40_000_000)
        #expect(sandbox.shell("dd bs=4k if=$C/../text of=\(mount)/d/\(key) 2>&1").status == 0)
        #expect(
          sandbox.shell("cmp $C/../text $M/d/\(key) && cmp $C/../text $M2/d/\(key)").status == 0)
        // The journal, the messages and the list. The whole value with each of its 1,000 pieces
        // would be a thousand times as much.
        #expect(try written(one) + written(other) - before < 80_000_000)
      }
    }
  }

  /// Returns the bytes that the driver's process has written to any descriptor.
  private func written(_ mount: Mount) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(mount.pid)/io", encoding: .utf8)
    let line = text.split(separator: "\n").first { $0.hasPrefix("wchar: ") }
    return Int(line?.dropFirst(7) ?? "") ?? .max
  }

  @Test("keys and domains that are made, renamed or removed in one mount show in the other")
  func entries() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      sandbox.shell("ls $M2 $M2/d; cat $M2/d/New $M2/d/Inherited $M2/fresh/K")
      #expect(sandbox.shell("echo x > $M/d/New; mkdir $M/fresh; echo 1 > $M/fresh/K").status == 0)
      sandbox.waitUntil("test \"$(cat $M2/d/New $M2/fresh/K)\" = \"$(printf 'x\\n1')\"")
      sandbox.waitUntil("ls $M2/d | grep -q New && ls $M2 | grep -q fresh")
      #expect(sandbox.shell("rm $M2/d/New; mv $M2/fresh $M2/moved").status == 0)
      sandbox.waitUntil("! cat $M/d/New 2> /dev/null && test $(cat $M/moved/K) = 1")
      #expect(sandbox.shell("echo 5 > $M2/NSGlobalDomain/Inherited").status == 0)
      sandbox.waitUntil("test \"$(cat $M/d/Inherited)\" = 5")
    }
  }

  @Test("each mount has its own arguments, and a read-only mount shows changes")
  func options() throws {
    try withTwoMounts(["--", "-Integer", "7"], second: ["-o", "ro"]) {
      (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/Integer $M2/d/Integer").output == "7\n42\n")
      #expect(sandbox.shell("echo 9 > $M/d/Integer").status != 0)
      #expect(sandbox.shell("echo 2.5 > $M/d/Real; cat $M2/d/Real").output == "2.5\n")
      #expect(sandbox.shell("echo 3.5 > $M2/d/Real").errors.contains("Read-only"))
    }
  }

  @Test("watchers of one mount get events of changes in the other")
  func watched() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let watcher = try sandbox.watch(["mount2/d"])
      defer { kill(watcher.processIdentifier, SIGKILL) }
      sandbox.shell("echo 5 > $M/d/Integer; echo x > $M/d/Fresh; rm $M/d/String")
      for event in [
        "CLOSE_WRITE,CLOSE mount2/d/Integer", "CREATE mount2/d/Fresh", "DELETE mount2/d/String",
      ] {
        sandbox.waitUntil("grep -qF '\(event)' $C/../events")
      }
    }
  }

  @Test("two mounts that append to a key which has just been made lose no line")
  func appendsAtCreation() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        for i in $(seq 60); do
          : > $M/d/A$i; echo a >> $M/d/A$i & echo b >> $M2/d/A$i & wait
          echo a >> $M/d/B$i & echo b >> $M2/d/B$i & echo c >> $M2/d/B$i & wait
          echo $(sort $M/d/A$i) $(sort $M2/d/A$i) $(sort $M/d/B$i) $(sort $M2/d/B$i)
        done | sort | uniq -c | tr -s ' '
        """)
      #expect(outcome.output == " 60 a b a b a b c a b c\n", "\(outcome)")
      #expect(outcome.errors == "")
    }
  }

  @Test("of two mounts that make a name which must be new, one succeeds", arguments: ["ln", "mv"])
  func madeOnce(_ way: String) throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        try() { python3 -c "import ctypes, os, sys
        libc = ctypes.CDLL(None, use_errno=True)
        for i in range(200):
            old, new = (f'$1/d/{n}'.encode() for n in (f'tmp.$2{i}', f'Lock{i}'))
            open(old, 'w').write('$2')
            try:
                if '\(way)' == 'ln': os.link(old, new)
                elif libc.renameat2(-100, old, -100, new, 1):
                    raise OSError(ctypes.get_errno(), new)
                # One write(2): print makes two where Python does not buffer.
                sys.stdout.write(f'Lock{i}\\n')
            except FileExistsError: pass"; }
        try $M a & try $M2 b; wait
        """)
      let names = outcome.output.split(separator: "\n")
      #expect(
        names.count == 200 && Set(names).count == 200, "\(names.count): \(outcome.errors)")
    }
  }

  @Test("creating, renaming and removing through two mounts at once ends in no deadlock")
  func stress() throws {
    try withTwoMounts { (sandbox: Sandbox, _: Mount, _: Mount) throws -> Void in
      let seconds = ProcessInfo.processInfo.environment["PREFSFS_STRESS_SECONDS"] ?? "8"
      let outcome = sandbox.shell(
        "timeout 100 /usr/bin/python3 \(Program.suite("mounts.py")) $M/d $M2/d \(seconds)")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("when the owner is killed the mounts go on, and nothing acknowledged is lost")
  func killed() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, other: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M2/d/*; echo 5 > $M2/d/Integer; echo 1 > $M/d/Real").status == 0)
      kill(try #require(sandbox.owner), SIGKILL)
      let outcome = sandbox.shell(
        "for i in $(seq 100); do echo $i > $M2/d/Integer || exit 1; done; cat $M2/d/Integer $M2/d/Real $M/d/Integer"
      )
      #expect(outcome.output == "100\n1\n100\n", "\(outcome)\n\(one.log)\(other.log)")
    }
  }

  @Test("what is written while a mount has no driver, that mount shows from then on")
  func withoutDriver() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, two: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        for i in $(seq 30); do
          read x < $M2/d/Integer; stat -c %s $M2/d/Integer > /dev/null
          kill -9 $(ps -o pid= --ppid \(two.guardian))
          echo $i > $M/d/Integer; read x < $M2/d/Integer; [ $x = $i ] || echo stale $i $x
          sleep 0.15
        done
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
      // A mount that is gone with its guard delays a change for a second at most, and only once.
      two.kill()
      let start = Date()
      for number in 1...20 { sandbox.shell("echo \(number) > $M/d/Integer") }
      #expect(Date().timeIntervalSince(start) < 5)
      sandbox.shell("fusermount3 -u -z $M2")
    }
  }

  @Test("the end of a mount delays no change of the others")
  func orderlyEnd() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, two: Mount) throws -> Void in
      sandbox.shell("read x < $M2/d/Integer")
      two.unmount()
      let outcome = sandbox.shell("time -p echo 7 > $M/d/Integer")
      #expect(outcome.errors.contains("real 0.0"), "\(outcome)")
    }
  }

  @Test("while the owner is stopped reads go on and a write times out; then both work again")
  func stopped() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, _: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M2/d/*").status == 0)
      let owner = try #require(sandbox.owner)
      kill(owner, SIGSTOP)
      let write = try sandbox.start("echo 5 2> $C/../error > $M2/d/Integer; echo $? > $C/../status")
      let start = Date()
      #expect(sandbox.shell("sleep 0.3; cat $M2/d/String; ls $M2/d").status == 0)
      #expect(sandbox.shell("getfattr -n user.prefs.type $M2/d/Real").status == 0)
      #expect(Date().timeIntervalSince(start) < 3)
      write.waitUntilExit()
      #expect(sandbox.shell("cat $C/../status").output == "1\n")
      #expect(sandbox.shell("cat $C/../error").output.contains("timed out"))
      kill(owner, SIGCONT)
      #expect(sandbox.shell("echo 6 > $M2/d/Integer; cat $M/d/Integer").output == "6\n")
      #expect(sandbox.shell("sleep 0.2; cat $M2/d/Integer").output == "6\n")
    }
  }

  @Test(
    "an owner that has been silent when it is stopped makes a removal and a first look time out")
  func stoppedInSilence() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.makeList(sandbox.config + "/unread.plist", "dict(A=1)")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      sandbox.shell("cat $M/d/*; sleep 1")
      let owner = try #require(sandbox.owner)
      kill(owner, SIGSTOP)
      defer { kill(owner, SIGCONT) }
      for (command, seconds) in [("rm $M/d/Real", 7.0), ("cat $M/unread/A", 2)] {
        let start = Date()
        let outcome = sandbox.shell(command)
        #expect(outcome.errors.contains("timed out"), "\(command): \(outcome)")
        #expect(Date().timeIntervalSince(start) < seconds, "\(command)")
      }
    }
  }

  @Test("while the owner is stopped for long the other mount answers, and ends on SIGTERM")
  func stoppedForLong() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, other: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M2/d/*").status == 0)
      let owner = try #require(sandbox.owner)
      kill(owner, SIGSTOP)
      defer { kill(owner, SIGCONT) }
      let writers = try (0..<4).map { _ in
        try sandbox.start("for i in $(seq 100); do echo $i > $M2/d/Integer; done")
      }
      defer { for writer in writers { kill(writer.processIdentifier, SIGKILL) } }
      // Long enough to fill the socket with requests, if more than one were sent at a time.
      for _ in 0..<16 {
        let start = Date()
        #expect(
          sandbox.shell("cat $M2/d/String; getfattr -n user.prefs.type $M2/d/Real").status == 0)
        #expect(Date().timeIntervalSince(start) < 2)
        sleep(1)
      }
      let start = Date()
      #expect(other.end(with: SIGTERM) == 0)
      #expect(Date().timeIntervalSince(start) < 8)
    }
  }

  @Test("when the owner is unmounted the other mount takes over, with everything")
  func ended() throws {
    try withTwoMounts { (sandbox: Sandbox, one: Mount, _: Mount) throws -> Void in
      sandbox.shell("echo 5 > $M/d/Integer")
      one.unmount()
      #expect(
        sandbox.shell("cat $M2/d/Integer; echo 6 > $M2/d/Integer; cat $M2/d/Integer").output
          == "5\n6\n")
    }
  }
}
