import Foundation
import Support
import Testing

/// Programs that use a store as clients: which process owns it for them, and what they can rely on.
@Suite("Clients") struct ClientTests {
  private func owner(of sandbox: Sandbox) -> pid_t? {
    pid_t(sandbox.shell("cat \(sandbox.state)/prefsfs/*/lock").output)
  }

  @Test("mounts that are unmounted right after each other leave nobody that a next one waits for")
  func unmountedTogether() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      for _ in 0..<3 {
        let first = try Mount(sandbox)
        let second = try Mount(sandbox, at: sandbox.secondMountPoint)
        // While a mount announces the change to watchers, it is busy for a moment.
        sandbox.shell(
          "echo 43 > $M/d/Integer; fusermount3 -u $M; "
            + "until fusermount3 -u $M2 2> /dev/null; do sleep 0.001; done")
        for mount in [first, second] {
          sandbox.waitUntil("test ! -e /proc/\(mount.guardian)")
          mount.unmount()
        }
        #expect(sandbox.shell("cat $XDG_STATE_HOME/prefsfs/*/mounts").output == "")
      }
    }
  }

  @Test("a client starts prefsd if there is no owner, and prefsd saves its changes when it ends")
  func started() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K='old')")
      #expect(sandbox.shell("$PROBE get d K").output == "old\n")
      #expect(sandbox.shell("$PROBE set d K new && $PROBE get d K").output == "new\n")
      let pid = try #require(owner(of: sandbox))
      #expect(sandbox.shell("cat /proc/\(pid)/comm").output == "prefsd\n")
      kill(pid, SIGTERM)
      sandbox.waitUntil("! kill -0 \(pid) 2> /dev/null")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['K']") == "new")
    }
  }

  @Test("a change is not sent to an owner of other directories with the same names")
  func otherDirectories() throws {
    try withSandbox { sandbox in
      // In the namespace, something is mounted over the home; the sockets have the same names.
      let outcome = sandbox.shell(
        """
        defaults write d K outer; export OWN=$C
        unshare -m sh -c 'mount -t tmpfs none $OWN && mount -t tmpfs none $XDG_STATE_HOME &&
          defaults write d K inner && defaults read d K'
        defaults read d K
        """)
      #expect(outcome.output == "inner\nouter\n", "\(outcome)")
      sandbox.shell("pkill -f \"prefsd.*$C\"")
    }
  }

  @Test("prefsd ends after a time without clients; its help and exit statuses")
  func idle() throws {
    try withSandbox { sandbox in
      #expect(sandbox.shell("$PREFSD --idle 0.3").status == 0)
      let pid = try #require(owner(of: sandbox))
      #expect(sandbox.shell("$PREFSD").status == 0, "another process owns the store already")
      #expect(owner(of: sandbox) == pid)
      sandbox.waitUntil("! kill -0 \(pid) 2> /dev/null")
      #expect(sandbox.shell("$PREFSD --help").output.hasPrefix("usage: prefsd"))
      #expect(sandbox.shell("$PREFSD --nonsense").status == 2)
      #expect(sandbox.shell("XDG_STATE_HOME=/dev/null $PREFSD").status == 1)
    }
  }

  @Test("prefsd ends soon where that costs nothing; it stays for a list that takes long to read")
  func shortIdle() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/small.plist", "dict(K=1)")
      sandbox.makeList(
        sandbox.config + "/large.plist", "{f'K{i}': [i] for i in range(200000)}", format: "XML")
      let seconds = { (command: String) -> Double in
        let start = Date()
        sandbox.shell(
          """
          defaults \(command); pid=$(cat \(sandbox.state)/prefsfs/*/lock)
          for i in $(seq 200); do kill -0 $pid 2> /dev/null || break; sleep 0.1; done; kill $pid
          """)
        return Date().timeIntervalSince(start)
      }
      // On a busy machine a short list may take long.
      #expect((0..<3).contains { _ in seconds("read small K") < 8 })
      // For 10 s a stale copy of the list could undo the change.
      #expect((2..<5).contains { (8..<18).contains(seconds("write small K \($0)")) })
      #expect(sandbox.evaluate(sandbox.config + "/small.plist", "d['K'] in '234'") == "True")
      sandbox.shell("defaults read large K1")
      let pid = try #require(owner(of: sandbox))
      #expect(sandbox.shell("sleep 4; kill \(pid)").status == 0)
    }
  }

  @Test("a home that is a mount of its own can be unmounted soon after the last client")
  func homeMount() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        H=$(realpath $C/..)/own; mkdir $H; mount -t tmpfs none $H; cd /
        own() { env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=$H "$@"; }
        own defaults write d K 1
        for i in $(seq 80); do umount $H 2> /dev/null && break; sleep 0.1; done
        mountpoint -q $H && echo busy; umount -l $H 2> /dev/null; echo done
        """)
      #expect(outcome.output == "done\n", "\(outcome)")
    }
  }

  @Test("a line in the journal has its severity, and not the program's name once more")
  func journal() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        exec 2> $C/../log; JOURNAL_STREAM=$(stat -c %d:%i $C/../log) $PREFSD --nonsense
        JOURNAL_STREAM=1:1 $PREFSD --nonsense; cat $C/../log
        """)
      let text = "wrong arguments; see prefsd --help\n"
      #expect(outcome.output == "<3>\(text)prefsd: \(text)", "\(outcome)")
    }
  }

  @Test("a client and a mount read what the other has set, through one prefsd")
  func besideMount() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(sandbox.shell("$PROBE get d Integer").output == "42\n")
      #expect(
        sandbox.shell("$PROBE set d String changed sync; cat $M/d/String").output == "changed\n")
      #expect(sandbox.shell("echo 43 > $M/d/Integer; $PROBE get d Integer").output == "43\n")
      let process = try #require(owner(of: sandbox))
      #expect(sandbox.shell("cat /proc/\(process)/comm").output == "prefsd\n")
    }
  }

  @Test(
    "four processes that set 100 keys each lose none of the 400",
    arguments: ["fast", "sync"])
  func fourProcesses(_ way: String) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        "for n in 0 1 2 3; do $PROBE keys d $((n * 100)) 100 \(way) > $C/../out$n & done; wait; "
          + "cat $C/../out? | wc -l")
      #expect(outcome.output == "400\n", "\(outcome)")
      #expect(
        sandbox.shell("for k in 0 99 250 399; do $PROBE get d Key$k; done").output
          == "0\n99\n250\n399\n")
      let pid = try #require(owner(of: sandbox))
      kill(pid, SIGKILL)
      #expect(sandbox.shell("$PROBE get d Key399").output == "399\n")
      let next = try #require(owner(of: sandbox))
      #expect(next != pid)
      kill(next, SIGTERM)
      sandbox.waitUntil("! kill -0 \(next) 2> /dev/null")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "len(d)") == "400")
    }
  }

  @Test("a client goes on over kill -9 of prefsd, and no acknowledged value is lost")
  func killed() throws {
    try withSandbox { sandbox in
      let loop = try sandbox.start("$PROBE count d K 2 > $C/../out 2> $C/../errors")
      for _ in 0..<5 {
        usleep(300_000)
        if let pid = owner(of: sandbox), sandbox.shell("cat /proc/\(pid)/comm").output == "prefsd\n"
        {
          kill(pid, SIGKILL)
        }
      }
      loop.waitUntilExit()
      #expect(loop.terminationStatus == 0, "\(sandbox.shell("cat $C/../errors"))")
      let last = sandbox.shell("tail -1 $C/../out").output
      #expect(sandbox.shell("$PROBE get d K").output == last)
    }
  }

  @Test("what a program has set before it ended, the next program reads")
  func lastWords() throws {
    try withSandbox { sandbox in
      for index in 0..<10 {
        #expect(sandbox.shell("$PROBE set d K v\(index)").status == 0)
        #expect(sandbox.shell("$PROBE get d K").output == "v\(index)\n")
      }
    }
  }

  @Test("the descriptors of a mount, its lock among them, are closed in its children")
  func inheritance() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      // In the background it has no descriptor of its parent either.
      #expect(sandbox.shell("$PREFSFS $M; $PROBE get d Integer").output == "42\n")
      let pid = try #require(owner(of: sandbox))
      let open = sandbox.shell(
        "for f in /proc/\(pid)/fdinfo/*; do n=${f##*/}; [ $n -le 2 ] || "
          + "awk -v n=$n '/flags/ && substr($2, length($2) - 6, 1) !~ /[2367]/ { print n }' $f; done"
      )
      #expect(open.output == "", "without O_CLOEXEC: \(open.output)")
      #expect(sandbox.shell("fusermount3 -u $M").status == 0)
    }
  }

  @Test("without XDG_RUNTIME_DIR the socket is in the state directory")
  func withoutRuntimeDirectory() throws {
    try withSandbox { sandbox in
      let run = "unset XDG_RUNTIME_DIR; "
      #expect(sandbox.shell(run + "$PROBE set d K 5 && $PROBE get d K").output == "5\n")
      #expect(
        sandbox.shell("stat -c %a $C/../state/prefsfs/*/run; ls $C/../state/prefsfs/*/run | wc -l")
          .output == "700\n1\n")
    }
  }

  @Test("the path of the socket may be longer than a socket address holds")
  func longPath() throws {
    try withSandbox { sandbox in
      let run = "export XDG_RUNTIME_DIR=$C/../\(String(repeating: "long", count: 40)); "
      #expect(sandbox.shell(run + "$PROBE set d K 5 && $PROBE get d K").output == "5\n")
      #expect(sandbox.shell(run + "ls $XDG_RUNTIME_DIR/prefsfs | wc -l").output == "1\n")
    }
  }

  @Test("root with another user's variables leaves no files in that user's directories")
  func otherUsersVariables() throws {
    try withSandbox { sandbox in
      let run = "chown 65534 $C/../run2 $C/../state; "
      sandbox.shell("mkdir $C/../run2")
      let outcome = sandbox.shell(
        run + "export XDG_RUNTIME_DIR=$C/../run2; $PROBE set d K 5 && $PROBE get d K")
      #expect(outcome.output == "5\n", "\(outcome)")
      #expect(sandbox.shell("find $C/../run2 $C/../state -user 0").output == "")
      sandbox.shell("for p in $(cat $HOME/.local/state/prefsfs/*/lock); do kill $p; done")
    }
  }

  @Test("an account that is not in passwd(5) is looked up by the system's getent, not by PATH")
  func getent() throws {
    try withSandbox { sandbox in
      let calls = sandbox.shell(
        """
        cd $C/..; chmod 755 .; mkdir bin; printf '#!/bin/sh\ntouch ran\n' > bin/getent
        chmod 755 bin/getent; setpriv --reuid 54321 --regid 54321 --clear-groups \\
          env PATH=$PWD/bin:$PATH strace -f -qq -e trace=execve $PROBE get d Integer 2>&1
        """)
      #expect(calls.output.contains("execve(\"/usr/bin/getent\""), "\(calls.output)")
      #expect(!calls.output.contains("\(sandbox.root)/bin/getent"), "\(calls.output)")
    }
  }

  @Test("a client that observes is told what others change")
  func watch() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let watcher = try sandbox.start("$PROBE watch d 2 > $C/../changes")
      sandbox.waitUntil("grep -q watching $C/../changes")
      usleep(100_000)
      sandbox.shell(
        "echo 43 > $M/d/Integer; echo 43 > $M/d/Integer; rm $M/d/String; echo x > $M/d/New")
      watcher.waitUntilExit()
      let lines = sandbox.shell("sort $C/../changes | uniq").output
      for line in ["changed Integer", "removed String", "created New"] {
        #expect(lines.contains(line + "\n"), "\(lines)")
      }
    }
  }

  @Test("a read of an unchanged value makes no system call")
  func noSystemCall() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      // strace makes a file for each thread; the thread that reads calls getppid before and after.
      let outcome = sandbox.shell(
        "strace -ff -o $C/../calls $PROBE read d Integer 10000; "
          + "awk '/getppid/ { on = !on; next } on' $(grep -l getppid $C/../calls.*)")
      #expect(outcome.output == "42\n", "\(outcome)")
    }
  }

  @Test("relative directories in XDG variables are ignored")
  func relative() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        mkdir $C/../here; cd $C/../here; export XDG_CONFIG_HOME=cfg XDG_STATE_HOME=./st
        defaults write d K 1; defaults synchronize; ls -A; test -e $HOME/.config/d.plist && echo there
        kill $(cat $HOME/.local/state/prefsfs/*/lock)
        """)
      #expect(outcome.output == "there\n" && outcome.status == 0, "\(outcome)")
    }
  }

  @Test("what root makes in a user's directory belongs to the user")
  func ofUser() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        mkdir $C/../user; cd $C/../user; [ $(id -u) != 0 ] || chown 1001:1001 .
        export XDG_CONFIG_HOME=$PWD/deep/config; defaults write d K 1; defaults synchronize
        ls deep/config; find . ! -user $(stat -c %u .)
        """)
      #expect(outcome.output == "d.plist\n" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("random kills of owners, clients and drivers under load lose nothing acknowledged")
  func faults() throws {
    try withSandbox { sandbox in
      let rounds = ProcessInfo.processInfo.environment["PREFSFS_FAULT_ROUNDS"] ?? "30"
      let programs = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
      let outcome = sandbox.shell(
        "timeout 250 /usr/bin/python3 \(Program.suite("faults.py")) \(programs) \(rounds)")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }
}
