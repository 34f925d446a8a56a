import Foundation
import Support
import Testing

/// Runs `defaults` as its users do, and compares output, messages and exit statuses. The text of a
/// session is what its commands print, standard error included, without the time and the process
/// number at the start of a message.
@Suite("The defaults command") struct DefaultsCommandTests {
  /// Returns what the session prints, and `[STATUS]` with the exit status of its last command.
  static func run(_ session: String, _ sandbox: Sandbox) -> String {
    let outcome = sandbox.shell("exec 2>&1\n" + session + "\necho \"[$?]\"")
    let time = #/[0-9-]{10} [0-9:]{8}\.[0-9]{3} defaults\[[0-9]+:[0-9]+\] /#
    return outcome.output.replacing(time, with: "")
  }

  @Test("a session prints its text", arguments: sessions)
  func session(_ name: String, _ session: String, _ text: String) throws {
    try withSandbox { sandbox in
      #expect(Self.run(session, sandbox) == text, "\(name)")
    }
  }

  @Test(
    "a wrong command line has status 255, the mistake on standard error, and a line of usage",
    arguments: [
      ("", ""), ("nonsense", "there is no verb nonsense"),
      ("wirte d K x", "there is no verb wirte; is write meant?"),
      ("dlete d", "there is no verb dlete; is delete meant?"),
      ("hist", "there is no verb hist; is history meant?"),
      ("help wirte", "there is no verb wirte; is write meant?"),
      ("--bogus read", "there is no option --bogus before the verb"),
      ("write", "a word is missing at the end"), ("write d", "a word is missing at the end"),
      ("read d K x", "unexpected word x"), ("-host", "-host needs the name of a host"),
      ("-currentHost", "a verb is missing"), ("rename d a", "a word is missing at the end"),
      ("write d K -bool 1", "-bool takes true, false, yes or no, not \"1\""),
      ("write d K -data xy", "-data takes hexadecimal digits, not \"xy\""),
      ("domains x", "unexpected word x"), ("history --bogus", "there is no option --bogus here"),
      (
        "undo", "undo needs the number of a change, or a filter; `prefs history` has them"
      ),
    ])
  func usage(_ words: String, _ mistake: String) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("defaults \(words)")
      #expect(outcome.status == 255, "\(words)")
      #expect(outcome.output.contains(#/^usage: (defaults|prefs) /#), "\(words)")
      #expect(outcome.errors == (mistake.isEmpty ? "" : "defaults: \(mistake)\n"))
      let lines = outcome.output.split(separator: "\n").count
      #expect(mistake.isEmpty ? lines > 30 : lines == 1, "\(words)")
    }
  }

  @Test("plistlib reads what export writes, import reads plistlib's list and merges it")
  func exportImport() throws {
    try withSandbox { sandbox in
      sandbox.makeList(
        sandbox.root + "/in.plist",
        "dict(S='é', I=2**63, F=0.1, B=True, X=b'\\0\\1', A=[1, {'k': 'v'}], "
          + "D=datetime.datetime(2026, 1, 2))")
      #expect(sandbox.shell("defaults write d Old x; defaults import d $C/../in.plist").status == 0)
      #expect(sandbox.shell("defaults export d $C/../out.plist").status == 0)
      #expect(sandbox.shell("head -c 8 $C/../out.plist").output == "bplist00")
      #expect(
        sandbox.evaluate(sandbox.root + "/out.plist", "sorted(d.items())")
          == "[('A', [1, {'k': 'v'}]), ('B', True), ('D', datetime.datetime(2026, 1, 2, 0, 0)), "
          + "('F', 0.1), ('I', 9223372036854775808), ('Old', 'x'), ('S', 'é'), "
          + "('X', b'\\x00\\x01')]")
      sandbox.shell("defaults export d - > $C/../out.xml; defaults import e - < $C/../out.xml")
      #expect(sandbox.shell("head -c 5 $C/../out.xml").output == "<?xml")
      #expect(sandbox.shell("cmp <(defaults read d) <(defaults read e)").status == 0)
      #expect(
        Self.run("defaults import d /nope; defaults import d", sandbox)
          == "Could not read data from /nope\ndefaults: there is no such file\n\n"
          + "Need a path to read from\n[1]\n")
      #expect(
        sandbox.shell("defaults export no - && defaults export no $C/../none").output
          .contains("<dict/>"))
      #expect(sandbox.evaluate(sandbox.root + "/none", "d") == "{}")
      #expect(
        Self.run("echo '(a)' | defaults import d -", sandbox)
          == "Property list (\n    a\n) was not a dictionary\nDefaults have not been changed.\n[1]\n"
      )
    }
  }

  @Test("a name from outside neither makes a line of its own nor moves the terminal's cursor")
  func forged() throws {
    try withSandbox { sandbox in
      sandbox.makeList(
        sandbox.system + "/managed/p.mobileconfig",
        "dict(PayloadType='Configuration', PayloadIdentifier='a\\nb; signed by x\\x1b[8m', "
          + "PayloadDisplayName='n\\ns', PayloadUUID='1', PayloadVersion=1, PayloadContent=["
          + "dict(PayloadType='d', PayloadIdentifier='i', PayloadUUID='2', PayloadVersion=1, K=1)])"
      )
      let outcome = sandbox.shell(
        """
        e=$'x\\nforged\\e[8m'; defaults write "$e" K 1; defaults domains; defaults suites d add "$e"
        defaults suites d; defaults explain d K; defaults profiles; defaults read "$e" None
        defaults apply --dry-run <(echo '{"d": {"a\\nb\\u001b[8m": 1}}'); defaults delete "$e" No
        """)
      let lines = (outcome.output + outcome.errors).components(separatedBy: "\n")
      #expect(
        !lines.contains { $0.hasPrefix("forged") || $0.hasPrefix("b; signed") || $0.hasPrefix("b") }
      )
      #expect(!(outcome.output + outcome.errors).contains("\u{1B}"), "\(outcome)")
      #expect(outcome.output.contains("x\\u{A}forged\\u{1B}[8m"), "\(outcome)")
      #expect(outcome.output.contains("a\\u{A}b; signed by x\\u{1B}[8m"), "\(outcome)")
    }
  }

  @Test("export keeps a file's mode and link, writes to a pipe, and plistlib reads its XML")
  func exportTargets() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        """
        defaults write d K -date 2026-01-02T03:04:05.25Z; cd $C/..
        touch file; chmod 640 file; ln -s file link; mkfifo pipe
        """)
      #expect(
        Self.run("cd $C/..; defaults export d link; stat -c '%a %F' file link", sandbox)
          == "640 regular file\n777 symbolic link\n[0]\n")
      #expect(
        Self.run(
          "cd $C/..; ln -s later early; defaults export d early; stat -c %F early later", sandbox)
          == "symbolic link\nregular file\n[0]\n")
      #expect(
        Self.run(
          "cd $C/..; (cat pipe | head -c 6) & defaults export d pipe; wait; test -p pipe",
          sandbox)
          == "bplist[0]\n")
      sandbox.shell("defaults export d - > $C/../d.xml")
      #expect(
        sandbox.evaluate(sandbox.root + "/d.xml", "d")
          == "{'K': datetime.datetime(2026, 1, 2, 3, 4, 5)}")
      #expect(
        sandbox.shell("defaults read --plist d K").output.contains("<date>2026-01-02T03:04:05Z"))
    }
  }

  @Test("a value nested too deep is refused; one that is accepted is read after a restart")
  func depth() throws {
    try withSandbox { sandbox in
      let nest = { (count: Int) in
        "$(printf '(%.0s' $(seq \(count)))$(printf ')%.0s' $(seq \(count)))"
      }
      #expect(sandbox.shell("defaults write d K \"\(nest(600))\"").status == 1)
      #expect(sandbox.shell("defaults write d K -array \"\(nest(499))\"").status == 0)
      #expect(sandbox.shell("defaults write --path d P:$(seq -s: 20000) x").status == 1)
      sandbox.shell(
        "p=$(cat \(sandbox.state)/prefsfs/*/lock); kill $p; while kill -0 $p; do sleep 0.05; done")
      #expect(sandbox.shell("defaults read d K | wc -l").output == "1000\n")
    }
  }

  @Test("without prefsd a command names the program that it could not start")
  func noOwner() throws {
    try withSandbox { sandbox in
      for words in ["read d", "read d K", "write d K x", "delete d", "rename d a b", "domains"] {
        let outcome = sandbox.shell("PREFSFS_PREFSD=/nope defaults \(words)")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("/nope"), "\(words): \(outcome.errors)")
        #expect(outcome.errors.contains("PREFSFS_PREFSD names it"), "\(words)")
      }
    }
  }

  @Test("a plain write or delete changes the user's list and this host's")
  func bothLists() throws {
    try withSandbox { sandbox in
      let session = """
        defaults -currentHost write d K host; defaults write d K plain; defaults read d K
        defaults -currentHost read d K; defaults read $C/d K
        defaults delete d K; defaults read d 2>&1 | grep -c exist
        """
      #expect(Self.run(session, sandbox) == "plain\nplain\nplain\n1\n[0]\n")
    }
  }

  @Test("a domain is read as it was at one moment, whatever is written meanwhile")
  func moment() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.shell("mkdir $M/d; for i in $(seq 300); do echo 0 > $M/d/K$i; done")
      sandbox.shell("echo '{\"d\": {' > $C/../a; echo '{\"d\": {' > $C/../b")
      sandbox.shell(
        "for i in $(seq 300); do echo \"\\\"K$i\\\": 1,\" >> $C/../a; echo \"\\\"K$i\\\": 2,\" >> $C/../b; done"
      )
      sandbox.shell("for f in a b; do echo '\"Z\": 0}}' >> $C/../$f; done")
      let writer = try sandbox.start(
        "while true; do defaults apply $C/../a; defaults apply $C/../b; done")
      defer { sandbox.end(writer) }
      let outcome = sandbox.shell(
        "sleep 0.3; for i in $(seq 60); do defaults read d | grep -o 'K.* = .*;' | sed 's/.*= //' | sort -u | wc -l; done | sort -u"
      )
      #expect(outcome.output == "1\n", "\(outcome)")
    }
  }

  @Test("--sync, DEFAULTS_SYNC=1 and synchronize return when the list has the change")
  func synchronized() throws {
    try withSandbox { sandbox in
      let read =
        "/usr/bin/python3 -c \"import plistlib; print(plistlib.load(open('$C/d.plist', 'rb'))['K'])\""
      let session = """
        defaults write --sync d K 1; \(read)
        DEFAULTS_SYNC=1 defaults write d K 2; \(read)
        defaults write d K 3; defaults synchronize d; \(read)
        defaults write d K 4; defaults synchronize; \(read)
        """
      #expect(Self.run(session, sandbox) == "1\n2\n3\n4\n[0]\n")
    }
  }

  @Test("a list's name means its domain, an empty file is a list, GNUstep's global list is found")
  func otherStores() throws {
    try withSandbox { sandbox in
      sandbox.shell("mkdir $C/../gs; : > $C/e.plist")
      sandbox.makeList(sandbox.root + "/gs/NSGlobalDomain.plist", "dict(K='global')", format: "XML")
      let session = """
        defaults write x.plist K 1; defaults read x K
        defaults write e K 2; defaults read e K; defaults synchronize
        $PREFSFS $C/../gs $M; cat $M/NSGlobalDomain/K; ls $M; fusermount3 -u $M
        """
      #expect(Self.run(session, sandbox) == "1\n2\nglobal\nNSGlobalDomain\n[0]\n")
      #expect(sandbox.evaluate(sandbox.config + "/e.plist", "d['K']") == "2")
    }
  }

  @Test("a path may name a list of the user, of the machine or of any directory")
  func paths() throws {
    try withSandbox { sandbox in
      let session = """
        defaults write $C/d Own x; defaults read d Own
        defaults write $PREFSFS_SYSTEM_DIR/d Machine y; defaults read $PREFSFS_SYSTEM_DIR/d.plist
        mkdir $C/../other; defaults write $C/../other/d.plist There -int 1
        defaults write ~/Library/Preferences/d Home z; defaults read d Home
        defaults write $C/../new/deep/d K x; defaults read $C/../new/deep/d K
        defaults write '/Library/Managed Preferences/m' K f; defaults read "$PREFSFS_SYSTEM_DIR/managed/m" K
        defaults write '/Library/Managed Preferences/ada/m' K a; cd $PREFSFS_SYSTEM_DIR/managed; ls . ada
        defaults write /proc/no/such/d K x 2>&1 | head -1
        """
      #expect(
        Self.run(session, sandbox)
          == "x\n{\n    Machine = y;\n}\nz\nx\nf\n.:\nada\nm.plist\n\nada:\nm.plist\n"
          + "Could not write domain /proc/no/such/d; exiting\n[0]\n")
      #expect(sandbox.evaluate(sandbox.root + "/other/d.plist", "d") == "{'There': 1}")
      sandbox.waitUntil("test -f $C/d.plist")
    }
  }

  @Test("-app takes the domain from the application's bundle")
  func application() throws {
    try withSandbox { sandbox in
      sandbox.shell("mkdir -p ~/Applications/{Edit.app/Contents,Plain.app}")
      sandbox.makeList(
        sandbox.root + "/home/Applications/Edit.app/Contents/Info.plist",
        "dict(CFBundleIdentifier='org.example.edit')")
      let session = """
        defaults write -app Edit K x; defaults read org.example.edit K
        defaults write -app ~/Applications/Plain.app K y; defaults read Plain K
        defaults read -app None
        """
      #expect(
        Self.run(session, sandbox)
          == "x\ny\nCouldn't find an application named \"None\"; defaults unchanged\n[1]\n")
    }
  }

  @Test("a write to a forced key is refused, and explain says why")
  func forced() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.system + "/managed/d.plist", "dict(K=1)")
      let session = """
        defaults write d K 2; defaults write d Other x; defaults -currentHost write d K 3
        defaults explain d K; defaults explain d No
        """
      #expect(
        Self.run(session, sandbox).replacing(sandbox.root, with: "")
          .replacing(#/\.[0-9A-F-]{36}\./#, with: ".HOST.") == """
            Could not write domain d; exiting
            defaults: d K: the administrator has set it (a managed list)
            * managed (forced): 1
                /system/managed/d.plist
              host: 3
                /config/ByHost/d.HOST.plist

            The domain/default pair of (d, No) does not exist
            [1]

            """)
    }
  }

  @Test("apply prints what differs, and changes all or nothing")
  func apply() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        """
        echo '{"d": {"I": 5, "A": ["x"]}, "NSGlobalDomain": {"G": true}}' > $C/../s.json
        echo '{"d": {"I": 6}, "e": {"K": 1}}' > $C/../forced.json; echo '{"d": 1}' > $C/../no.json
        """)
      sandbox.makeList(sandbox.system + "/managed/e.plist", "dict(K=2)")
      let lines = "NSGlobalDomain G: (none) -> 1\nd A: (none) -> ( x )\nd I: (none) -> 5\n"
      #expect(Self.run("defaults apply --dry-run $C/../s.json", sandbox) == lines + "[2]\n")
      #expect(Self.run("defaults domains", sandbox) == "\n[0]\n")
      #expect(Self.run("defaults apply $C/../s.json", sandbox) == lines + "[2]\n")
      #expect(Self.run("defaults apply $C/../s.json", sandbox) == "[0]\n")
      for option in ["", "--dry-run"] {
        let outcome = sandbox.shell("defaults apply \(option) $C/../forced.json")
        #expect(outcome.status == 1 && outcome.output.isEmpty)
        #expect(outcome.errors.contains("e K: the administrator has set it"))
      }
      #expect(sandbox.shell("defaults apply $C/../no.json").status == 1)
      #expect(Self.run("defaults read d I", sandbox) == "5\n[0]\n")
    }
  }

  @Test("watch prints each change of an effective value, whichever program makes it")
  func watch() throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/d.plist", "dict(K='old', L=1)")
      let all = try sandbox.start("exec defaults watch > $C/../all 2>&1")
      let one = try sandbox.start("exec defaults watch d K > $C/../one 2>&1")
      defer { for process in [all, one] { sandbox.end(process) } }
      sandbox.waitUntil("grep -q watching $C/../all && grep -q watching $C/../one")
      sandbox.shell(
        """
        defaults write d K new; defaults write d K new; defaults write d L -int 2
        defaults -currentHost write d K here; defaults write $C/d K hidden; defaults delete d K
        """)
      sandbox.shell("echo '{ torn' > $C/torn.plist")
      sandbox.makeList(sandbox.config + "/e.plist", "dict(O=True)")
      sandbox.waitUntil("grep -q '^user e O' $C/../all")
      let lines = """
        user d K: old -> new
        host d K: new -> here
        host d K: here -> (none)

        """
      #expect(sandbox.shell("grep -v ^defaults $C/../one").output == lines)
      #expect(
        sandbox.shell("grep -v ^defaults $C/../all").output
          == lines.replacing("host d K: new", with: "user d L: 1 -> 2\nhost d K: new")
          + "user e O: (none) -> 1\n")
    }
  }

  @Test("nothing is printed to a closed standard output, or goes where it should not")
  func closedOutput() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("defaults write d K v; defaults read d K >&-; echo $?")
      #expect(outcome.output == "1\n", "\(outcome)")
      #expect(sandbox.shell("defaults read d K 2>&-").output == "v\n")
    }
  }

  @Test("watch ends after its reader, also where SIGPIPE is ignored")
  func watchWithoutReader() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        mkfifo $C/../pipe; (trap '' PIPE; timeout 20 defaults watch d > $C/../pipe 2> $C/../log; \
          echo $? > $C/../status) &
        exec 5< $C/../pipe; until grep -q watching $C/../log; do sleep 0.01; done; exec 5<&-
        defaults write d K v; wait; cat $C/../status
        (sleep 1; defaults write d K w) & timeout 20 defaults watch d K 2> /dev/null | head -n 1
        echo ${PIPESTATUS[0]}; wait
        """)
      #expect(outcome.output == "0\nuser d K: v -> w\n0\n", "\(outcome)")
    }
  }

  @Test("watch prints a change of a suite, which programs of the domain read")
  func watchSuites() throws {
    try withSandbox { sandbox in
      sandbox.shell("defaults write d L 1; defaults suites d add s")
      let watch = try sandbox.start("exec defaults watch d > $C/../watched 2>&1")
      defer { sandbox.end(watch) }
      sandbox.waitUntil("grep -q watching $C/../watched")
      sandbox.shell("defaults write s K new")
      sandbox.waitUntil("grep -qx 'suite:s d K: (none) -> new' $C/../watched")
    }
  }

  @Test("commands that add suites, or patterns of the cloud, at once lose nothing")
  func concurrentSuites() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        """
        for n in 1 2 3 4 5 6 7 8; do
          defaults suites d add s$n & defaults cloud add d "K$n*" &
        done; wait
        """)
      #expect(sandbox.shell("defaults suites d | wc -l").output == "8\n")
      #expect(sandbox.shell("defaults read prefsfs.cloud Keys | grep -c 'K.\\*'").output == "8\n")
    }
  }

  @Test("a pattern that leaves the cloud takes along the keys that only a schema has there")
  func removedPattern() throws {
    try withSandbox { sandbox in
      sandbox.shell("mkdir -p \(sandbox.system)/schemas")
      sandbox.makeList(
        sandbox.system + "/schemas/d.plist",
        "dict(prefs_authoritative=True, pfm_subkeys=["
          + "dict(pfm_name=n, prefs_cloud=n != 'P3') for n in ['P1', 'P2', 'P3', 'Q']])")
      let local = "defaults read prefsfs.cloud Local | tr -d ' \\n'"
      sandbox.shell("defaults cloud add d 'P*'; defaults cloud remove d 'P*'")
      #expect(sandbox.shell(local).output == "{d=(P1,P2);}")
      #expect(sandbox.shell("defaults read prefsfs.cloud Keys").status == 1)
      sandbox.shell("defaults cloud add d '*2'")
      #expect(sandbox.shell(local).output == "{d=(P1);}")
    }
  }

  @Test(
    "a list that is named by its path is made with its directory",
    arguments: [
      "write $HOME/new/dir/x '{a = b;}'", "write $HOME/new/dir/x a b",
      "import $HOME/new/dir/x $HOME/in",
    ])
  func newDirectory(_ words: String) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        "echo '{a = b;}' > $HOME/in; defaults \(words) && defaults read $HOME/new/dir/x a")
      #expect(outcome.output == "b\n", "\(outcome)")
    }
  }

  @Test("eight commands that add to one array at once lose nothing")
  func concurrentAdds() throws {
    try withSandbox { sandbox in
      sandbox.shell(
        "for n in $(seq 8); do (for i in $(seq 10); do defaults write d A -array-add $n-$i; done) & done; wait"
      )
      #expect(
        sandbox.shell("defaults read --json d A | grep -c '\"'").output == "80\n")
    }
  }
}
