import Foundation
import Support
import Testing

/// Every place of the search list as a directory below `.prefs/places`.
@Suite("Places as directories") struct PlaceTests {
  @Test("every case of the main tree that is about one place holds in a place")
  func sameRules() async throws {
    let cases = (TextCases.list + ScratchCases.list + WritingCases.list).filter {
      !Self.searchesOnly.contains($0.name)
    }
    try await concurrently(cases) { example in
      try withMount(prepare: Fixture.make) { _, mount in
        try example.run(MountedFiles(mount.path(".prefs/places/user")))
      }
    }
  }

  /// The cases that are about several places.
  private static let searchesOnly: Set<String> = [
    "a rename of text that is not of the key's type is EPERM, and loses nothing",
    "refused operations on scratch files change nothing",
    "a key keeps its mode, and its time until the value changes",
    "a forced key cannot be written, removed or replaced",
    "a write to an inherited key gives the domain its own",
    "a change of the global domain shows in other domains",
  ]

  /// How tools replace a file by another one: each sets the key `TabWidth` to 9.
  private static let replacements = [
    "install -m 600 $C/../nine $M/d/TabWidth",
    "cp --remove-destination $C/../nine $M/d/TabWidth",
    "mkdir $C/../t; cp $C/../nine $C/../t/TabWidth; tar c -C $C/../t TabWidth | tar x -C $M/d",
    "cp $C/../nine /dev/shm/nine-$$; mv /dev/shm/nine-$$ $M/d/TabWidth",
    "rm $M/d/TabWidth; echo 9 > $M/d/TabWidth",
    "mv $M/d/TabWidth $M/d/TabWidth.bak; echo 9 > $M/d/TabWidth",
    "mv $M/d/TabWidth $M/d/Other; echo 9 > $M/d/TabWidth",
    "rm $M/d/TabWidth; cp $C/../nine $M/d/.t; mv $M/d/.t $M/d/TabWidth",
    "rm $M/d/TabWidth; cp $C/../nine $M/d/.t; ln $M/d/.t $M/d/TabWidth",
  ]

  @Test(
    "a tool that removes a file and makes it anew sets the key in its place",
    arguments: replacements)
  func replaced(_ command: String) throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.shell(
        "defaults write d TabWidth -int 4; defaults -currentHost write d TabWidth -int 8; "
          + "echo 9 > $C/../nine; chmod 640 $C/../nine")
    }) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        stat -c %s $M/d/TabWidth; \(command); cat $M/d/TabWidth $M/.prefs/places/user/d/TabWidth
        defaults -currentHost read d TabWidth; sleep 1.2; defaults -currentHost read d TabWidth
        """)
      #expect(outcome.output == "2\n9\n4\n9\n9\n", "\(outcome)")
    }
  }

  @Test("a key that is renamed keeps its place and, made again, its mode")
  func renamed() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        defaults -currentHost write d H -int 8; mv $M/d/H $M/d/J; defaults -currentHost read d J
        echo 1 > $M/d/K; chmod 640 $M/d/K; mv $M/d/K $M/d/K.backup; echo 2 > $M/d/K
        stat -c %a $M/d/K $M/d/K.backup
        """)
      #expect(outcome.output == "8\n640\n640\n", "\(outcome)")
    }
  }

  @Test("what a domain inherits from a kept suite shows its changes, whatever else is removed")
  func keptSuite() throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.shell(
        """
        defaults suites bb add aa; defaults write aa k1 old; defaults write bb own 1
        for d in z1 z2 z3; do defaults write $d a 1; done
        """)
    }) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cat $M/bb/k1; defaults delete z1; cat $M/bb/k1; defaults delete z2; test -e $M/bb/k2
        defaults write aa k1 newer; cat $M/bb/k1; defaults delete z3; defaults write aa k2 x
        cat $M/bb/k2
        """)
      #expect(outcome.output == "old\nold\nnewer\nx\n", "\(outcome)")
    }
  }

  @Test("an administrator forces, suggests and takes back with echo and rm")
  func administrator() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/places; echo 8 > managed/d/Integer; cat $M/d/Integer
        echo 9 > $M/d/Integer || ls -l $M/d/Integer | cut -c1-10; ls managed/d
        rm managed/d/Integer; cat $M/d/Integer
        mkdir -p any-user/new managed-for/$(id -un)/new; echo 1 > any-user/new/Suggested
        cat $M/new/Suggested; getfattr --only-values -n user.prefs.source $M/new/Suggested; echo
        echo 2 > managed-for/$(id -un)/new/Suggested; echo 3 > managed/d/Mine
        cat $M/new/Suggested; getfattr --only-values -n user.prefs.forced $M/new/Suggested; echo
        echo 4 > user/d/Mine; cat $M/d/Mine user/d/Mine; ls managed-for
        """)
      #expect(
        outcome.output == """
          8
          -r--------
          Forced
          Integer
          42
          1
          any-user
          2
          1
          3
          4
          \(NSUserName())

          """, "\(outcome)")
    }
  }

  @Test(
    "what a place shows: volatile places, names that are not there, the control directory hidden")
  func shown() throws {
    try withMount(["--", "-Arg", "7"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/places; ls . arguments user/d; cat arguments/Arg
        echo 8 > arguments/Arg; echo 8 > arguments/New; mkdir none; cat nowhere/d/K 2>&1 | cut -d: -f3
        mkdir registered/d; echo yes > registered/d/Default; cat $M/d/Default; ls $M/d | grep Def
        rm registered/d/Default; ls $M/d | grep -c Def
        cd $M; ls -A | grep -c prefs; find . -name .prefs; grep -rl 42 . ; rsync -an $M/ /nowhere | grep prefs
        """)
      #expect(
        outcome.output == """
          .:
          any-user
          arguments
          cloud
          host
          managed
          managed-for
          registered
          user
          vendor

          arguments:
          Arg

          user/d:
          Array
          Boolean
          Data
          Date
          Dict
          Empty
          Integer
          Real
          String
          7
           No such file or directory
          yes
          Default
          0
          0
          ./d/Integer

          """, "\(outcome)")
      for word in [
        "Arg: Operation not permitted", "New: Operation not permitted", "Permission denied",
      ] {
        #expect(outcome.errors.contains(word), "\(outcome.errors)")
      }
    }
  }

  @Test("warm reads in a place make no request")
  func warm() throws {
    try withMount(["-d"], prepare: Fixture.make) { (_, mount: Mount) throws -> Void in
      let files = MountedFiles(mount.path(".prefs/places"))
      for path in ["user/d/Integer", "managed/d/Forced", "any-user/d/Machine"] {
        _ = try files.get(path)
        usleep(100_000)
        let before = mount.requests.count
        for _ in 0..<1000 { _ = try files.get(path) }
        usleep(100_000)
        #expect(mount.requests.count == before, "\(path)")
      }
    }
  }

  @Test("a change through one tree is read, and announced, in the others at once, 300 times")
  func coherent() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        u=$M/.prefs/places/user/d; for i in $(seq 300); do
          echo $i > $M/d/Integer; read x < $u/Integer; [ $x = $i ] || echo stale $x $i
          echo -$i > $u/Integer; read x < $M/d/Integer; [ $x = -$i ] || echo stale $x -$i
        done
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
      let watcher = try sandbox.watch(
        ["d", ".prefs/places/user/d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      sandbox.shell("echo 1 > $M/d/New; echo 2 > $M/.prefs/places/user/d/Other; rm $M/d/New")
      for line in [
        "CREATE d/Other", "CREATE .prefs/places/user/d/New", "DELETE .prefs/places/user/d/New",
        "CLOSE_WRITE,CLOSE d/Other",
      ] { sandbox.waitUntil("grep -q '\(line)' $C/../events") }
    }
  }

  @Test("watchers hear that another place's value shows where a key was removed")
  func shownAgain() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("echo own > $M/d/Machine")
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      sandbox.shell("rm $M/d/Machine")
      sandbox.waitUntil("grep -q 'CREATE d/Machine' $C/../events")
      sandbox.waitUntil("tail -1 $C/../events | grep -q CLOSE_WRITE")
      let outcome = sandbox.shell("cat $M/d/Machine; grep Machine $C/../events | sed 's/ *$//'")
      let events = ["DELETE", "CREATE", "CLOSE_WRITE,CLOSE"].map { "\($0) d/Machine\n" }
      #expect(outcome.output == "m\n" + events.joined(), "\(outcome)")
    }
  }

  @Test("another mount, its watchers and programs hear of a forced value within a second")
  func reaches() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let owner = try Mount(sandbox)
      defer { owner.unmount() }
      sandbox.shell("mkdir $C/../machine $C/../other-home")
      let environment =
        "HOME=$C/../other-home XDG_CONFIG_HOME=$C/../other-home/c XDG_STATE_HOME=$C/../other-home/s"
      let machine = try sandbox.start(
        "exec env \(environment) \(Program.path) --system -f $C/../machine")
      defer {
        sandbox.shell("fusermount3 -u $C/../machine")
        machine.waitUntilExit()
      }
      sandbox.waitUntil("[ -d $C/../machine/managed ]")
      #expect(
        sandbox.shell("ls $C/../machine").output == "any-user\ndeclared\nmanaged\nmanaged-for\n")
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      let probe = try sandbox.start("$PROBE watch d 1 > $C/../changes")
      sandbox.waitUntil("grep -q watching $C/../changes")
      sandbox.shell("cat $M/d/Integer; echo 5 > $C/../machine/managed/d/Integer")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 5 ]")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE d/Integer' $C/../events")
      probe.waitUntilExit()
      #expect(sandbox.shell("cat $C/../changes").output.contains("changed Integer"))
      #expect(sandbox.shell("defaults explain d Integer").output.hasPrefix("* managed (forced): 5"))
      sandbox.shell("rm $C/../machine/managed/d/Integer")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ]")
    }
  }

  @Test("rsync -aX takes every place to a backup and back, types and exact bytes included")
  func backup() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        p=$M/.prefs/places; b=$C/../backup; printf ' 007' > $p/managed/d/Forced
        mkdir -p $p/managed-for/ann/x $p/host/d; echo 0x1 > $p/managed-for/ann/x/K; echo 3 > $p/host/d/H
        rsync -aX $p/ $b && rm $p/managed/d/* $p/managed-for/ann/x/* $p/user/d/* $p/host/d/*
        sleep 1.2; rsync -aX $b/ $p && rsync -aXnic $b/ $p; od -c $p/managed/d/Forced | head -1
        cd $p; getfattr --only-values -n user.prefs.type managed/d/Forced; cat $p/managed-for/ann/x/K $p/host/d/H
        cat user/d/Integer; getfattr --only-values -n user.prefs.type user/d/Data
        """)
      #expect(
        outcome.output == "0000000       0   0   7\ninteger0x1\n3\n42\ndata", "\(outcome)")
      #expect(outcome.errors == "", "\(outcome.errors)")
    }
  }

  @Test("a place that the user may not write is EACCES, and is read all the same")
  func permissions() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("chown -R nobody \(sandbox.system) && chmod -R a+rX \(sandbox.system)")
      let limited = try sandbox.start(
        "exec setpriv --bounding-set=-dac_override,-dac_read_search,-fowner "
          + "--inh-caps=-dac_override,-dac_read_search,-fowner \(Program.path) -f $M")
      defer {
        sandbox.shell("fusermount3 -u $M")
        limited.waitUntilExit()
      }
      sandbox.waitUntil("[ -d $M/d ]")
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/places; cat managed/d/Forced; echo 8 > managed/d/Forced; echo x > managed/d/New
        rm managed/d/Forced; mkdir any-user/new; cat managed/d/Forced; ls managed/d any-user
        """)
      #expect(outcome.output.hasPrefix("7\n7\n"), "\(outcome)")
      #expect(!outcome.output.contains("New") && !outcome.output.contains("new"), "\(outcome)")
      #expect(
        outcome.errors.components(separatedBy: "Permission denied").count == 5, "\(outcome)")
    }
  }

  @Test("links into the mount do not stop it: in a suite, in a domain that documents show")
  func links() throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.makeList(sandbox.config + "/prefsfs.plist", "{'Suites.d': ['s']}")
      sandbox.shell("ln -s $M/other/Key $C/s.plist")
    }) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(
        sandbox.shell("timeout 20 cat $M/d/Integer $M/d/None; echo done").output == "42\ndone\n")
      let outcome = sandbox.shell(
        """
        timeout 20 ls $M/.prefs/domains > /dev/null; ln -s $M/d/Integer $C/linked.plist; sleep 0.5
        timeout 20 cat $M/d/Integer; timeout 20 ls $M/.prefs/search; echo done
        """)
      #expect(outcome.output.hasPrefix("42\n") && outcome.output.hasSuffix("done\n"), "\(outcome)")
      if !outcome.output.hasPrefix("42") { mount.crash() }
    }
  }

  @Test("a damaged list of the user's stops no change of another place")
  func damagedElsewhere() throws {
    try withMount(prepare: { sandbox in
      Fixture.make(sandbox)
      sandbox.shell("echo garbage > $C/damaged.plist; mkdir -p $C/ByHost")
    }) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/places; for p in any-user managed host; do
          mkdir $p/damaged; echo 2 > $p/damaged/K && cat $p/damaged/K; done; cat user/damaged/K
        setfattr -n user.prefs.type -v data $M/.prefs/suites/d; echo s > $M/.prefs/suites/d
        setfattr -n user.prefs.type -v data $M/.prefs/suites/d || cat $M/.prefs/suites/d
        """)
      #expect(outcome.output == "2\n2\n2\ns\n", "\(outcome)")
      #expect(outcome.errors.contains("user/damaged/K: Input/output error"), "\(outcome)")
    }
  }

  @Test("a default that is registered as a file has events in the main tree")
  func registered() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      sandbox.shell(
        "cd $M/.prefs/places/registered; mkdir d; echo 1 > d/Default; echo 2 > d/Integer")
      sandbox.waitUntil("grep -q 'CREATE d/Default' $C/../events")
      #expect(sandbox.shell("cat $M/d/Integer").output == "42\n")
      sandbox.shell("rm $M/.prefs/places/registered/d/Default")
      sandbox.waitUntil("grep -q 'DELETE d/Default' $C/../events")
    }
  }
}
