import Foundation
import Support
import Testing

/// The promises of the file system that it takes a kernel, a crash or another program to test.
@Suite("Promises of a mount") struct PromiseTests {
  @Test("a key reads through the search list, with arguments and managed lists")
  func searchList() throws {
    try withMount(["--", "-Argument", "(a, b)", "-Integer", "5"], prepare: Fixture.make) {
      sandbox, _ in
      #expect(sandbox.shell("cat $M/d/Argument").output == "[\n  \"a\",\n  \"b\"\n]\n")
      #expect(sandbox.shell("cat $M/d/Integer").output == "5\n")
      #expect(sandbox.shell("echo 6 > $M/d/Integer").status != 0)
      #expect(sandbox.shell("cat $M/d/Forced $M/other/Languages").output == "7\n[\n  \"de\"\n]\n")
    }
  }

  @Test("a refused echo reports it and exits 1, and the next read is the old text, 1,000 times")
  func refusedWrites() throws {
    try withMount(prepare: Fixture.make) { sandbox, mount in
      let outcome = sandbox.shell("echo bad > $M/d/Integer")
      #expect(outcome.status == 1)
      #expect(outcome.errors.contains("Invalid argument"))
      let script = """
        cd $M/d; for i in $(seq 1000); do echo bad > Integer; read v < Integer; [ "$v" = 42 ] || echo stale; done
        """
      #expect(sandbox.shell(script).output == "")
      let line = mount.log.split(separator: "\n").first { $0.contains("d Integer") } ?? ""
      #expect(line.contains("the text is not an integer") && !line.contains("bad"))
    }
  }

  @Test("the next read returns what a write has written, 1,000 times")
  func writesAreRead() throws {
    try withMount(prepare: Fixture.make) { sandbox, _ in
      let script = """
        cd $M/d; for i in $(seq 1000); do echo $i > Integer; read v < Integer; [ "$v" = $i ] || echo stale; done
        """
      #expect(sandbox.shell(script).output == "")
    }
  }

  @Test("exact bytes, values and types survive a remount, and lists keep their format")
  func remount() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let texts = [
        "d/Boolean": "YES\n", "d/Integer": " 007", "d/Dict": "{\"z\":1}",
        "d/New": "<plist><dict/></plist>\n",
        "other/Key": "no newline", "other/Fresh": "1e5\n",
      ]
      var mount = try Mount(sandbox)
      let files = MountedFiles(mount.path(""))
      for (path, text) in texts { try files.put(path, text) }
      try files.changeMode("d/Real", 0o640)
      try files.setTime("d/Real", 1_588_749_789_000_000_001)
      let real = try files.status("d/Real")
      let times = try texts.keys.map { try files.status($0).modified }
      try files.put("d/.Real.swp", "scratch\n")
      mount.unmount()
      #expect(mount.log.contains("d .Real.swp: a temporary file is lost with the mount"))
      #expect(
        sandbox.evaluate(
          sandbox.config + "/d.plist", "d['Boolean'], d['Integer'], d['Dict'], d['New'], d['Real']")
          == "True 7 {'z': 1} {} 1.5")
      #expect(
        sandbox.evaluate(sandbox.config + "/other.plist", "d['Key'], d['Fresh']")
          == "no newline 1e5")
      #expect(sandbox.shell("head -c 5 \(sandbox.config)/other.plist").output == "<?xml")
      #expect(sandbox.shell("head -c 6 \(sandbox.config)/d.plist").output == "bplist")
      mount = try Mount(sandbox)
      defer { mount.unmount() }
      let after = try MountedFiles(mount.path("")).status("d/Real")
      #expect((after.mode, after.modified) == (real.mode, real.modified))
      #expect(sandbox.shell("ls -A $M/d").output.contains(".Real") == false)
      for (path, text) in texts { #expect(try files.get(path) == text) }
      #expect(try texts.keys.map { try files.status($0).modified } == times)
      #expect(try files.type("other/Fresh") == "string")
    }
  }

  @Test("written bytes are shown only while the value is the one they were written for")
  func otherRoads() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      var mount = try Mount(sandbox)
      let files = MountedFiles(mount.path(""))
      try files.put("d/Boolean", "YES\n")
      mount.unmount()
      sandbox.makeList(sandbox.config + "/d.plist", "dict(Boolean=False)")
      mount = try Mount(sandbox)
      defer { mount.unmount() }
      #expect(try files.get("d/Boolean") == "false\n")
    }
  }

  @Test("what echo has written survives kill -9 of the mount", arguments: 0..<3)
  func crash(_ round: Int) throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      for _ in 0..<3 {
        var mount = try Mount(sandbox)
        let files = MountedFiles(mount.path(""))
        let texts = (0..<20).map { "\(round) \($0) \(UInt32.random(in: 0...(.max)))" }
        for (index, text) in texts.enumerated() { try files.put("d/Key\(index)", text) }
        try files.put("d/Boolean", "No\n")
        if round % 2 == 1 { usleep(UInt32(round) * 400_000) }
        mount.crash()
        mount = try Mount(sandbox)
        for (index, text) in texts.enumerated() { #expect(try files.get("d/Key\(index)") == text) }
        #expect(try files.get("d/Boolean") == "No\n")
        mount.unmount()
      }
      #expect(sandbox.evaluate(sandbox.config + "/d.plist", "len(d)") == "29")
    }
  }

  @Test("long texts that were written in pieces survive kill -9 of the mount")
  func crashAfterPieces() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      sandbox.shell(
        "head -c 300000 /dev/urandom > \(sandbox.root)/bytes; base64 \(sandbox.root)/bytes > \(sandbox.root)/text"
      )
      var mount = try Mount(sandbox, ["-o", "writeback=60"])
      let copies = [
        "dd bs=4k if=bytes of=$M/d/Data", "dd bs=5000 if=text of=$M/d/String",
        "dd bs=7k if=bytes of=$M/d/New",
      ]
      for copy in copies { #expect(sandbox.shell("cd \(sandbox.root) && \(copy)").status == 0) }
      #expect(sandbox.shell("du -s \(sandbox.state) | cut -f1").output.dropLast().count < 5)
      mount.crash()
      mount = try Mount(sandbox)
      defer { mount.unmount() }
      let compared = sandbox.shell(
        "cd \(sandbox.root) && cmp bytes $M/d/Data && cmp text $M/d/String && cmp bytes $M/d/New")
      #expect(compared.status == 0, "\(compared.output)")
    }
  }

  @Test("a second after many writes the list is replaced, and no temporary file remains")
  func coalesced() throws {
    try withMount(prepare: Fixture.make) { sandbox, _ in
      let list = sandbox.config + "/d.plist"
      let before = sandbox.shell("stat -c %i \(list)").output
      #expect(sandbox.shell("for i in $(seq 50); do echo $i > $M/d/Integer; done").status == 0)
      #expect(sandbox.shell("stat -c %i \(list)").output == before)
      usleep(1_500_000)
      #expect(sandbox.evaluate(list, "d['Integer']") == "50")
      #expect(sandbox.shell("ls -A \(sandbox.config)").output.contains("prefsfs") == false)
    }
  }

  @Test("a list that cannot be parsed is EIO, is left alone, and is read when it is repaired")
  func damagedList() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let list = sandbox.config + "/d.plist"
      sandbox.shell("cp \(list) \(sandbox.root)/whole; head -c 100 \(sandbox.root)/whole > \(list)")
      var mount = try Mount(sandbox)
      let files = MountedFiles(mount.path(""))
      expectRefused(EIO) { _ = try files.get("d/Integer") }
      expectRefused(EIO) { try files.put("d/Fresh", "1") }
      expectRefused(EIO) { _ = try files.names("d") }
      #expect(try files.get("other/Key") == "other\n")
      #expect(mount.log.contains("d.plist") && mount.log.contains("offset"))
      mount.unmount()
      #expect(sandbox.shell("stat -c %s \(list)").output == "100\n")
      sandbox.shell("cp \(sandbox.root)/whole \(list)")
      mount = try Mount(sandbox)
      defer { mount.unmount() }
      #expect(try files.get("d/Integer") == "42\n")
    }
  }

  @Test("an open file is EIO while its list cannot be parsed, and then shows its value again")
  func damagedUnderOpenFile() throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      let script = sandbox.shell(
        """
        file=\(mount.path("d/Integer")) list=$C/d.plist; cp $list $C/../whole; exec 3< $file
        head -c 100 $C/../whole > $list
        for i in $(seq 250); do cat $file > $C/../out 2>&1 || break; sleep 0.02; done
        cat <&3 2>&1 | grep -c 'Input/output error'
        cp $C/../whole $list
        for i in $(seq 250); do cat $file 2> $C/../out && break; sleep 0.02; done
        cat <&3
        """)
      #expect(script.output == "1\n42\n42\n")
    }
  }

  @Test("another program's change of the list is kept when ours is saved")
  func otherWriter() throws {
    try withMount(prepare: Fixture.make) { sandbox, mount in
      let files = MountedFiles(mount.path(""))
      try files.put("other/Ours", "1\n")
      sandbox.makeList(
        sandbox.config + "/other.plist", "dict(Key='other', Theirs=2)", format: "XML")
      usleep(1_500_000)
      #expect(
        sandbox.evaluate(sandbox.config + "/other.plist", "sorted(d.items())")
          == "[('Key', 'other'), ('Ours', 1), ('Theirs', 2)]")
      #expect(try files.get("other/Theirs") == "2\n")
    }
  }

  @Test("a mapping writes the value; bad text is an error at msync, and the value stays")
  func mapping() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let program = """
        import mmap, sys
        for name, text in (('String', b'J'), ('Integer', b'x')):
            with open(sys.argv[1] + '/d/' + name, 'r+b') as f:
                m = mmap.mmap(f.fileno(), 0)
                m[0:1] = text
                try:
                    m.flush()
                    print(name, 'written')
                except OSError as e:
                    print(name, e.strerror)
        """
      let outcome = Program.run(
        "/usr/bin/python3", ["-c", program, sandbox.mountPoint], environment: sandbox.environment)
      #expect(outcome.output == "String written\nInteger Invalid argument\n", "\(outcome.errors)")
      let files = MountedFiles(mount.path(""))
      #expect(try files.get("d/String") == "Jello\n")
      #expect(try files.get("d/Integer") == "42\n")
    }
  }

  @Test("fsync of files and directories succeeds, and statfs gives the longest name")
  func synchronize() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _) throws -> Void in
      #expect(
        sandbox.shell("cd $M && echo 5 > d/Integer && sync d/Integer d . && stat -f -c %l .").output
          == "255\n")
    }
  }

  @Test("memory stays small however much is written")
  func memory() throws {
    try withMount(prepare: Fixture.make) { sandbox, mount in
      #expect(sandbox.shell("truncate -s 1T $M/d/String").errors.contains("File too large"))
      #expect(sandbox.shell("dd if=/dev/zero of=$M/d/String bs=1M count=100").status != 0)
      #expect(
        sandbox.shell("dd if=/dev/zero of=$M/d/Data bs=1M count=100").errors.contains(
          "File too large"))
      let resident = sandbox.shell("awk '/VmRSS/ {print $2}' /proc/\(mount.pid)/status").output
      #expect(Int(resident.dropLast()) ?? .max < 250_000)
    }
  }
}
