import Foundation
import Support
import Testing

/// Edits that few programs make, each of them a sequence that once went wrong.
@Suite("Rare edits") struct CornerTests {
  /// What Python prints that runs the lines with `d`, the domain's directory of a mount.
  private func python(_ sandbox: Sandbox, _ lines: String) -> String {
    let script = "import os, time\nd = os.environ['M'] + '/d/'\n" + lines
    try? Data(script.utf8).write(to: URL(fileURLWithPath: sandbox.root + "/script.py"))
    return sandbox.shell("export M; python3 \(sandbox.root)/script.py 2>&1").output
  }

  @Test("in the directory of a domain that is gone nothing is found and nothing is made")
  func removedDirectory() throws {
    try withMount(prepare: { $0.shell("defaults write x3 A 1") }) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/x3; cat A; defaults delete x3; for i in $(seq 50); do test -e $M/x3 || break; sleep .02
        done; echo 1 > A; mkdir q; ln -s a .#b; cat A; ls $M; defaults domains
        mkdir $M/x3; echo 2 > A; echo 3 > $M/x3/A; cat $M/x3/A
        """)
      #expect(outcome.output == "1\nNSGlobalDomain\n\n3\n", "\(outcome)")
      #expect(outcome.errors.components(separatedBy: "No such file").count == 6, "\(outcome)")
    }
  }

  @Test("a key takes the name of one that was moved away a moment ago")
  func swap() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/d; cd $M/d; echo 7 > P; echo 9 > Q; mv P P.bak; mv Q P; cat P P.bak; ls
        """)
      #expect(outcome.output == "9\n7\nP\nP.bak\n" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("a truncation and a refusal do nothing to later writes of others into the value")
  func afterwards() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let map = "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); "
      let outcome = sandbox.shell(
        """
        mkdir $M/d; cd $M/d
        put() { timeout 10 defaults write d "$@"; for i in $(seq 40); do grep -q "$3" $1 && break; sleep .02; done; }
        over() { printf %s $2 | dd of=$1 bs=1 seek=${3:-0} conv=notrunc status=none; }
        echo hello > K; : > K; sleep .2; put K -string 'a long new text'; over K A; cat K
        echo 42 > N; echo wide > N; put N -int 123; over N 9; cat N
        echo 1234 > M; over M x 1; over M 5 1; cat M
        echo 12 > P; echo x >> P; over P 5 2; cat P
        printf '{"a": "%020000d"}' 7 > D; : > D; sleep .2
        python3 -c "\(map)m[7] = ord('8'); m.flush()" D; wc -c < D; head -c 9 D
        """)
      #expect(
        outcome.output == "A long new text\n923\n1534\n12520009\n{\"a\": \"80", "\(outcome)")
    }
  }

  @Test(
    "registered defaults are read without a domain, and another Latin alphabet is no Latin-1, an unknown one none"
  )
  func oddLists() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M; mkdir .prefs/places/registered/rr; echo 5 > .prefs/places/registered/rr/K; cat rr/K
        for n in 1 15 99; do printf '%s<plist version="1.0"><dict><key>p</key><string>5 \\xa4</string></dict></plist>' \
          "<?xml version='1.0' encoding='ISO-8859-$n'?>" > $C/l$n.plist; done
        cat l1/p; cat l15/p; cat l99/p || echo refused
        """)
      #expect(outcome.output == "5\n5 ¤\n5 €\nrefused\n", "\(outcome)")
    }
  }

  @Test("a file that a program makes for reading too, and that stays, becomes a key")
  func exclusively() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let output = python(
        sandbox,
        """
        # From the first open(2) on, the kernel sends no RELEASE.
        open(d + 'Integer').read()
        def make(name, text):
            with open(d + name, 'x+') as file: file.write(text)
        make('New', '5'); make('Moved', '6'); make('Gone', '7'); make('Kept', '9')
        os.rename(d + 'Moved', d + 'Integer'); os.remove(d + 'Gone')
        # A tool's backup stays one, also when it is written again.
        os.rename(d + 'Kept', d + 'Integer~'); open(d + 'Integer~', 'a').write('1')
        time.sleep(6); make('Late', '8')
        """)
      #expect(output == "")
      // Not the last one yet, and none that a tool has used.
      #expect(
        sandbox.shell(
          "for k in New Moved Gone Late Kept Integer~ Integer; do defaults read d $k 2>&- || echo -; done"
        )
        .output == "5\n-\n-\n-\n-\n-\n6\n")
      #expect(sandbox.shell("fusermount3 -u $M; defaults read d Late").output == "8\n")
    }
  }

  @Test("settings with names like temporary files' are there for programs, copies and other mounts")
  func resembling() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        mkdir $M/a $M/b $M/c; cd $M/a
        echo 4 > tab; echo 8 > tab_width; echo dark > theme; echo light > theme_light
        echo 1 > K; echo 2 > K.1; echo 3 > K.old; echo 5 > K.new; cp K.new K.bak
        defaults read a tab_width; cp -r $M/a/. $M/b; rsync -a $M/a/ $M/c
        mkdir $C/../git; cd $C/../git; git init -q .; cp $M/a/* .; git add .
        git -c user.name=a -c user.email=a@b commit -qm x; mkdir $M/e
        git --work-tree=$M/e checkout -f -q HEAD -- .
        echo 6 > $M/a/.hidden; cd /; fusermount3 -u $M; sleep 1
        for d in a b c e; do echo $(defaults export $d - | grep -c '<key>'); done; defaults read a .hidden
        """)
      #expect(outcome.output == "8\n10\n9\n9\n9\n6\n" && outcome.errors == "", "\(outcome)")
    }
  }

  @Test("such a file does not replace a key that somebody else has made meanwhile")
  func claimedMeanwhile() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cat $M/d/Integer; python3 -c "open('$M/d/Claimed', 'x+').write('a')"
        defaults write d Claimed b; cat $M/d/Claimed; sleep 6; cat $M/d/Claimed
        """)
      #expect(outcome.output == "42\nb\nb\n", "\(outcome)")
      #expect(sandbox.shell("fusermount3 -u $M; defaults read d Claimed").output == "b\n")
    }
  }

  @Test("while the owner is stopped, such a file makes nobody wait, and becomes a key later")
  func claimedLater() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("cat $M/d/*; python3 -c \"open('$M/d/Claimed', 'x+').write('5')\"")
      let owner = try #require(sandbox.owner)
      kill(owner, SIGSTOP)
      for _ in 0..<9 {
        let start = Date()
        #expect(sandbox.shell("getfattr -n user.prefs.type $M/d/Real; ls -l $M/d").status == 0)
        #expect(Date().timeIntervalSince(start) < 2)
        sleep(1)
      }
      kill(owner, SIGCONT)
      sandbox.waitUntil("test \"$(defaults read d Claimed 2>&1)\" = 5")
    }
  }

  @Test("a refused text takes an empty key away only from the program that made it")
  func refusedLater() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      // From the first open(2) on, the kernel sends no RELEASE.
      let outcome = sandbox.shell(
        """
        cat $M/d/Integer; touch $M/d/Empty; printf '\\0' > $M/d/Empty || ls $M/d/Empty | wc -l
        """)
      #expect(outcome.output == "42\n1\n", "\(outcome)")
    }
  }

  @Test("a text that is being written, and a truncation, go on when their domain is renamed")
  func renamedDomain() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      // From the first open(2) on, the kernel sends no RELEASE: the keys count as being created.
      let outcome = sandbox.shell(
        """
        echo 43 > $M/d/Integer; mkdir $M/a $M/c; echo 123456 > $M/a/I; echo abc > $M/c/S
        (printf -- -; mv $M/a $M/b; echo 9) > $M/a/I; cat $M/b/I
        : > $M/c/S; mv $M/c $M/e; sleep 0.5; cat $M/e/S; defaults read b I; defaults read e S
        """)
      #expect(outcome.output == "-9\n-9\n\n", "\(outcome)")
    }
  }

  @Test("no file of a read-only mount shows permission to write")
  func readOnly() throws {
    try withMount(["-o", "ro"], prepare: Fixture.make) {
      (sandbox: Sandbox, _: Mount) throws -> Void in
      let modes = sandbox.shell("find $M -type f | xargs stat -c %A | sort -u").output
      #expect(modes == "-r--------\n")
    }
  }

  @Test("a write inside of a character of a long text changes that character")
  func insideCharacter() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let output = python(
        sandbox,
        """
        text = ('x' * 100 + 'é' + 'y' * 9000 + 'é').encode()
        open(d + 'String', 'wb').write(text + b'\\n')
        f = os.open(d + 'String', os.O_RDWR)
        start = time.time()
        for byte, at in [(0xa8, 101), (0xa8, len(text) - 1), (0xaa, 101)]:
            print(os.pwrite(f, bytes([byte]), at))
        print(time.time() - start < 2)
        print(open(d + 'String', 'rb').read() == text[:101] + b'\\xaa' + text[102:-1] + b'\\xa8\\n')
        """)
      #expect(output == "1\n1\n1\nTrue\nTrue\n")
      #expect(sandbox.shell("$PROBE get d String | cut -b1-102").output.hasSuffix("xê\n"))
    }
  }

  @Test(
    "a piece that ends inside a character, before a longer text, is kept when the text ends there")
  func cutCharacter() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let output = python(
        sandbox,
        """
        def start():
            open(d + 'String', 'wb').write('é'.encode() * 50000)
            return os.open(d + 'String', os.O_RDWR)
        def text(): return open(d + 'String', 'rb').read()
        head = b'a' + 'é'.encode() * 25000 + b'\\xc3'
        f = start(); os.pwrite(f, head, 0); time.sleep(0.15); os.pwrite(f, b'\\xa9', len(head))
        print(text() == head + b'\\xa9')
        f = start(); os.pwrite(f, head, 0); os.ftruncate(f, len(head) - 1)
        print(text() == head[:-1])
        f = start(); os.pwrite(f, head, 0)
        try: os.fsync(f)
        except OSError as error: print(error.errno)
        """)
      #expect(output == "True\nTrue\n22\n")
    }
  }

  @Test("another handle's write does not throw away what a creator's text waits for")
  func otherHandle() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let output = python(
        sandbox,
        """
        text = b'[1' + b',1' * 50000 + b']'
        f = os.open(d + 'New', os.O_WRONLY | os.O_CREAT)
        os.write(f, text); os.pwrite(f, b'[', 0)
        g = os.open(d + 'New', os.O_WRONLY)
        try: os.pwrite(g, b'x', 50000)
        except OSError as error: print(error.errno)
        print(open(d + 'New', 'rb').read() == text)
        """)
      #expect(output == "22\nTrue\n")
    }
  }

  @Test("a type that is set for the next text counts no longer when another program sets the key")
  func wantedType() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        : > $M/d/New; setfattr -n user.prefs.type -v integer $M/d/New
        defaults write d New -string abc; printf '5\\n' >> $M/d/New; defaults read d New
        """)
      #expect(outcome.output == "abc\n5\n", "\(outcome)")
    }
  }

  @Test("setting the time of a file does not undo what was written, nor the truncation before it")
  func timeAfterWrite() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let output = python(
        sandbox,
        """
        text = '{\\n' + ',\\n'.join(f'  "k{i}": "{i:08}"' for i in range(9000)) + '\\n}\\n'
        open(d + 'Dict', 'w').write(text)
        f = os.open(d + 'Dict', os.O_RDWR)
        os.pwrite(f, b'99999999', text.index('00004500'))
        os.ftruncate(f, len(text)); os.utime(f, (5, 1000000000)); os.close(f)
        os.close(os.open(d + 'String', os.O_WRONLY | os.O_TRUNC))
        os.utime(d + 'String', (5, 1000000000))
        time.sleep(0.2)
        print(open(d + 'Dict').read() == text.replace('00004500', '99999999'))
        print([int(os.stat(d + k).st_mtime) for k in ('Dict', 'String')], os.stat(d + 'String').st_size)
        """)
      #expect(output == "True\n[1000000000, 1000000000] 0\n")
    }
  }

  @Test("a truncation is computed again if another mount has changed the key")
  func truncation() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let second = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { second.unmount() }
      let outcome = sandbox.shell(
        "printf abcdef > $M/d/String; touch -d 2020-01-01 $M2/d/String; truncate -s 3 $M/d/String; "
          + "echo $?; cat $M/d/String; cat $M2/d/String")
      #expect(outcome.output == "0\nabcabc")
    }
  }

  @Test(
    "a document reads back as it was written, in every style", arguments: ["xml", "json", "auto"])
  func styles(_ style: String) throws {
    try withMount(["-o", "format=\(style)"], prepare: Fixture.make) {
      (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "printf '{\\n  \"a\": 1\\n}\\n' | tee $M/d/Dict > $C/../text; sleep 5.5; "
          + "cmp $M/d/Dict $C/../text && stat -c %s $M/d/Dict")
      #expect(outcome.output == "13\n")
    }
  }

  @Test("the keys of a renamed domain keep their times")
  func domainTimes() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "touch -d @1000000000 $M/other/Key; mv $M/other $M/new; stat -c %Y $M/new/Key")
      #expect(outcome.output == "1000000000\n")
    }
  }

  @Test("a temporary file that is linked to a key's name keeps type, mode and time, and is listed")
  func linked() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "cd $M/d; printf 8 > .New.a1B2c3; setfattr -n user.prefs.type -v data .New.a1B2c3; "
          + "chmod 400 .New.a1B2c3; touch -d @1000000000 .New.a1B2c3; ln .New.a1B2c3 New; "
          + "stat -c '%a %Y' New; getfattr --only-values -n user.prefs.type New; echo; "
          + "mv String String.bak; ls | grep -c '^String$'; ln String.bak String; "
          + "ls | grep -c '^String$'")
      #expect(outcome.output == "400 1000000000\ndata\n0\n1\n")
    }
  }

  @Test(
    "an empty file with the type of a text replaces a key of another type; one without does not")
  func emptyWithType() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/d; : > .Integer.a1B2c3; mv .Integer.a1B2c3 Integer; cat Integer
        for type in string data; do
          : > .Integer.a1B2c3; setfattr -n user.prefs.type -v $type .Integer.a1B2c3
          mv .Integer.a1B2c3 Integer; wc -c < Integer; defaults read-type d Integer
          defaults write d Integer -int 42
        done
        """)
      #expect(
        outcome.output == "42\n0\nType is string\n0\nType is data\n", "\(outcome)")
    }
  }

  @Test("a removal of a key that only a suite has is refused with EPERM")
  func suite() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "echo other > $M/.prefs/suites/d; cat $M/d/Key; LC_ALL=C rm $M/d/Key 2>&1; "
          + "cat $M/d/Key")
      #expect(outcome.output.hasPrefix("other\n") && outcome.output.hasSuffix("other\n"))
      #expect(outcome.output.contains("Operation not permitted"), "\(outcome)")
    }
  }

  @Test("a list that a program empties and then writes keeps its keys, and the unsaved ones")
  func emptied() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell(
        "cp $C/other.plist $C/../copy; echo new > $M/other/New; : > $C/other.plist; exec 3>> $C/other.plist; "
          + "sleep 2; cat $C/../copy >&3; exec 3>&-")
      sandbox.waitUntil("grep -q New $C/other.plist")
      #expect(sandbox.shell("cat $M/other/Key $M/other/New").output == "other\nnew\n")
      #expect(sandbox.evaluate(sandbox.config + "/other.plist", "sorted(d)") == "['Key', 'New']")
    }
  }

  @Test("a key that is made again at once keeps its mode", arguments: ["mv -f", "ln"])
  func modeOfDeparted(_ tool: String) throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "cd $M/d; echo 1 > K; chmod 640 K; rm K; echo 2 > .T.a1B2c3; \(tool) .T.a1B2c3 K; "
          + "stat -c %a K; rm K; echo 3 > K; stat -c %a K; cat K")
      #expect(outcome.output == "640\n640\n3\n", "\(outcome)")
    }
  }

  @Test("refusals that a program repeats do not fill the log")
  func repeatedRefusals() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("for i in $(seq 200); do echo text > $M/d/Integer; done 2> /dev/null; true")
      let lines = mount.allLogs.split(separator: "\n").filter { $0.contains("d Integer: ") }
      #expect(lines.count == 20, "\(lines.count)")
      #expect(lines.last?.hasSuffix("are not logged for a minute)") == true, "\(mount.allLogs)")
    }
  }

  @Test("a removed file that is open keeps its mode, and takes a new one, also after a takeover")
  func removedMode() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/d; echo a > .T.a1B2c3; chmod 640 .T.a1B2c3; exec 4< .T.a1B2c3; rm .T.a1B2c3
        echo a > K; shown=$(stat -c %a K); exec 5< K; rm K
        stat -Lc %a /dev/fd/4; test "$(stat -Lc %a /dev/fd/5)" = $shown && echo same
        chmod 604 /dev/fd/5; stat -Lc %a /dev/fd/5
        kill -9 $(ps -o pid= --ppid \(mount.guardian))
        stat --cached=never -Lc %a /dev/fd/4 /dev/fd/5
        """)
      #expect(outcome.output == "640\nsame\n604\n640\n604\n", "\(outcome)")
    }
  }

  @Test("removed files that are open take 64 MiB in all, and leave the room when they are closed")
  func removedOpen() throws {
    try withMount(prepare: Fixture.make) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        cd $M/d
        fill() {
          (echo a > $1; exec 5>> $1; rm $1; head -c 16777214 /dev/zero >&5 && echo full
           until test -e $C/../enough; do sleep 0.01; done) 2>> $C/../errors &
        }
        for k in A B C D; do fill $k; done > $C/../full
        until test $(wc -l < $C/../full) = 4; do sleep 0.01; done; fill E
        until grep -q 'No space' $C/../errors; do sleep 0.01; done
        echo temporary > .T.a1B2c3; cat .T.a1B2c3; touch $C/../enough; wait
        exec 5> F; rm F; head -c 16777216 /dev/zero >&5 && stat -Lc %s /dev/fd/5
        printf xyz 1<> /dev/fd/5 && head -c 4 /dev/fd/5 | od -An -c
        """)
      #expect(outcome.output == "temporary\n16777216\n   x   y   z  \\0\n", "\(outcome)")
    }
  }
}
