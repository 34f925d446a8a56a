import Foundation
import Support
import Testing

/// What mounts and programs do with the one process that owns their store, `prefsd`.
@Suite("The owner of a store") struct OwnerTests {
  /// The note which says who uses the store's state directory.
  private static let note = "$XDG_STATE_HOME/prefsfs/*/owner"

  @Test("a mount that only reads starts an owner like any other: it saves, and keeps the history")
  func readOnly() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let crashed = try Mount(sandbox, ["-o", "writeback=3600"])
      sandbox.shell("echo 41 > $M/d/Integer")
      crashed.crash()
      let reader = try Mount(sandbox, ["-o", "ro"])
      defer { reader.unmount() }
      let before = try #require(sandbox.owner)
      let outcome = sandbox.shell(
        "cat $M/d/Integer; defaults read d Integer; echo 1 > $M/d/Integer; defaults synchronize d")
      #expect(outcome.output == "41\n41\n" && outcome.errors.contains("Read-only"), "\(outcome)")
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer']") == "41")
      #expect(sandbox.shell("cat $M/.prefs/at/1/d/Integer").output == "41\n")
      #expect(sandbox.shell("defaults history d Integer").output.contains("42 -> 41"))
      let writer = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { writer.unmount() }
      #expect(sandbox.shell("echo 43 > $M2/d/Integer; cat $M2/d/Integer").output == "43\n")
      #expect(sandbox.owner == before)
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 43 ]")
      sandbox.shell("defaults write d Integer -int 44")
      #expect(sandbox.shell("cat $M/d/Integer").output == "44\n")
    }
  }

  @Test("a state directory of another machine is left alone, and one beside it is used")
  func machines() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let here = try Mount(sandbox, ["-o", "writeback=3600"])
      sandbox.shell("echo 1 > $M/d/Integer")
      here.crash()
      let journal = sandbox.shell("sha1sum $XDG_STATE_HOME/prefsfs/*/journal.*").output
      // The boot, the machine and its name are lines of the note.
      sandbox.shell(
        "cp \(Self.note) $C/../note; sed -i '1s/.*/other-boot/; 2s/.*/other/' \(Self.note)")
      let there = try Mount(sandbox)
      #expect(sandbox.shell("cat $M/d/Integer; echo 2 > $M/d/Integer").output == "42\n")
      there.unmount()
      sandbox.killOwner(with: SIGTERM)
      #expect(sandbox.shell("ls $XDG_STATE_HOME/prefsfs | wc -l").output == "2\n")
      #expect(sandbox.shell("sha1sum $XDG_STATE_HOME/prefsfs/*[^.]?/journal.*").output == journal)
      // The first machine has been started again since: the directory is its own.
      sandbox.shell(
        "rm -r $XDG_STATE_HOME/prefsfs/*.2; sed '1s/.*/earlier-boot/' $C/../note > $C/../n; mv $C/../n $(echo \(Self.note))"
      )
      let again = try Mount(sandbox)
      defer { again.unmount() }
      #expect(sandbox.shell("cat $M/d/Integer").output == "1\n", "the journal is replayed")
      #expect(sandbox.shell("ls $XDG_STATE_HOME/prefsfs | wc -l").output == "1\n")
    }
  }

  @Test("a home that moves to another machine takes its history along, and undo works there")
  func move() throws {
    try withSandbox { sandbox in
      let there = sandbox.shell(
        "defaults write d K 1; defaults write d K 2; defaults -currentHost write d H 7; defaults history d"
      )
      #expect(there.output.contains("K: 1 -> 2"), "\(there)")
      sandbox.killOwner(with: SIGTERM)
      sandbox.shell("sed -i '1s/.*/other-boot/; 2s/.*/other/' \(Self.note)")
      let here = sandbox.shell(
        """
        defaults history d K --json | jq -r '"\\(.number) \\(.changes[0].after)"'
        defaults read --at 1 d K; defaults undo 2 > /dev/null; defaults read d K
        defaults history d --json | jq .number | tail -1; ls $XDG_STATE_HOME/prefsfs | wc -l
        """)
      #expect(here.output == "1 1\n2 2\n1\n1\n4\n2\n", "\(here)")
    }
  }

  @Test("a directory that a running process uses under another device is left alone")
  func passedThrough() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let here = try Mount(sandbox, ["-o", "writeback=3600"])
      defer { here.unmount() }
      sandbox.shell("echo 1 > $M/d/Integer; sed -i '4s/.*/77/' \(Self.note)")
      // As through a file system whose locks do not reach the first owner, and another runtime
      // directory.
      let elsewhere = "XDG_RUNTIME_DIR=$C/../run2 defaults"
      sandbox.shell("mkdir -m 700 $C/../run2")
      #expect(sandbox.shell("\(elsewhere) read d Integer").output == "42\n")
      #expect(sandbox.shell("ls -d $XDG_STATE_HOME/prefsfs/*.2 | wc -l").output == "1\n")
      sandbox.shell("\(elsewhere) write d Other 5; \(elsewhere) synchronize d")
      sandbox.waitUntil("[ \"$(cat $M/d/Other)\" = 5 ]")
      #expect(sandbox.shell("cat $M/d/Integer").output == "1\n")
    }
  }

  @Test("an owner of a container with the same home is found in the state directory")
  func container() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let owner = sandbox.owner
      let outcome = sandbox.shell(
        """
        rm $XDG_STATE_HOME/prefsfs/*/socket; mkdir -m 700 $C/../run2; export XDG_RUNTIME_DIR=$C/../run2
        defaults write d Integer -int 7; cat $M/d/Integer
        """)
      #expect(outcome.output == "7\n", "\(outcome)")
      #expect(sandbox.owner == owner)
    }
  }

  @Test("an owner over whose directories something is mounted begins anew there")
  func mountedOver() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("echo 1 > $M/d/Integer; defaults synchronize d")
      sandbox.shell("mount -t tmpfs none \(sandbox.state) && mount -t tmpfs none $C")
      defer { sandbox.shell("umount -l \(sandbox.state) $C") }
      sandbox.waitUntil("ls \(sandbox.state)/prefsfs/*/lock")
      #expect(sandbox.shell("echo 9 > $M/d/New && cat $M/d/New").output == "9\n")
      #expect(sandbox.shell("defaults read d New").output == "9\n")
      sandbox.waitUntil("grep -aq New $C/d.plist")
    }
  }

  @Test("with few descriptors a mount works, and an owner refuses clients before it has none left")
  func descriptors() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let outcome = sandbox.shell(
        """
        ulimit -n 48; $PREFSFS $M && echo 5 > $M/d/Integer
        kill -9 $(ps -o pid= --ppid $(pgrep -P 1 -f "prefsfs $M")); cat $M/d/Integer
        for i in $(seq 50); do $PROBE watch d 4 > /dev/null 2>> $C/../refused & done; sleep 1
        echo 6 > $M/d/Integer; cat $M/d/Integer; ls $M; wait; fusermount3 -u $M
        """)
      #expect(outcome.output.hasPrefix("5\n6\n"), "\(outcome)")
      #expect(sandbox.shell("cat $C/../refused").output.contains("limit of open files"))
    }
  }

  @Test("with too few descriptors for clients there is no owner, and it says why")
  func noDescriptors() throws {
    try withSandbox { sandbox in
      for limit in [14, 20, 31] {
        let outcome = sandbox.shell(
          "ulimit -n \(limit); timeout -s KILL 20 $PREFSD; echo $?")
        #expect(outcome.output == "1\n", "\(limit): \(outcome)")
        #expect(outcome.errors.contains("prefsd needs 32 open files"), "\(limit): \(outcome)")
      }
    }
  }

  @Test("a driver has a successor under hard limits of address space and file size, too")
  func limits() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let outcome = sandbox.shell(
        """
        ulimit -H -v 3000000; ulimit -H -f 1000000; $PREFSFS $M && echo 5 > $M/d/Integer
        echo scratch > $M/d/x.tmp; exec 5< $M/d/x.tmp
        kill -9 $(ps -o pid= --ppid $(pgrep -P 1 -f "prefsfs $M"))
        cat $M/d/Integer /dev/fd/5; exec 5<&-; fusermount3 -u $M
        """)
      #expect(outcome.output == "5\nscratch\n", "\(outcome)")
    }
  }

  @Test("why there is no owner is said in its own words, before anything is mounted")
  func words() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("XDG_STATE_HOME=/dev/null $PREFSFS $M; echo $?; mountpoint -q $M")
      #expect(outcome.output == "4\n" && outcome.status != 0)
      #expect(
        outcome.errors.contains("prefsd cannot serve") && outcome.errors.contains("/dev/null"))
      for verb in ["write d K 1", "read d", "domains", "explain d K", "suites d", "watch d"] {
        // A verb that asks for each place, and starts prefsd each time, takes minutes.
        let other = sandbox.shell("XDG_STATE_HOME=/dev/null timeout -s KILL 15 defaults \(verb)")
        #expect(other.errors.contains("/dev/null") && other.status == 1, "\(verb): \(other)")
      }
    }
  }

  @Test("a list whose file system hangs after it was read holds up its own domain alone")
  func hungAfterReading() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let other = try Mount(
        sandbox, ["-o", "store=\(sandbox.root)/home"], at: sandbox.secondMountPoint)
      defer {
        kill(other.pid, SIGCONT)
        other.unmount()
      }
      // The list of the domain `hung` is a file in the other mount.
      sandbox.shell(
        "mkdir $M2/x; echo '{\"K\": 1}' > $M2/x/List; ln -s $M2/x/List $C/hung.plist")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      #expect(sandbox.shell("cat $M/hung/K").output == "1\n")
      kill(other.pid, SIGSTOP)
      let write = try sandbox.start("echo 2 2> $C/../error > $M/hung/K; echo $? > $C/../status")
      let start = Date()
      let outcome = sandbox.shell(
        "sleep 0.3; echo 5 > $M/d/Integer; cat $M/d/Integer; ls $M/d | wc -l")
      #expect(outcome.output.hasPrefix("5\n"), "\(outcome)")
      #expect(Date().timeIntervalSince(start) < 3)
      write.waitUntilExit()
      #expect(Date().timeIntervalSince(start) < 12)
      #expect(sandbox.shell("cat $C/../status").output == "1\n")
      // What gave up is not waited for by the owner itself.
      let later = sandbox.shell(
        "timeout 3 sh -c 'echo 6 > $M/d/Integer; defaults write new K 1'; cat $M/d/Integer")
      #expect(later.output == "6\n", "\(later)")
    }
  }

  @Test("a mount that only reads shows a change of another program at once")
  func readerHandsOver() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      for value in 10..<16 {
        let mount = try Mount(sandbox, ["-o", "ro"])
        let outcome = sandbox.shell(
          "cat $M/d/Integer > $C/../old; defaults write d Integer \(value); cat $M/d/Integer")
        #expect(outcome.output == "\(value)\n", "\(outcome)")
        mount.unmount()
        sandbox.killOwner(with: SIGTERM)
      }
    }
  }

  @Test("memory of values that were replaced is given back, by the owner and by mounts")
  func memory() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let owner = try #require(sandbox.owner)
      func kilobytes(_ process: pid_t) -> Int {
        let fields = "'/^RssAnon|^RssShmem/ {s += $2} END {print s}'"
        let text = sandbox.shell("awk \(fields) /proc/\(process)/status").output
        return Int(text.dropLast()) ?? .max
      }
      sandbox.shell(
        "head -c 1000000 /dev/urandom | base64 -w 0 > $C/../text; cp $C/../text $M/d/Long")
      let script =
        "for i in $(seq 45); do cp $C/../text $M/d/Long; done; cp $C/../text $M/d/L2; rm $M/d/L2"
      #expect(sandbox.shell(script).status == 0)
      // 62 MB were written.
      sandbox.waitUntil(
        "sleep 1; [ $(cat \(sandbox.state)/prefsfs/*/journal.* | wc -c) -lt 40000000 ]")
      for _ in 0..<200 where kilobytes(owner) > 60_000 || kilobytes(mount.pid) > 60_000 {
        usleep(50_000)
      }
      #expect(kilobytes(owner) < 60_000)
      #expect(kilobytes(mount.pid) < 60_000)
    }
  }
}
