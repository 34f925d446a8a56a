import Foundation
import Support
import Testing

/// What other people's tools, users and accidents do to a mount, its directories and its lists.
@Suite("Hostile surroundings") struct HostileTests {
  @Test(
    "files and lists may have times of any year", arguments: ["1700", "2300", "9999"])
  func years(_ year: String) throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let session = """
        cd $M/d && mkdir x.lock && touch -d \(year)-01-01 x.lock && ls -l x.lock . >/dev/null
        touch -d \(year)-01-01 .scratch Integer && ls -l >/dev/null && cat Integer
        touch -d \(year)-01-01 $C/other.plist && cat $M/other/Key && ls -l $M >/dev/null
        echo 43 > Integer && cat Integer && echo fresh > .scratch && rm .scratch && rmdir x.lock
        """
      let outcome = sandbox.shell(session)
      #expect(outcome.output == "42\nother\n43\n" && outcome.status == 0, "\(outcome)")
    }
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("touch -d \(year)-01-01 $C/*.plist")
    }) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(
        sandbox.shell("ls -l $M/d >/dev/null; echo 5 > $M/d/Integer; cat $M/d/Integer").output
          == "5\n")
    }
  }

  @Test("reads, writes and truncations at extreme offsets do no harm")
  func offsets() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let program = """
        import os, sys
        for name in ('String', 'Data', '.scratch', 'Integer'):
            f = os.open(sys.argv[1] + '/d/' + name, os.O_RDWR | os.O_CREAT)
            for offset in (2**63 - 2, 2**63 - 4097, 2**62, 2**40, 2**32, 1 << 25):
                for call in (lambda: os.pwrite(f, b'x', offset), lambda: os.ftruncate(f, offset),
                             lambda: os.pread(f, 10, offset) and None):
                    try: call()
                    except OSError: pass
        print(open(sys.argv[1] + '/d/String').read(), end='')
        """
      let outcome = Program.run(
        "/usr/bin/python3", ["-c", program, sandbox.mountPoint], environment: sandbox.environment)
      #expect(outcome.output == "hello\n", "\(outcome)")
    }
  }

  @Test("clients and mounts find the owner again each time the runtime directory is removed")
  func wipedRuntimeDirectory() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      for round in 1...3 {
        sandbox.shell("rm -rf $XDG_RUNTIME_DIR/prefsfs")
        sandbox.waitUntil("test \"$(defaults read d Integer)\" = $(cat $M/d/Integer)")
        #expect(
          sandbox.shell("defaults write d Integer -int \(round); cat $M/d/Integer").output
            == "\(round)\n")
      }
      #expect(sandbox.backgroundLog.contains("socket was removed"))
      // A file in its place keeps the directory from being made again, so the socket has to move
      // to the state directory.
      sandbox.shell("rm -rf $XDG_RUNTIME_DIR; touch $XDG_RUNTIME_DIR")
      sandbox.waitUntil("test \"$(defaults read d Integer)\" = 3")
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      #expect(sandbox.shell("echo 9 > $M2/d/Integer; cat $M/d/Integer").output == "9\n")
    }
  }

  @Test("unsaved changes survive the removal of the state directory and then a crash")
  func wipedStateDirectory() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let mount = try Mount(sandbox, ["-o", "writeback=3600"])
      sandbox.shell("echo 5 > $M/d/Integer; printf 007 > $M/d/New")
      sandbox.shell("rm -rf \(sandbox.state)/prefsfs")
      sandbox.waitUntil("ls \(sandbox.state)/prefsfs/*/journal.*")
      sandbox.shell("echo 6 > $M/d/Integer")
      mount.crash()
      let again = try Mount(sandbox)
      defer { again.unmount() }
      #expect(sandbox.shell("cat $M/d/Integer $M/d/New").output == "6\n007")
    }
  }

  @Test("a lock that others take on the directory of lists keeps no list from being saved")
  func foreignLock() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let locker = try sandbox.start("exec 9< $C; flock 9; exec sleep 60")
      defer { sandbox.end(locker) }
      sandbox.waitUntil("! flock -n $C true")
      sandbox.shell("echo 5 > $M/d/Integer")
      sandbox.waitUntil(
        "/usr/bin/python3 -c \"import plistlib; assert plistlib.load(open('$C/d.plist', 'rb'))['Integer'] == 5\""
      )
      #expect(sandbox.shell("stat -c %a \(sandbox.state)/prefsfs/*/lists.lock").output == "600\n")
    }
  }

  @Test("the writer's thread does not wait for another process that rewrites the same place")
  func busyLock() throws {
    try withMount(["-o", "writeback=0.1"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("echo 4 > $M/d/Integer; sleep 0.5")
      let locker = try sandbox.start(
        "exec 9< $(echo \(sandbox.state)/prefsfs/*/lists.lock); flock 9; exec sleep 60")
      sandbox.waitUntil("! flock -n \(sandbox.state)/prefsfs/*/lists.lock true")
      sandbox.shell("echo 5 > $M/d/Integer; sleep 0.5")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer']") == "4")
      // The same thread reads what other programs change.
      sandbox.makeList(sandbox.config + "/other.plist", "dict(Key='seen')")
      sandbox.waitUntil("test \"$(cat $M/other/Key)\" = seen")
      sandbox.end(locker)
      sandbox.waitUntil(
        "/usr/bin/python3 -c \"import plistlib; assert plistlib.load(open('$C/d.plist', 'rb'))['Integer'] == 5\""
      )
    }
  }

  @Test("a rewrite keeps ACL, extended attributes and mode of a list, and adds no access")
  func access() throws {
    try withMount(
      ["-o", "writeback=0.1"],
      prepare: { sandbox in
        Fixture.make(sandbox)
        sandbox.shell(
          "setfacl -m u:65534:r $C/d.plist; setfattr -n user.note -v kept $C/d.plist; setfacl -d -m u:65533:rw $C"
        )
      }
    ) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let show = "getfacl -n -p $C/d.plist; getfattr -n user.note $C/d.plist; stat -c %a $C/d.plist"
      let (before, inode) = (
        sandbox.shell(show).output, sandbox.shell("stat -c %i $C/d.plist").output
      )
      #expect(before.contains("65534") && before.contains("kept"))
      sandbox.shell("echo 5 > $M/d/Integer")
      sandbox.waitUntil("test $(stat -c %i $C/d.plist) != \(inode.dropLast())")
      #expect(sandbox.shell(show).output == before)
      sandbox.shell("setfacl -k $C")
    }
  }

  @Test("an edit that keeps size and modification time of a list is seen")
  func sameSizeAndTime() throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.makeList(sandbox.config + "/s.plist", "dict(K='one')", format: "XML")
    }) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/s/K").output == "one\n")
      sandbox.shell(
        "cp -p $C/s.plist $C/../ref; sed s/one/two/ $C/s.plist > $C/../new; cp $C/../new $C/s.plist; touch -r $C/../ref $C/s.plist"
      )
      sandbox.waitUntil("test \"$(cat $M/s/K)\" = two")
    }
  }

  @Test("a pipe in the place of a file of the state directory makes nobody wait for it")
  func pipes() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        defaults write d a 1
        for name in lock owner socket; do
          cd $XDG_STATE_HOME/prefsfs/*/; kill -9 $(cat lock); sleep 0.1; rm $name; mkfifo $name
          timeout 10 defaults read d a; echo "$name $?"; rm $name; defaults read d a
        done
        """)
      #expect(outcome.output == "lock 1\n1\n1\nowner 0\n1\n1\nsocket 0\n1\n", "\(outcome)")
      #expect(outcome.errors.contains("prefsd cannot serve \(sandbox.config): ftruncate"))
    }
  }

  @Test(
    "a list that is a directory, a pipe or a device is EIO, in its domain alone",
    arguments: [
      "mkdir", "mkfifo", "ln -s /dev/null",
    ])
  func noFile(_ command: String) throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("\(command) $C/odd.plist")
    }) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      expectRefused(EIO) { _ = try files.get("odd/Key") }
      expectRefused(EIO) { try files.put("odd/Key", "x") }
      #expect(sandbox.shell("cat $M/d/Integer; ls $M | grep -c odd").output == "42\n1\n")
    }
  }

  @Test(
    "a list on a hung file system, or one that links into the mount, fails in its domain alone",
    arguments: ["the mount", "prefsd"])
  func hungLists(owner: String) throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let other = try Mount(
        sandbox, ["-o", "store=\(sandbox.root)/home"], at: sandbox.secondMountPoint)
      defer {
        kill(other.pid, SIGCONT)
        other.unmount()
      }
      sandbox.shell(
        "mkdir $M2/x; echo text > $M2/x/Data; ln -s $M2/x/Data $C/hung.plist; ln -s $M/loop/K $C/loop.plist; ln -s $M/other/Key $C/inner.plist"
      )
      if owner == "prefsd" { sandbox.shell("defaults read d Integer") }
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      kill(other.pid, SIGSTOP)
      let commands = [
        "hung": "cat $M/hung/K", "loop": "cat $M/loop/K", "inner": "cat $M/inner/K",
        "command": "defaults write hung K text", "document": "cat $M/.prefs/effective/hung.json",
      ]
      let readers = try commands.map { name, command in
        try sandbox.start("\(command) 2> $C/../\(name).error")
      }
      let start = Date()
      #expect(
        sandbox.shell(
          """
          sleep 0.2; cat $M/d/Integer; jq .Integer $M/.prefs/effective/d.json
          echo 5 > $M/d/Integer; cat $M/d/Integer; defaults read d Integer
          jq .Integer $M/.prefs/effective/d.json
          """
        ).output == "42\n42\n5\n5\n5\n")
      #expect(Date().timeIntervalSince(start) < 3)
      for reader in readers { reader.waitUntilExit() }
      #expect(Date().timeIntervalSince(start) < 15)
      for name in ["hung", "loop", "inner", "document"] {
        #expect(sandbox.shell("cat $C/../\(name).error").output.contains("Input/output"), "\(name)")
      }
      #expect(sandbox.shell("cat $C/../command.error").output.contains("hung"))
      // Lists are still saved.
      sandbox.waitUntil(
        "/usr/bin/python3 -c \"import plistlib; assert plistlib.load(open('$C/d.plist', 'rb'))['Integer'] == 5\""
      )
    }
  }

  @Test("a look-up does not wait behind a hung one when a domain is made meanwhile")
  func hungLookUp() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let other = try Mount(
        sandbox, ["-o", "store=\(sandbox.root)/home"], at: sandbox.secondMountPoint)
      defer {
        kill(other.pid, SIGCONT)
        other.unmount()
      }
      sandbox.shell("mkdir $M2/x; echo text > $M2/x/Data; ln -s $M2/x/Data $C/hung.plist")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      kill(other.pid, SIGSTOP)
      let reader = try sandbox.start("cat $M/hung/K 2> $C/../hung.error")
      // The command waits a second for the mount, which cannot drop the name of the new domain yet.
      sandbox.shell("sleep 0.3; defaults write fresh K 1")
      let start = Date()
      #expect(sandbox.shell("cat $M/d/Integer $M/fresh/K").output == "42\n1\n")
      #expect(Date().timeIntervalSince(start) < 1)
      #expect(reader.isRunning)
      reader.waitUntilExit()
    }
  }

  @Test("the name of a key cannot forge a line of the log")
  func forgedLines() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell(
        "echo 5 > \"$M/d/K%0Aprefsfs: forged%1B[2J\"; echo x > \"$M/d/K%0Aprefsfs: forged%1B[2J\"")
      #expect(mount.log.contains("forged"))
      #expect(!mount.log.split(separator: "\n").contains { $0.hasPrefix("prefsfs: forged") })
      #expect(!mount.log.contains("\u{1B}"))
    }
  }

  @Test("a mount in the foreground survives a standard error that is full or closed")
  func standardError() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let script = """
        mkfifo $C/../pipe; sleep 100 < $C/../pipe & R=$!
        $PREFSFS -f $M 2> $C/../pipe & P=$!
        until mountpoint -q $M; do sleep 0.01; done
        for i in $(seq 3000); do echo bad > $M/d/Integer; done 2> /dev/null
        cat $M/d/Integer; kill -9 $R; wait $R 2> /dev/null
        for i in 1 2 3; do echo bad > $M/d/Integer; done 2> /dev/null
        cat $M/d/Integer; fusermount3 -u $M; wait $P; echo $?
        """
      #expect(sandbox.shell(script).output == "42\n42\n0\n")
    }
  }

  @Test("when inotify has no instance left, lists are checked every 2 s")
  func noInotify() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      // The owner alone has that limit, in a user namespace of its own.
      let owner = sandbox.shell(
        """
        unshare --user --map-root-user \
          sh -c 'echo 0 > /proc/sys/user/max_inotify_instances && exec $PREFSD'
        """)
      #expect(owner.status == 0, "\(owner)")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      #expect(sandbox.shell("cat $M/d/Integer").output == "42\n")
      sandbox.makeList(sandbox.config + "/d.plist", "dict(Integer=43)")
      sandbox.waitUntil("test \"$(cat $M/d/Integer)\" = 43")
      #expect(sandbox.backgroundLog.contains("every 2 s"))
      // A list that nobody has read is found too, and missed when it is gone.
      #expect(sandbox.shell("ls $M").output.split(separator: "\n").contains("d"))
      sandbox.makeList(sandbox.config + "/late.plist", "dict(K=1)")
      sandbox.waitUntil("ls $M | grep -qx late")
      try FileManager.default.removeItem(atPath: sandbox.config + "/late.plist")
      sandbox.waitUntil("! ls $M | grep -qx late")
    }
  }

  @Test("a mount whose mount point's parent was renamed still ends cleanly")
  func renamedParent() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("mkdir -p $C/../parent/point")
      let mount = try Mount(sandbox, at: sandbox.root + "/parent/point")
      sandbox.shell("mv $C/../parent $C/../moved")
      #expect(mount.end(with: SIGTERM) == 0)
      #expect(!MountTable.isMounted(sandbox.root + "/moved/point"))
      #expect(sandbox.shell("ls $C/../moved/point").status == 0)
    }
  }

  @Test("a mount whose connection was ended by force is taken off its directory, and all is saved")
  func forcedUnmount() throws {
    try withMount(prepare: Fixture.make) { sandbox, mount in
      // An open file keeps the mount from being unmounted; its connection is ended all the same.
      let outcome = sandbox.shell("exec 5< $M/d/Integer; echo 43 > $M/d/Integer; umount -f $M")
      #expect(outcome.status != 0)
      sandbox.waitUntil("test ! -e /proc/\(mount.guardian)")
      #expect(!MountTable.isMounted(sandbox.mountPoint))
      #expect(sandbox.shell("ls -A $M").output == "")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer']") == "43")
    }
  }

  @Test("with a full state disk all can be read, and the journal that fills it is saved")
  func fullStateDisk() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let disk = sandbox.root + "/disk"
      sandbox.shell("mkdir \(disk) && mount -t tmpfs -o size=1m none \(disk)")
      defer { sandbox.shell("umount -l \(disk)") }
      let environment = "export XDG_STATE_HOME=\(disk); "
      sandbox.shell(
        environment
          + "$PREFSFS -f -o writeback=3600 $M & until mountpoint -q $M; do sleep 0.01; done; "
          + "head -c 300000 /dev/urandom > $M/d/Data; echo 5 > $M/d/Integer; kill -STOP $!; pkill -9 -P $!; kill -9 $! $(cat \(disk)/prefsfs/*/lock); fusermount3 -u -z $M"
      )
      sandbox.shell("cat /dev/zero > \(disk)/full")
      #expect(sandbox.shell("df --output=avail \(disk) | tail -1 | tr -d ' '").output == "0\n")
      let session =
        environment + """
          $PREFSFS $M && cat $M/d/Integer $M/other/Key
          for i in $(seq 200); do cmp -s $M/d/Data \(disk)/none; sleep 0.1; ls \(disk)/prefsfs/*/journal.* > /dev/null 2>&1 || break; done
          echo 6 > $M/d/Integer; cat $M/d/Integer; fusermount3 -u $M
          """
      let outcome = sandbox.shell(session)
      sandbox.killOwner(with: SIGTERM)
      #expect(outcome.output == "5\nother\n6\n", "\(outcome)")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "len(d['Data'])") == "300000")
    }
  }

  @Test("journal files that a kill -9 leaves behind are removed later")
  func journalFiles() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("$PROBE set d K 1; kill -9 $(cat \(sandbox.state)/prefsfs/*/lock)")
      for _ in 0..<3 {
        #expect(sandbox.shell("$PROBE get d K").output == "1\n")
        sandbox.shell("kill $(cat \(sandbox.state)/prefsfs/*/lock); sleep 0.3")
      }
      sandbox.shell("$PREFSD --idle 20")
      sandbox.waitUntil("sleep 2.2; ! ls \(sandbox.state)/prefsfs/*/journal.*")
    }
  }

  /// Has clients start a `prefsd` that stays for a minute without clients.
  private static let stays = """
    printf '#!/bin/sh\\nexec '$PREFSD' --idle 60 "$@"\\n' > $C/../stays; chmod +x $C/../stays
    export PREFSFS_PREFSD=$(realpath $C/../stays)
    """

  @Test("clients that come and go do not wake the main thread of prefsd up")
  func sleepingThread() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("\(Self.stays); defaults read d Integer")
      let switches = "grep ^voluntary /proc/$(cat \(sandbox.state)/prefsfs/*/lock)/status"
      let before = sandbox.shell(switches).output
      #expect(before.hasPrefix("voluntary_ctxt_switches:"))
      sandbox.shell("for i in $(seq 20); do defaults read d Integer; done")
      #expect(sandbox.shell(switches).output == before)
    }
  }

  @Test("an idle prefsd does not wake up, and inherits nothing from the program that started it")
  func idleOwner() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      // In a mount namespace of its own: the mounts of other tests would wake it up.
      sandbox.shell(
        "\(Self.stays); cd $C; ulimit -S -f 1; trap '' TERM; umask 077; nice -n 10 unshare -m $PROBE get d Integer"
      )
      let pid = sandbox.shell("cat \(sandbox.state)/prefsfs/*/lock").output
      // What the request has begun may end late on a busy machine; then it sleeps for 4 s at least.
      let idles = """
        wakeups() { cat /proc/\(pid)/task/*/status | awk '/voluntary/ {s += $2} END {print s}'; }
        for i in 1 2 3 4; do before=$(wakeups); sleep 4; [ "$(wakeups)" != "$before" ] || exit 0; done
        exit 1
        """
      #expect(sandbox.shell(idles).status == 0)
      #expect(
        sandbox.shell("grep 'Max file size' /proc/\(pid)/limits | awk '{print $4}'").output
          == "unlimited\n")
      #expect(sandbox.shell("readlink /proc/\(pid)/cwd").output == "/\n")
      #expect(sandbox.shell("awk '{print $19}' /proc/\(pid)/stat").output == "0\n")
      #expect(sandbox.shell("kill \(pid)").status == 0)
      sandbox.waitUntil("! grep -q 'State:.[RS]' /proc/$(echo \(pid))/status")
    }
  }

  @Test("an open file keeps its text when defaults removes its key")
  func removedElsewhere() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let script = """
        exec 5< $M/d/String 6< $M/d/Real; stat -L -c %s /dev/fd/5 > /dev/null
        defaults delete d String; defaults delete d Real
        for i in $(seq 200); do test -e $M/d/Real || break; sleep 0.01; done
        cat <&5; cat <&6; stat -L -c %h /dev/fd/5
        """
      #expect(sandbox.shell(script).output == "hello\n1.5\n0\n")
    }
  }

  @Test("watchers of the root get an event when defaults makes a domain")
  func newDomain() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("ls $M; cat $M/fresh/K")
      let watcher = try sandbox.watch(["."], in: sandbox.mountPoint)
      defer { kill(watcher.processIdentifier, SIGKILL) }
      sandbox.shell("defaults write fresh K 1")
      sandbox.waitUntil("grep -q 'CREATE,ISDIR ./fresh' $C/../events")
      #expect(sandbox.shell("cat $M/fresh/K").output == "1\n")
    }
  }

  @Test("a descriptor on another mount never reads a text cut at its old length")
  func notCut() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      let program = """
        import os, random, sys
        one, two = sys.argv[1] + '/d/String', sys.argv[2] + '/d/String'
        f = os.open(two, os.O_RDONLY)
        bad = 0
        for i in range(3000):
            text = b'%06d ' % i + b'x' * random.randrange(6000) + b'\\n'
            g = os.open(one, os.O_WRONLY | os.O_TRUNC); os.write(g, text); os.close(g)
            if os.pread(f, 8192, 0) != text: bad += 1
            if i % 3 == 0 and os.fstat(f).st_size != len(text): bad += 1
        print(bad)
        """
      let outcome = Program.run(
        "/usr/bin/python3", ["-c", program, sandbox.mountPoint, sandbox.secondMountPoint],
        environment: sandbox.environment)
      #expect(outcome.output == "0\n", "\(outcome)")
    }
  }

  @Test("chmod, touch and rename move ctime forward, and a truncation moves mtime at once")
  func changeTimes() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let script = """
        cd $M/d; n() { stat -c '%.9Z' Real; }; a=$(n); sleep 0.01; chmod 640 Real; b=$(n)
        sleep 0.01; touch -d 2001-01-01 Real; c=$(n); sleep 0.01; mv Real R2; mv R2 Real; d=$(n)
        [ $a \\< $b ] && [ $b \\< $c ] && [ $c \\< $d ] && echo moves
        m=$(stat -c '%.9Y' String); sleep 0.01; exec 5> String; [ $m \\< $(stat -c '%.9Y' String) ] && echo at once
        echo text >&5
        """
      #expect(sandbox.shell(script).output == "moves\nat once\n")
    }
  }

  @Test("ctime is the same in all mounts, is kept over mounts and owners, and never goes back")
  func keptChangeTimes() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let change = """
        n() { stat -c %.9Z $1/d/Real; }; touch -d 2001-01-01 $C/../new
        echo 7.5 > $M/d/Real; touch -d 2001-01-01 $M/d/Real; a=$(n $M); sleep 0.01
        echo 8.5 > $C/../new; touch -d 2001-01-01 $C/../new; cp -p $C/../new $M/d/Real; b=$(n $M)
        sleep 0.01; chmod 600 $M/d/Real; c=$(n $M); sleep 0.01; touch -d 2030-01-01 $M/d/Real
        sleep 0.01; touch -d 2001-01-01 $M/d/Real; d=$(n $M)
        [ $a \\< $b ] && [ $b \\< $c ] && [ $c \\< $d ] && [ ${d%.*} -lt 1893456000 ] && echo $d
        """
      let last = sandbox.shell(change).output
      #expect(last != "")
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      #expect(sandbox.shell("stat -c %.9Z $M2/d/Real").output == last)
      #expect(sandbox.shell("sleep 0.01; touch -d 2001-01-01 $M2/d/Real").status == 0)
      let moved = sandbox.shell("stat -c %.9Z $M2/d/Real").output
      #expect(moved > last && sandbox.shell("stat -c %.9Z $M/d/Real").output == moved)
      // The next owner has it from the journal, or from the file beside the list.
      for wait in ["", "sleep 1.5"] {
        sandbox.shell(wait)
        other.unmount()
        mount.unmount()
        sandbox.killOwner()
        let again = try Mount(sandbox)
        defer { again.unmount() }
        #expect(sandbox.shell("stat -c %.9Z $M/d/Real").output == moved)
      }
    }
  }

  @Test("umask= replaces the modes of files, so that allow_other lets others read")
  func masks() throws {
    try withMount(["-o", "allow_other,umask=022"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(
        sandbox.shell("stat -c %a $M $M/d $M/d/Integer $M/d/Forced").output
          == "755\n755\n644\n444\n")
      let nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups sh -c"
      sandbox.shell("chmod 755 $C/..")
      #expect(sandbox.shell("\(nobody) \"cat $M/d/Integer\"").output == "42\n")
      #expect(sandbox.shell("\(nobody) \"echo 5 > $M/d/Integer\"").status != 0)
    }
    try withMount(["-o", "ro,allow_other,umask=022"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("stat -c %a $M/d/Integer $M/d/Forced").output == "444\n444\n")
    }
  }

  @Test("a mount that began while nothing could be written takes changes once that has passed")
  func obstacle() throws {
    try withSandbox { sandbox in
      let script = """
        cd $C/..; for d in config state; do mount --bind $d $d; mount -o remount,bind,ro $d; done
        $PREFSFS $M; mkdir $M/d; echo $?
        for d in config state; do mount -o remount,bind,rw $d; done
        mkdir $M/d; echo 4 > $M/d/K; echo $?; cat $M/d/K; fusermount3 -u $M
        kill $(cat state/prefsfs/*/lock)
        """
      try script.write(toFile: sandbox.root + "/obstacle.sh", atomically: true, encoding: .utf8)
      let outcome = sandbox.shell("export C M PREFSFS; unshare -m bash $C/../obstacle.sh")
      #expect(outcome.output == "1\n0\n4\n", "\(outcome)")
      #expect(outcome.errors.contains("Read-only file system"), "\(outcome)")
    }
  }

  @Test("bad sources and options are refused, and options without effect are logged")
  func commandLine() throws {
    try withSandbox { sandbox in
      let statuses = sandbox.shell(
        """
        $PREFSFS $C/none $M; echo $?; touch $C/../file; $PREFSFS $C/../file $M; echo $?
        mkdir $C/../other; $PREFSFS $C/../other $M; $PREFSFS $M $M2; echo $?; fusermount3 -u $M
        $PREFSFS -o umask=9 $M; echo $?; (exec -a mount.prefsfs $PREFSFS none $M -f -o silent); echo $?
        """)
      #expect(statuses.output == "5\n5\n5\n2\n0\n")
      let odd = sandbox.root + "/a\\,dev,b"
      sandbox.shell("mkdir '\(odd)'")
      let mount = try Mount(sandbox, ["-o", "attr_timeout=1,kernel_cache,store=\(sandbox.config)"])
      #expect(mount.log.contains("ignored: -o attr_timeout,kernel_cache"))
      mount.unmount()
      sandbox.shell("$PREFSFS '\(odd)' $M")
      let line = sandbox.shell("grep \" $M \" /proc/self/mountinfo").output
      #expect(line.contains("nodev") && line.contains("b"), "\(line)")
      sandbox.shell("fusermount3 -u $M")
    }
  }
}
