import Foundation
import Support
import Testing

/// The command as a user meets it: how it goes to the background, how it ends, its exit statuses.
@Suite("The prefsfs program") struct ProgramTests {
  /// The driver of the mount at $M.
  private func driver(of sandbox: Sandbox) -> pid_t? {
    let status = sandbox.shell("$PREFSFS --status $M | jq .process").output
    return pid_t(status.dropLast())
  }

  private func waitForEnd(_ pid: pid_t) -> Bool {
    for _ in 0..<500 where kill(pid, 0) == 0 { usleep(10000) }
    return kill(pid, 0) != 0
  }

  @Test("the command returns when the mount is ready, and goes on in the background")
  func background() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let outcome = sandbox.shell("$PREFSFS $M && cat $M/d/Integer && echo 5 > $M/d/Integer")
      #expect(outcome.status == 0 && outcome.output == "42\n", "\(outcome.errors)")
      let pid = try #require(driver(of: sandbox))
      #expect(
        sandbox.shell("readlink /proc/\(pid)/cwd /proc/\(pid)/fd/0").output == "/\n/dev/null\n")
      #expect(sandbox.shell("fusermount3 -u $M").status == 0)
      #expect(waitForEnd(pid))
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer']") == "5")
    }
  }

  @Test("a signal ends a mount with everything saved", arguments: [SIGTERM, SIGINT, SIGHUP])
  func signals(_ signal: Int32) throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let mount = try Mount(sandbox)
      try MountedFiles(mount.path("")).put("d/Integer", "6")
      #expect(mount.end(with: signal) == 0)
      #expect(!MountTable.isMounted(sandbox.mountPoint))
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer']") == "6")
    }
  }

  @Test("a truncation just before the unmount is saved")
  func truncationAtEnd() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let mount = try Mount(sandbox)
      sandbox.shell(": > $M/d/String")
      mount.unmount()
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "repr(d['String'])") == "''")
    }
  }

  @Test("SIGTERM ends a mount that is written to all the time")
  func busyEnd() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let mount = try Mount(sandbox)
      let load = """
        cd $M/d && for i in $(seq 3000); do echo bad > Integer; cat Integer; echo $i > String; done >/dev/null 2>&1 & \
        sleep 0.4; kill -TERM \(mount.pid); for i in $(seq 100); do kill -0 \(mount.pid) 2>/dev/null || break; sleep 0.05; done
        kill $!; wait
        """
      sandbox.shell(load)
      #expect(kill(mount.pid, 0) != 0 || mount.end(with: 0) == 0)
      #expect(!MountTable.isMounted(sandbox.mountPoint))
    }
  }

  @Test("a mount over its own store is refused")
  func overOwnStore() throws {
    try withSandbox { sandbox in
      #expect(sandbox.shell("$PREFSFS $XDG_CONFIG_HOME").status == 5)
      #expect(sandbox.shell("$PREFSFS \(sandbox.root)").status == 5)
    }
  }

  @Test("a mount that a crash left behind is cleared by mounting again")
  func staleMount() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      // Once with the dead mount's root in the kernel's cache, once without.
      for look in ["ls $M; stat $M", "true"] {
        #expect(sandbox.shell("$PREFSFS $M; \(look)").status == 0)
        let pid = try #require(driver(of: sandbox))
        sandbox.shell("kill -STOP $(ps -o ppid= \(pid)); kill -9 \(pid) $(ps -o ppid= \(pid))")
        #expect(waitForEnd(pid))
        #expect(sandbox.shell("stat -f $M").status != 0)
        #expect(sandbox.shell("$PREFSFS $M && cat $M/d/Integer").output == "42\n")
        let next = try #require(driver(of: sandbox))
        #expect(sandbox.shell("fusermount3 -u $M").status == 0)
        #expect(!MountTable.isMounted(sandbox.mountPoint))
        #expect(waitForEnd(next))
      }
    }
  }

  @Test("a driver that finds its mount gone leaves the one that has got its device number")
  func reusedDevice() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let first = try Mount(sandbox)
      let device = try self.device(first)
      let driver = first.pid
      kill(driver, SIGSTOP)
      sandbox.shell("fusermount3 -u -z $M")
      // The kernel gives a new mount the lowest number that is free.
      var others: [Mount] = []
      defer { for other in others { other.unmount() } }
      for number in 0..<8 where try others.last.map(self.device) != device {
        let point = "\(sandbox.root)/other\(number)"
        sandbox.shell("mkdir -p \(point) \(sandbox.root)/lists")
        others.append(try Mount(sandbox, ["-o", "store=\(sandbox.root)/lists"], at: point))
      }
      let other = try #require(others.last)
      try #require(try self.device(other) == device)
      kill(driver, SIGCONT)
      first.unmount()
      #expect(MountTable.isMounted(String(other.path("").dropLast())))
      #expect(sandbox.shell("echo 1 > \(other.path("NSGlobalDomain/K"))").status == 0)
    }
  }

  private func device(_ mount: Mount) throws -> UInt {
    var status = stat()
    guard stat(mount.path(""), &status) == 0 else { throw POSIXError(.EIO) }
    return UInt(status.st_dev)
  }

  @Test("a mount that ends below another one leaves that")
  func below() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let lower = try Mount(sandbox)
      sandbox.shell("mkdir \(sandbox.root)/lists")
      let device = try self.device(lower)
      let upper = try Mount(sandbox, ["-o", "nonempty,store=\(sandbox.root)/lists"])
      defer { upper.unmount() }
      let end = Date().addingTimeInterval(10)
      while try self.device(upper) == device, Date() < end { usleep(2000) }
      _ = lower.end(with: SIGTERM)
      #expect(lower.log.contains("still mounted"))
      #expect(
        sandbox.shell("echo 1 > $M/NSGlobalDomain/K; cat $M/NSGlobalDomain/K").output == "1\n")
    }
  }

  @Test("two dead mounts on one point are cleared by one try, and a third is named, with status 5")
  func twoDead() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let outcome = sandbox.shell(
        """
        exec 2>&1; $PREFSFS $M; $PREFSFS $M; echo "[$?]"; $PREFSFS -o nonempty $M; echo "[$?]"
        for i in 1 2; do
          for p in $(pgrep -x prefs-guard) $(pgrep -x prefsfs); do
            tr '\\0' '\\n' < /proc/$p/cmdline | grep -qFx "$M" && kill -STOP $p && echo $p >> $C/../dead
          done
        done 2> /dev/null; kill -9 $(sort -u $C/../dead); sleep 0.3
        grep -c " $M " /proc/mounts; $PREFSFS $M; echo "[$?]"
        grep -c " $M " /proc/mounts; cat $M/d/Integer; fusermount3 -u $M
        mkdir $C/../full; touch $C/../full/file; $PREFSFS $C/../full; ls $C/../full/d | grep Integer
        fusermount3 -u $C/../full
        """)
      #expect(
        outcome.output.replacing(sandbox.root, with: "R").replacing("R/config/..", with: "R") == """
          prefsfs: R/mount: prefsfs is already mounted there; fusermount3 -u R/mount ends that, \
          and -o nonempty mounts over it
          [5]
          [0]
          2
          [0]
          1
          42
          prefsfs: R/full: the files that are there are hidden until the mount ends
          Integer

          """, "\(outcome)")
    }
  }

  @Test("a user who may not mount is told why")
  func obstacles() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        cd $C/..; chmod 755 .; mkdir -p home57/m; chown -R 54327 home57
        mknod -m 666 open c 10 229; mknod -m 600 closed c 10 229
        cat > try <<'END'
        mount --bind $1 /dev/fuse
        exec setpriv --reuid 54327 --regid 54327 --clear-groups --no-new-privs env -u XDG_CONFIG_HOME \
          -u XDG_STATE_HOME -u XDG_RUNTIME_DIR HOME=$PWD/home57 $PREFSFS home57/m
        END
        for device in open closed; do unshare -m bash try $device 2>&1; echo "[$?]"; done
        setpriv --reuid 54327 --clear-groups pkill -x prefsd
        """)
      #expect(outcome.output.contains("could not be mounted: no program that this process starts"))
      #expect(outcome.output.contains("could not be mounted: /dev/fuse cannot be opened"))
      #expect(outcome.output.hasSuffix("[1]\n"))
    }
  }

  @Test("each kind of failure has its exit status")
  func statuses() throws {
    try withSandbox { sandbox in
      #expect(sandbox.shell("$PREFSFS -h").status == 0)
      #expect(sandbox.shell("$PREFSFS -V").status == 0)
      let unknown = sandbox.shell("$PREFSFS $M -o nonsense")
      #expect(unknown.status == 2 && unknown.errors.contains("nonsense"))
      #expect(sandbox.shell("$PREFSFS").status == 2)
      #expect(sandbox.shell("$PREFSFS $M/none").status == 5)
      #expect(sandbox.shell("XDG_STATE_HOME=/dev/null $PREFSFS $M").status == 4)
      #expect(sandbox.shell("$PREFSFS $M").status == 0)
      // A mount does not replace an owner that is stopped.
      let stopped = try #require(sandbox.owner)
      kill(stopped, SIGSTOP)
      sandbox.shell("mkdir -p \(sandbox.root)/second")
      let second = sandbox.shell("$PREFSFS \(sandbox.root)/second")
      kill(stopped, SIGCONT)
      #expect(second.status == 3 && second.errors.contains("\(stopped)"), "\(second.errors)")
      sandbox.shell("fusermount3 -u $M")
    }
  }

  @Test("-o ro refuses every change with EROFS and changes no list")
  func readOnly() throws {
    try withMount(["-o", "ro"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(""))
      let lists = "find $C -type f | sort | xargs sha1sum"
      let before = sandbox.shell(lists).output
      #expect(try files.get("d/Integer") == "42\n")
      expectRefused(EROFS) { try files.put("d/Integer", "1") }
      expectRefused(EROFS) { try files.put("d/New", "1") }
      expectRefused(EROFS) { try files.unlink("d/Integer") }
      expectRefused(EROFS) { try files.makeDirectory("new") }
      expectRefused(EROFS) { try files.rename("d/Integer", "d/Other", flags: 0) }
      mount.unmount()
      sandbox.killOwner(with: SIGTERM)
      #expect(sandbox.shell(lists).output == before)
    }
  }

  @Test("-o store=, format=, new= and list= take effect")
  func options() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.makeList(
        sandbox.root + "/home/x.plist",
        "dict(D=datetime.datetime(2026,1,1), L=[datetime.datetime(2026,1,1)])")
      let mount = try Mount(
        sandbox, ["-o", "store=\(sandbox.root)/home,format=json,new=string,list=all"])
      defer { mount.unmount() }
      let files = MountedFiles(mount.path(""))
      #expect(try files.get("x/L") == "[\n  \"2026-01-01T00:00:00Z\"\n]\n")
      try files.put("x/L", "[\"2027-01-01T00:00:00Z\", \"text\"]\n")
      try files.put("x/New", "13")
      #expect(try files.type("x/New") == "string")
      try files.put("NSGlobalDomain/Everywhere", "1")
      #expect(try files.names("x").contains("Everywhere"))
      usleep(1_300_000)
      #expect(
        sandbox.evaluate(sandbox.root + "/home/x.plist", "d['L'][0].year, d['L'][1]") == "2027 text"
      )
    }
  }
}
