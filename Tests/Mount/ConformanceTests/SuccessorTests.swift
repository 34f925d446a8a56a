import Foundation
import Support
import Testing

/// A mount goes on when its driver, or its guard, ends.
@Suite("Successors of a driver") struct SuccessorTests {
  @Test(
    "eight workers notice nothing when the driver is killed or replaced",
    arguments: ["kill", "upgrade", "guard", "mixed"])
  func workers(_ how: String) throws {
    try withSandbox { sandbox in
      let rounds = ProcessInfo.processInfo.environment["PREFSFS_SUCCESSOR_ROUNDS"] ?? "3"
      let outcome = sandbox.shell(
        "/usr/bin/python3 \(Program.suite("successors.py")) \(Program.path) \(rounds) \(how)")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("editors, watchers and directories stay open over ten kills; the status counts them")
  func status() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let script = """
        cd $M/d; exec 5< String 6>> New; cp Integer .scratch.swp; chmod 400 Real
        echo one >&6
        for i in 1 2 3 4 5 6 7 8 9 10; do
          kill -9 $(ps -o pid= --ppid \(mount.guardian))
          [ "$(cat Integer)" = 42 ] && [ "$(cat .scratch.swp)" = 42 ] && stat -f $M > /dev/null || exit 1
        done
        echo two >&6; cat New; cat <&5; stat -c %a Real; pwd
        $PREFSFS --status $M | grep -c '"driver replaced after a crash": 10,'
        $PREFSFS --status $M | grep 'last replaced'
        """
      let outcome = sandbox.shell(script)
      let lines = outcome.output.split(separator: "\n")
      #expect(lines.first == "one" && lines.dropFirst().first == "two", "\(outcome)")
      #expect(lines.dropFirst(3) == ["400", "\(sandbox.mountPoint)/d", "1", lines.last ?? ""])
      #expect(lines.last?.contains("signal 9 ended the driver before") == true, "\(outcome)")
      #expect(mount.log.contains("was ended by signal 9; the mount goes on"))
    }
  }

  @Test("registered defaults survive the driver; a text under way is lost, and never mixed")
  func state() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let kill = "kill -9 $(ps -o pid= --ppid \(mount.guardian))"
      // Held text: the old value is shown, and the next part is refused, until a truncation. A
      // truncation: the write that follows it begins with an empty text.
      let script = """
        mkdir -p $M/.prefs/places/registered/d; echo 7 > $M/.prefs/places/registered/d/Default
        exec 5> $M/d/Array; printf '[1, ' >&5; \(kill); tr -d ' \\n' < $M/d/Array; echo
        printf '2]' >&5 2> /dev/null; echo $?; tr -d ' \\n' < $M/d/Array; echo
        echo '[3]' > $M/d/Array; cat $M/d/Array
        cat $M/d/Default; cat $M/.prefs/places/registered/d/Default
        echo 1000 > $M/d/Integer; exec 6> $M/d/Integer; \(kill)
        sleep 0.1; cat $M/d/Integer
        echo 8 >&6; cat $M/d/Integer
        printf text > $M/d/.one.swp; mv $M/d/.one.swp $M/d/Fresh; \(kill); cat $M/d/Fresh
        """
      let outcome = sandbox.shell(script)
      #expect(
        outcome.output == "[1,\"a\",2.5]\n1\n[1,\"a\",2.5]\n[3]\n7\n7\n1000\n8\ntext",
        "\(outcome)")
      #expect(mount.log.contains("was lost when the driver of the mount ended"))
    }
  }

  @Test("an upgrade is put off while a text is incomplete, and the text goes on")
  func putOff() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let driver = mount.pid
      sandbox.shell(
        """
        (printf '[1, '; sleep 2.4; printf '2]') > $M/d/Array & sleep 0.1
        kill -USR2 \(driver); wait $!
        """)
      #expect(sandbox.shell("tr -d ' \\n' < $M/d/Array").output == "[1,2]")
      #expect(mount.pid == driver)
      #expect(mount.log.contains("the text of d/Array is not complete"), "\(mount.log)")
    }
  }

  @Test("a crash leaves one driver, and the status names the signal", arguments: [4, 6, 7, 11])
  func crash(_ signal: Int32) throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let first = mount.pid
      kill(first, signal)
      #expect(sandbox.shell("stat -f $M > /dev/null; cat $M/d/Integer").output == "42\n")
      sandbox.waitUntil("! kill -0 \(first) 2> /dev/null")
      #expect(sandbox.shell("pgrep -c -P \(mount.guardian)").output == "1\n")
      #expect(
        sandbox.shell("$PREFSFS --status $M").output.contains("signal \(signal) ended the driver"))
    }
  }

  @Test("a trap of a debugger leaves one driver")
  func trap() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let first = mount.pid
      // PTRACE_SEIZE, _INTERRUPT, _SINGLESTEP; then _CONT with the SIGTRAP of that step, which the
      // next instruction does not make again. The step ends when poll(2) does.
      let script = """
        (sleep 0.5; stat -f $M > /dev/null) &
        timeout 20 /usr/bin/python3 -c "import ctypes, os; trace = ctypes.CDLL(None).ptrace
        for step in [0x4206, 0x4207], [9]:
            for request in step: assert trace(request, \(first), None, None) == 0
            os.waitpid(\(first), 0)
        assert trace(7, \(first), None, ctypes.c_void_p(5)) == 0"
        stat -f $M > /dev/null; cat $M/d/Integer
        """
      let outcome = sandbox.shell(script)
      #expect(outcome.output == "42\n", "\(outcome.errors)")
      sandbox.waitUntil("! kill -0 \(first) 2> /dev/null")
      #expect(sandbox.shell("pgrep -c -P \(mount.guardian)").output == "1\n")
    }
  }

  @Test("a mount that is told to end while its driver is replaced ends")
  func endDuringTakeover() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      for way in ["-9 $D; kill -TERM $G", "-TERM $G; kill -9 $D", "-USR2 $D; kill -TERM $G"] {
        let script = """
          $PREFSFS -f $M 2> $C/../log & G=$!
          until stat -f $M > /dev/null && mountpoint -q $M; do sleep 0.01; done
          D=$(ps -o pid= --ppid $G); kill \(way); wait $G; mountpoint -q $M; echo $?
          """
        #expect(sandbox.shell(script).output == "32\n", "\(way)")
      }
    }
  }

  @Test("a successor's changes are its own, though the owner remembers its predecessor's")
  func ownChanges() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      // The owner is another process.
      sandbox.shell("defaults read d")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      let script = """
        cd $M/d; : > String; sleep 0.3; cat String | wc -c
        kill -9 $(ps -o pid= --ppid \(mount.guardian)); echo text > Fresh; : > Fresh; sleep 0.3
        cat Fresh | wc -c; defaults read d Fresh | wc -c
        """
      #expect(sandbox.shell(script).output == "0\n0\n1\n")
    }
  }

  @Test("where the kernel does not send requests again, the mount goes on all the same")
  func withoutResending() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let script = """
        export PREFSFS_NO_RESEND=1; $PREFSFS -f $M 2> $C/../log & G=$!
        until mountpoint -q $M; do sleep 0.01; done
        (for i in $(seq 2000); do cat $M/d/.none$i; done 2> /dev/null) & W=$!
        for i in 1 2 3 4 5; do
          sleep 0.1; kill -9 $(ps -o pid= --ppid $G); cat $M/d/Integer > /dev/null
          echo $i > $M/d/Real || echo $i > $M/d/Real; cat $M/d/Real
        done
        wait $W
        # EBUSY while another process looks at the mount, as df(1) of another test does.
        for i in $(seq 40); do fusermount3 -u $M && break; sleep 0.05; done
        wait $G; echo $?; grep -c 'does not send requests again' $C/../log
        """
      #expect(sandbox.shell(script).output == "1\n2\n3\n4\n5\n0\n5\n")
    }
  }

  @Test("what others change while there is no driver is shown and announced by the next one")
  func missed() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("cat $M/d/Integer $M/d/String; sleep 1.1")
      let watch = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watch) }
      let list = "\(sandbox.config)/d.plist"
      let script = """
        kill -STOP \(mount.guardian); kill -9 $(ps -o pid= --ppid \(mount.guardian))
        /usr/bin/python3 -c "import plistlib, os; d = plistlib.load(open('\(list)', 'rb'))
        d['Integer'] = 43; d['Fresh'] = 1; del d['String']
        plistlib.dump(d, open('\(list).new', 'wb')); os.rename('\(list).new', '\(list)')"
        kill -CONT \(mount.guardian); cat $M/d/Integer $M/d/Fresh; cat $M/d/String; echo $?
        """
      #expect(sandbox.shell(script).output == "43\n1\n1\n")
      for event in ["CLOSE_WRITE,CLOSE d/Integer", "CREATE d/Fresh", "DELETE d/String"] {
        sandbox.waitUntil("grep -qx '\(event)' $C/../events")
      }
    }
  }

  @Test("a domain that is removed while there is no driver is no directory afterwards")
  func removedMeanwhile() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let script = """
        defaults write gone K 1; ls $M/gone
        kill -STOP \(mount.guardian); kill -9 $(ps -o pid= --ppid \(mount.guardian))
        defaults delete gone; kill -CONT \(mount.guardian); ls $M/d > /dev/null; sleep 0.5
        test -e $M/gone; echo $?; mkdir $M/gone; ls $M/gone; ls $M | grep -c gone
        """
      let outcome = sandbox.shell(script)
      #expect(outcome.output == "K\n1\n1\n", "\(outcome)")
    }
  }

  @Test("defaults that a timer changes, and -o auto_unmount, survive the driver")
  func timers() throws {
    try withMount(["-o", "auto_unmount"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let script = """
        mkdir -p $M/.prefs/places/registered/d; echo text > $M/.prefs/places/registered/d/Default
        : > $M/.prefs/places/registered/d/Default; sleep 0.3
        kill -9 $(ps -o pid= --ppid \(mount.guardian)); cat $M/d/Default; echo $?; mountpoint -q $M; echo $?
        """
      #expect(sandbox.shell(script).output == "0\n0\n")
    }
  }

  @Test("a mount whose successors cannot begin ends, and nothing hangs")
  func noSuccessor() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      // There is no owner, and none can be started.
      let owner = try #require(sandbox.owner)
      sandbox.shell("mkdir -p $C/../broken; mv \(sandbox.state)/prefsfs $C/../broken/kept")
      sandbox.shell("ln -s /dev/null \(sandbox.state)/prefsfs")
      // What the kernel has cached is not shown either, once the mount is over.
      let script = """
        cat $M/d/String; cd $M/d; kill -9 \(owner) $(ps -o pid= --ppid \(mount.guardian))
        timeout 20 cat Integer; echo $?; while mountpoint -q $M; do sleep 0.1; done; cd /
        cat $M/d/String; echo $?
        """
      let outcome = sandbox.shell(script)
      #expect(outcome.output == "hello\n1\n1\n", "\(outcome)")
      #expect(mount.log.contains("the driver cannot be replaced"))
      sandbox.shell(
        "rm \(sandbox.state)/prefsfs; mv $C/../broken/kept \(sandbox.state)/prefsfs")
    }
  }
}
