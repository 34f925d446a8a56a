import Foundation
import Support
import Testing

/// Lists that other programs change while they are mounted, and the inotify events that watchers
/// then get.
@Suite("Outside edits on a mount") struct OutsideTests {
  /// Runs Python code that changes `d`, the dictionary of the list d.plist, and writes the list
  /// back: by a rename, or in place, as Foundation does it.
  private func edit(_ sandbox: Sandbox, _ python: String, inPlace: Bool = false) {
    let write =
      inPlace
      ? "f = open(p, 'wb'); plistlib.dump(d, f); f.close()"
      : "f = open(p + '.new', 'wb'); plistlib.dump(d, f); f.close(); os.rename(p + '.new', p)"
    let outcome = sandbox.shell(
      "/usr/bin/python3 -c \"import plistlib, os; p = '\(sandbox.config)/d.plist'; "
        + "d = plistlib.load(open(p, 'rb')); \(python); \(write)\"")
    #expect(outcome.status == 0, "\(outcome.errors)")
  }

  /// Runs the command until it prints the text, at most 60 times with 50 ms in between; then the
  /// test fails.
  private func eventually(_ sandbox: Sandbox, _ command: String, _ text: String) {
    var output = ""
    for _ in 0..<60 {
      output = sandbox.shell(command).output
      if output == text { return }
      usleep(50000)
    }
    Issue.record("\(command) printed \(output), not \(text)")
  }

  @Test("a list that link(2) names, one behind two links, and one that is a pipe now are seen")
  func names() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let program = """
        import ctypes, os, sys
        f = os.open(os.path.dirname(sys.argv[1]), os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(f, b'{a = 1;}')
        name = f'/proc/self/fd/{f}'.encode()
        sys.exit(ctypes.CDLL(None).linkat(-100, name, -100, sys.argv[1].encode(), 0x400))
        """
      try program.write(toFile: sandbox.root + "/link.py", atomically: true, encoding: .utf8)
      sandbox.shell(
        """
        cd $C/..; mkdir g1 g2; echo '{v = one;}' > g1/l.plist; echo '{v = two;}' > g2/l.plist
        ln -s g1 current; ln -s $PWD/current/l.plist $C/l.plist; defaults write p a 1
        python3 link.py $C/t.plist
        """)
      eventually(sandbox, "cat $M/l/v $M/p/a $M/t/a", "one\n1\n1\n")
      sandbox.shell(
        """
        cd $C/..; ln -s g2 new; mv -T new current; defaults read p > /dev/null; sleep 1.5
        rm $C/p.plist; mkfifo $C/p.plist
        """)
      eventually(sandbox, "cat $M/l/v", "two\n")
      eventually(sandbox, "cat $M/p/a 2>&1 | cut -d : -f 3", " Input/output error\n")
      sandbox.shell("rm $C/p.plist")
      eventually(sandbox, "cat $M/p/a 2>&1 | cut -d : -f 3", " No such file or directory\n")
      sandbox.shell("mkfifo $C/p.plist")
      eventually(sandbox, "cat $M/p/a 2>&1 | cut -d : -f 3", " Input/output error\n")
      #expect(sandbox.shell("ls $M").output == "NSGlobalDomain\nl\np\nt\n")
    }
  }

  @Test("two lists that link to one file see it change, also when it becomes a link itself")
  func shared() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell(
        """
        cd $C/..; mkdir dot; echo '{k = one;}' > dot/c.plist; ln -s $PWD/dot/c.plist $C/a.plist
        ln -s $PWD/dot/c.plist $C/b.plist
        """)
      eventually(sandbox, "cat $M/a/k $M/b/k", "one\none\n")
      sandbox.shell("echo '{k = two;}' > $C/../dot/c.plist")
      eventually(sandbox, "cat $M/a/k $M/b/k", "two\ntwo\n")
      sandbox.shell("echo three > $M/b/k")
      eventually(sandbox, "cat $M/a/k $M/b/k", "three\nthree\n")
      sandbox.shell("cd $C/../dot; mkdir new; mv c.plist new; ln -s $PWD/new/c.plist c.plist")
      sleep(1)
      sandbox.shell("echo '{k = four;}' > $C/../dot/new/c.plist")
      eventually(sandbox, "cat $M/a/k $M/b/k", "four\nfour\n")
    }
  }

  @Test("a link that leads nowhere is no list until its target comes, for a new prefsd too")
  func dangling() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell(
        """
        cd $C/..; defaults write d k v; defaults synchronize; ln -s $PWD/none/u.plist $C/u.plist
        echo 'x{' > $C/w.plist; ls -l $M; sleep 1.1; ln -sf $PWD/none/w.plist $C/w.plist
        ln -s self.plist $C/self.plist
        """)
      sandbox.killOwner()
      let names = "NSGlobalDomain\nd\nself\n"
      eventually(sandbox, "ls -l $M > /dev/null && ls $M && defaults domains", names + "d, self\n")
      sandbox.shell("mkdir $C/../none; echo '{k = here;}' > $C/../none/u.plist")
      eventually(sandbox, "cat $M/u/k && ls $M", "here\nNSGlobalDomain\nd\nself\nu\n")
    }
  }

  @Test("a directory above that of the lists, or of a link's target, is moved and replaced")
  func above() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $C/..; mkdir -p a/b/c dot/in; echo '{k = one;}' | tee a/b/c/p.plist > dot/in/l.plist
        ln -s $PWD/dot/in/l.plist $C/l.plist; M2=\(sandbox.secondMountPoint)
        prefsfs -o store=$PWD/a/b/c $M2; cat $M2/p/k $M/l/k
        mv a a.old; cp -r a.old a; mv dot dot.old; cp -r dot.old dot; sleep 1
        echo '{k = two;}' | tee a/b/c/p.plist > dot/in/l.plist
        for i in $(seq 60); do
          [ "$(cat $M2/p/k $M/l/k | xargs)" = 'two two' ] && break; sleep 0.05
        done
        cat $M2/p/k $M/l/k; fusermount3 -u $M2
        """)
      #expect(outcome.output == "one\none\ntwo\ntwo\n", "\(outcome)")
    }
  }

  @Test("the directory of the machine's lists as a store of its own sees edits by others")
  func machineStore() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        E=$PREFSFS_SYSTEM_DIR; mkdir -p $E; echo '{k = one;}' > $E/q.plist; prefsfs -o store=$E $M
        cat $M/q/k; echo '{k = two;}' > $E/q.plist
        for i in $(seq 60); do [ $(cat $M/q/k) = two ] && break; sleep 0.05; done; cat $M/q/k
        rm $E/q.plist; for i in $(seq 60); do [ -e $M/q/k ] || break; sleep 0.05; done; ls $M
        fusermount3 -u $M
        """)
      #expect(outcome.output == "one\ntwo\nNSGlobalDomain\n", "\(outcome)")
    }
  }

  @Test("a fragment that cannot be read, alone in its domain, is EIO, and its domain a directory")
  func brokenFragment() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell(
        "ls $M; mkdir -p $PREFSFS_SYSTEM_DIR/f.d; echo 'x{' > $PREFSFS_SYSTEM_DIR/f.d/1.plist")
      eventually(sandbox, "cat $M/f/k 2>&1 | cut -d : -f 3", " Input/output error\n")
      #expect(sandbox.shell("ls -l $M > /dev/null && ls $M").output == "NSGlobalDomain\nf\n")
      sandbox.shell("echo '{k = mended;}' > $PREFSFS_SYSTEM_DIR/f.d/1.plist")
      eventually(sandbox, "cat $M/f/k", "mended\n")
      sandbox.shell("echo 'x{' > $PREFSFS_SYSTEM_DIR/f.d/1.plist")
      eventually(sandbox, "cat $M/f/k 2>&1 | cut -d : -f 3", " Input/output error\n")
      sandbox.shell("rm -r $PREFSFS_SYSTEM_DIR/f.d")
      eventually(sandbox, "ls $M", "NSGlobalDomain\n")
    }
  }

  @Test("a list that a shell has made, and writes seconds later, loses nothing")
  func slow() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell(
        """
        (sleep 2; echo '{ restored = yes; }') > $C/w.plist & sleep 0.2; defaults write w b 2; wait
        """)
      eventually(sandbox, "cat $M/w/restored $M/w/b", "yes\n2\n")
    }
  }

  @Test("the mount shows a list that is replaced or edited in place", arguments: [false, true])
  func seen(inPlace: Bool) throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("cd $M/d; cat Integer String Inherited; ls | wc -l").status == 0)
      edit(
        sandbox, "d['Integer'] = 43; d['Fresh'] = 'new'; del d['String']", inPlace: inPlace)
      eventually(sandbox, "cat $M/d/Integer", "43\n")
      eventually(sandbox, "cat $M/d/Fresh", "new\n")
      eventually(sandbox, "ls $M/d | grep -cE '^(Fresh|String)$'", "1\n")
      #expect(sandbox.shell("cat $M/d/String").errors.contains("No such file"))
      #expect(sandbox.shell("cat $M/d/Real").output == "1.5\n")
    }
  }

  @Test("a domain comes, goes and comes back with its list")
  func domains() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("ls $M; cat $M/other/Key; cat $M/fresh/Key").status != 0)
      sandbox.makeList(sandbox.config + "/fresh.plist", "dict(Key=1)")
      eventually(sandbox, "cat $M/fresh/Key", "1\n")
      eventually(sandbox, "ls $M | grep -c fresh", "1\n")
      #expect(sandbox.shell("mv $C/other.plist $C/parked").status == 0)
      eventually(sandbox, "ls $M | grep -c other", "0\n")
      eventually(sandbox, "cat $M/other/Key 2>&1 | grep -c 'No such'", "1\n")
      #expect(sandbox.shell("mv $C/parked $C/other.plist").status == 0)
      eventually(sandbox, "cat $M/other/Key", "other\n")
    }
  }

  @Test("a key that comes under the name of a temporary file takes its place")
  func overTemporary() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; mkdir $M/t; cd $M/t; echo 1 > Win
        python3 -c "
        import os
        fd = os.open('Win.a1B2c3', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.write(fd, b'text')"
        ls; cat Win.a1B2c3; echo; defaults write t Win.a1B2c3 -int 3; sleep 0.3; ls; cat Win.a1B2c3
        cp -r $M/t $C/../copy && echo copied; rm Win.a1B2c3; sleep 1.1; ls; cat Win.a1B2c3
        """)
      #expect(
        outcome.output == """
          Win
          Win.a1B2c3
          text
          Win
          Win.a1B2c3
          3
          copied
          Win
          cat: Win.a1B2c3: No such file or directory

          """, "\(outcome)")
    }
  }

  @Test("a damaged list is EIO until it is repaired, and is never overwritten")
  func damaged() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/Integer; cp $C/d.plist $C/good").output == "42\n")
      #expect(sandbox.shell("echo broken > $C/d.plist").status == 0)
      eventually(sandbox, "cat $M/d/Integer 2>&1 | grep -c 'Input/output'", "1\n")
      #expect(sandbox.shell("echo 5 > $M/d/Integer").status != 0)
      #expect(sandbox.shell("cat $C/d.plist $M/other/Key").output == "broken\nother\n")
      #expect(mount.log.contains("cannot be read and is left alone"))
      #expect(sandbox.shell("cp $C/good $C/d.plist").status == 0)
      eventually(sandbox, "cat $M/d/Integer", "42\n")
      #expect(sandbox.shell("echo 5 > $M/d/Integer; cat $M/d/Integer").output == "5\n")
    }
  }

  @Test("a damaged list of the global domain hides no key of another domain")
  func damagedGlobal() throws {
    let prepare = { (sandbox: Sandbox) in
      Fixture.make(sandbox)
      sandbox.shell("echo broken > $C/.GlobalPreferences.plist")
    }
    try withMount(["-o", "list=all"], prepare: prepare) { (sandbox: Sandbox, _: Mount) throws in
      let outcome = sandbox.shell("cat $M/d/Integer; ls $M/d | grep -x Integer")
      #expect(outcome.output == "42\nInteger\n", "\(outcome)")
    }
  }

  @Test("damaged lists of two domains, which every look-up needs, do not make it wait")
  func damagedTwo() throws {
    let prepare = { (sandbox: Sandbox) in
      Fixture.make(sandbox)
      sandbox.shell("tee $C/.GlobalPreferences.plist > $C/prefsfs.plist <<< broken")
    }
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws in
      let start = Date()
      let outcome = sandbox.shell(
        "for i in $(seq 300); do test -e $M/none$i || echo $i; done | wc -l; defaults read none K")
      #expect(outcome.output == "300\n", "\(outcome)")
      // One that waits is given up after 5 s.
      #expect(Date().timeIntervalSince(start) < 5)
    }
  }

  @Test("our unsaved changes win over another program's edit, the rest of it is taken")
  func merged() throws {
    try withMount(["-o", "writeback=3600"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(sandbox.shell("echo 5 > $M/d/Integer; cat $M/d/Real").output == "1.5\n")
      edit(sandbox, "d['Integer'] = 99; d['Real'] = 2.5")
      eventually(sandbox, "cat $M/d/Real", "2.5\n")
      #expect(sandbox.shell("cat $M/d/Integer").output == "5\n")
      mount.unmount()
      #expect(
        sandbox.evaluate(sandbox.config + "/d.plist", "d['Integer'], d['Real']") == "5 2.5")
    }
  }

  @Test("a stale copy that is written back does not undo a recent change")
  func stale() throws {
    try withMount(["-o", "writeback=0.1"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("cp $C/d.plist $C/stale; cat $M/d/*").status == 0)
      #expect(sandbox.shell("echo 5 > $M/d/Integer; printf ' x' > $M/d/New").status == 0)
      sandbox.waitUntil("test $C/d.plist -nt $C/stale")
      edit(
        sandbox, "d = plistlib.load(open(p[:-7] + 'stale', 'rb')); d['Real'] = 9.5", inPlace: true)
      eventually(sandbox, "cat $M/d/Real", "9.5\n")
      #expect(sandbox.shell("cat $M/d/Integer $M/d/New").output == "5\n x")
      sandbox.waitUntil(
        "/usr/bin/python3 -c \"import plistlib; d = plistlib.load(open('$C/d.plist', 'rb')); "
          + "assert (d['Integer'], d['New'], d['Real']) == (5, ' x', 9.5)\"")
    }
  }

  @Test("watchers get events for keys that come, change or go, and for no others")
  func watched() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/* $M/d/Inherited > /dev/null").status == 0)
      let watcher = try sandbox.watch(
        [".", "d", "./d/Inherited", "./d/String"], in: sandbox.mountPoint)
      defer { kill(watcher.processIdentifier, SIGKILL) }
      edit(sandbox, "d['Integer'] = 43; d['Fresh'] = 'new'; del d['String']")
      sandbox.makeList(sandbox.config + "/fresh.plist", "dict(Key=1)")
      sandbox.makeList(sandbox.config + "/.GlobalPreferences.plist", "dict(Inherited='again')")
      let expected = [
        "MODIFY d/Integer", "CLOSE_WRITE,CLOSE d/Integer", "CREATE d/Fresh", "DELETE d/String",
        "CREATE,ISDIR ./fresh", "MODIFY ./d/Inherited", "DELETE_SELF ./d/String",
      ]
      for line in expected {
        sandbox.waitUntil("grep -qF '\(line)' $C/../events")
      }
      #expect(sandbox.shell("cat $M/d/Fresh").output == "new\n")
      let events = try String(contentsOfFile: sandbox.root + "/events", encoding: .utf8)
      #expect(!events.contains("Real") && !events.contains("CREATE d/Integer"), "\(events)")
    }
  }

  @Test("a watcher of a directory that was never read gets an event for the first change")
  func unread() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { kill(watcher.processIdentifier, SIGKILL) }
      edit(sandbox, "d['Integer'] = 43")
      sandbox.waitUntil("grep -qF 'CLOSE_WRITE,CLOSE d/Integer' $C/../events")
      let events = try String(contentsOfFile: sandbox.root + "/events", encoding: .utf8)
      #expect(!events.contains("Real"), "\(events)")
    }
  }

  @Test("watchers of the root hear nothing of domains that were there")
  func known() throws {
    try withMount(
      prepare: { sandbox in
        for name in ["one", "two"] {
          sandbox.makeList(sandbox.config + "/\(name).plist", "dict(Key=1)")
        }
      }
    ) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("ls $M")
      let watcher = try sandbox.watch(["."], in: sandbox.mountPoint)
      defer { kill(watcher.processIdentifier, SIGKILL) }
      for name in ["one", "two", "new"] {
        sandbox.makeList(sandbox.config + "/\(name).plist", "dict(Key=2)")
      }
      sandbox.waitUntil("grep -q 'CREATE,ISDIR ./new' $C/../events")
      #expect(sandbox.shell("cat $M/*/Key").output == "2\n2\n2\n")
      let events = try String(contentsOfFile: sandbox.root + "/events", encoding: .utf8)
      #expect(!events.contains("one") && !events.contains("two"), "\(events)")
    }
  }

  @Test("after a storm of 5,000 changes every key shows its last value")
  func storm() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      edit(sandbox, "d.update({f'K{i}': 0 for i in range(1000)})")
      eventually(sandbox, "cat $M/d/K999", "0\n")
      for round in 1...5 { edit(sandbox, "d.update({f'K{i}': \(round) for i in range(1000)})") }
      eventually(sandbox, "cat $M/d/K0 $M/d/K999", "5\n5\n")
      #expect(sandbox.shell("cat $M/d/K* | sort | uniq -c | tr -s ' '").output == " 1000 5\n")
    }
  }
}
