import Foundation
import Support
import Testing

/// Documents, suites and reports in the control directory.
@Suite("The control directory") struct ControlTests {
  @Test("a domain is exported and replaced as a document, by the tools that edit one")
  func documents() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/domains; ls | head -3; jq -c '[.Integer, .Data, .Date]' d.json
        jq '.Integer = 43 | .New = [1]' d.json | sponge d.json; cat $M/d/Integer
        getfattr --only-values -n user.prefs.type $M/d/Date; echo
        cp d.plist $C/../copy.plist; rm $M/d/New; cp $C/../copy.plist d.plist; cat $M/d/New
        git diff --no-index --stat d.plist $C/../copy.plist; rm d.plist; ls $M
        cp $C/../copy.plist fresh.plist; cat $M/fresh/Integer; sed -i s/43/44/ fresh.json; cat $M/fresh/Integer
        """)
      #expect(
        outcome.output == """
          NSGlobalDomain.json
          NSGlobalDomain.plist
          d.json
          [42,"AQI=","2026-11-21T07:20:00Z"]
          43
          date
          [
            1
          ]
          NSGlobalDomain
          d
          other
          43
          44

          """, "\(outcome)")
    }
  }

  @Test("a document takes another name of its domain, also by way of a backup")
  func renamed() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/domains; echo '{"a":1}' > x.json; mv x.json x.plist; defaults read x a
        echo '{"a":2}' > y.json; mv y.json y.json~; mv y.json~ y.plist; sleep 6; defaults read y a
        """)
      #expect(outcome.output == "1\n2\n" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("a document reads back the bytes that a tool has renamed over it, also of the same value")
  func sameValue() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/.prefs/domains; echo '{"a":1}' > x.json; cat x.json
        echo '{ "a": 1 }' > x.json.tmp; mv x.json.tmp x.json; cat x.json; wc -c < x.json
        echo '{  "a": 1 }' > x.json; cat x.json; exec 3<> x.json; rm x.json; echo '{}' > /proc/self/fd/3
        """)
      #expect(outcome.output == "{\"a\":1}\n{ \"a\": 1 }\n11\n{  \"a\": 1 }\n", "\(outcome)")
      #expect(outcome.errors == "")
    }
  }

  @Test("what is written right after a refusal, or under a name that is gone, is not lost")
  func staleNames() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let program = """
        import os, sys
        lost = []
        def put(name, text):
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try: os.write(fd, text)
            finally: os.close(fd)
        for directory, good in [('declared', b'{"dd":{"A%d":1}}'), ('domains', b'{"A%d":1}')]:
            os.chdir(sys.argv[1] + '/.prefs/' + directory)
            for i in range(25):
                name = f'q{i}.json'
                try: put(name, b'[1]')
                except OSError: pass
                put(name, good % i)
                try: open(name).read()
                except FileNotFoundError: lost.append(directory)
        for i in range(20):
            name = f'w{i}.plist'
            put(f'w{i}.json', b'{"a": 1}'); open(name).read(); os.remove(f'w{i}.json')
            put(name, b'<plist><dict><key>b</key><string>x</string></dict></plist>')
            try: lost += [] if b'x' in open(name, 'rb').read() else ['old']
            except FileNotFoundError: lost.append('gone')
        print(lost)
        """
      try program.write(toFile: sandbox.root + "/stale.py", atomically: true, encoding: .utf8)
      let outcome = sandbox.shell("python3 $C/../stale.py $M")
      #expect(outcome.output == "[]\n", "\(outcome)")
      #expect(sandbox.shell("ls $M/.prefs/declared | grep -c json").output == "25\n")
      // The declaration that the engine refuses leaves nothing either.
      let refused = sandbox.shell(
        "cd $M/.prefs/declared; echo '{\"dd\":1}' > bad.json || ls | grep -c bad")
      #expect(refused.output == "0\n", "\(refused)")
    }
  }

  @Test("the mount that writes X.json announces X.plist too")
  func siblings() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("cat $M/.prefs/domains/d.*")
      let watcher = try sandbox.watch(["mount/.prefs/domains"])
      defer { sandbox.end(watcher) }
      sandbox.shell("echo '{\"a\":1}' > $M/.prefs/domains/d.json")
      sandbox.waitUntil("grep -q 'MODIFY.*d.plist' $C/../events")
    }
  }

  @Test("a document that is no dictionary is refused at write(2), and changes nothing")
  func refusedDocument() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let before = sandbox.shell("cat $M/.prefs/domains/d.json").output
      for text in ["[1]", "word", "{\\\"a\\\": nul}", "<plist><array/></plist>"] {
        let outcome = sandbox.shell("printf \"\(text)\" > $M/.prefs/domains/d.json")
        #expect(outcome.status != 0 && outcome.errors.contains("Invalid argument"), "\(text)")
        #expect(sandbox.shell("cat $M/.prefs/domains/d.json").output == before, "\(text)")
      }
      #expect(sandbox.shell("echo '{}' > $M/.prefs/domains/d.txt").status != 0)
      #expect(mount.log.contains("d.json"))
      #expect(mount.log.contains("the name of a document is a domain with .plist or .json"))
    }
  }

  @Test("a document is never stale, and its watchers hear of changes")
  func freshDocument() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let watcher = try sandbox.watch([".prefs/domains"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      let outcome = sandbox.shell(
        """
        for i in $(seq 200); do echo $i > $M/d/Integer
          [ $(jq .Integer $M/.prefs/domains/d.json) = $i ] || echo stale $i; done
        """)
      #expect(outcome.output == "" && outcome.errors == "", "\(outcome)")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE .prefs/domains/d.json' $C/../events")
    }
  }

  @Test("suites are kept, searched last line first, and shared with defaults; they can be forced")
  func suites() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M; mkdir one two; echo 1 > one/K; echo 2 > two/K; echo 1 > one/L
        cat d/K 2>&1 | cut -d: -f3; printf 'one\\ntwo\\n' > .prefs/suites/d
        # The kernel drops a name that was missing a moment later.
        for i in $(seq 100); do test -e d/K && break; sleep 0.01; done; cat d/K d/L .prefs/suites/d
        echo 3 > two/K; cat d/K; getfattr --only-values -n user.prefs.source d/K; echo
        defaults suites d; defaults suites d remove two; cat d/K .prefs/suites/d; defaults suites d add d
        printf 'd\\ntwo\\n' > .prefs/suites/one; cat one/Integer
        mkdir -p .prefs/places/managed/prefsfs
        echo '["two"]' > .prefs/places/managed/prefsfs/Suites.d; cat d/K; defaults suites d
        echo one > .prefs/suites/d
        """)
      #expect(
        outcome.output == """
           No such file or directory
          2
          1
          one
          two
          3
          suite:two
          one
          two
          1
          one
          42
          3
          two

          """, "\(outcome)")
      #expect(outcome.errors.contains("Operation not permitted"), "\(outcome.errors)")
      mount.unmount()
      let again = try Mount(sandbox)
      defer { again.unmount() }
      #expect(sandbox.shell("cat $M/d/K").output == "3\n")
    }
  }

  @Test("explain and search say what defaults explain says, and are never stale")
  func reports() throws {
    try withMount(["--", "-Arg", "7"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      for key in ["Integer", "Forced", "Inherited"] {
        let lines = sandbox.shell("cat $M/.prefs/explain/d/\(key)").output
        #expect(lines == sandbox.shell("defaults explain d \(key)").output && lines != "", "\(key)")
        #expect(
          sandbox.shell("stat -c %s $M/.prefs/explain/d/\(key)").output == "\(lines.utf8.count)\n")
      }
      let outcome = sandbox.shell(
        """
        cd $M/.prefs; for i in 1 22 333; do echo $i > $M/d/Integer; head -1 explain/d/Integer; done
        cat explain/d/None; ls explain | head -2; ls search/d explain/d/Forced
        cut -d: -f1 search/d | uniq | tr '\\n' ' '
        echo x > search/d; rm explain/d/Integer; mkdir explain/x; touch new
        """)
      #expect(
        outcome.output == """
          * user: 1
          * user: 22
          * user: 333
          NSGlobalDomain
          d
          explain/d/Forced
          search/d
          managed arguments cloud host user cloud global-host global any-user any-user-global vendor vendor-global registered schema schema-global\u{20}
          """, "\(outcome)")
      #expect(outcome.errors.components(separatedBy: "Permission denied").count >= 4, "\(outcome)")
    }
  }

  @Test("status.json says what is so: lists, unsaved changes, failures, scratch files, held texts")
  func status() throws {
    try withMount(["-o", "writeback=3600"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let status = { (path: String) in
        sandbox.shell("jq -c '\(path)' $M/.prefs/status.json").output
      }
      sandbox.shell("echo broken > $C/broken.plist; echo 1 > $M/d/Integer; cat $M/broken/K")
      sandbox.shell("echo x > $M/d/.Integer.swp; (printf '{\"a\":'; sleep 2) > $M/d/Dict &")
      sandbox.waitUntil("grep -q d/Dict $M/.prefs/status.json")
      let owner = try #require(sandbox.owner)
      #expect(status("[.process, .owner]") == "[\(mount.pid),\(owner)]\n")
      #expect(status(".unsaved") == "[\"d (user)\"]\n")
      #expect(status(".\"scratch files\"") == "[\"d/.Integer.swp\"]\n")
      #expect(status(".\"held texts\"") == "[\"d/Dict\"]\n")
      #expect(status(".failures | keys") == "[\"broken (user)\"]\n")
      #expect(status(".store") == "\"\(sandbox.config)\"\n")
      let size = sandbox.shell("cat $XDG_STATE_HOME/prefsfs/*/journal.* | wc -c").output
      #expect(status(".\"journal bytes\"") == size)
      let probe = try sandbox.start("$PROBE watch d 1 > $C/../changes")
      sandbox.waitUntil("grep -q watching $C/../changes")
      #expect(status(".clients") == "2\n")
      sandbox.end(probe)
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      #expect(
        sandbox.shell("jq -c '[.process, .owner]' $M2/.prefs/status.json").output
          == "[\(other.pid),\(owner)]\n")
    }
  }

  @Test("a report that is open goes on showing the text that it had, and its name shows a new one")
  func snapshots() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cat > $C/../read.py <<'END'
        import json, os, sys
        report, key = sys.argv[1:]
        for number in range(20):
            with open(report, "rb", buffering=0) as file:
                text = file.read(100)
                with open(key, "w") as changed: changed.write("x" * 10 ** (number % 5) + "\\n")
                now = open(report, "rb").read()
                text += file.read(1 << 20)
                assert file.read(1 << 20) == b"", "a tail"
                assert os.fstat(file.fileno()).st_size == len(text), "a size"
                assert os.stat(report).st_ino == os.fstat(file.fileno()).st_ino, "an inode"
            assert json.loads(text) != json.loads(now), "nothing has changed"
        END
        python3 $C/../read.py $M/.prefs/status.json $M/d/String && echo whole
        """)
      #expect(outcome.output == "whole\n", "\(outcome)")
    }
  }
}
