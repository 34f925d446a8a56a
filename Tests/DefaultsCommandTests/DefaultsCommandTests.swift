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

  static let sessions: [(name: String, session: String, text: String)] = [
    ("read prints a value", "defaults write d K -int 5; defaults read d K", "5\n[0]\n"),
    ("verbs may be in any case", "defaults WRITE d K x; defaults Read d K", "x\n[0]\n"),
    (
      "read of a missing key fails", "defaults write d K x; defaults read d No",
      "\nThe domain/default pair of (d, No) does not exist\n[1]\n"
    ),
    (
      "read-type in a missing domain fails", "defaults read-type no No",
      "\nThe domain/default pair of (no, No) does not exist\n[1]\n"
    ),
    ("read of a missing domain fails", "defaults read no", "\nDomain no does not exist\n[1]\n"),
    (
      "read of a missing global key fails", "defaults read -g No",
      "\nThe domain/default pair of (kCFPreferencesAnyApplication, No) does not exist\n[1]\n"
    ),
    (
      "read of an empty global domain fails", "defaults read NSGlobalDomain",
      "\nDomain Apple Global Domain does not exist\n[1]\n"
    ),
    (
      "the global domain has four names",
      "defaults write -g A 1; defaults write 'Apple Global Domain' B 2; "
        + "defaults write NSGlobalDomain C 3; defaults read -globalDomain",
      "{\n    A = 1;\n    B = 2;\n    C = 3;\n}\n[0]\n"
    ),
    (
      "read-type names each type",
      "defaults write d S s; defaults write d I -int 1; defaults write d F -float 1; "
        + "defaults write d B -bool yes; defaults write d D -date now; defaults write d X -data 00; "
        + "defaults write d A -array; defaults write d O -dict\n"
        + "for k in S I F B D X A O; do defaults read-type d $k; done",
      "Type is string\nType is integer\nType is float\nType is boolean\nType is date\n"
        + "Type is data\nType is array\nType is dictionary\n[0]\n"
    ),
    (
      "write of a domain takes a dictionary only", "defaults write d key",
      "\nRep argument is not a dictionary\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "write of a dictionary replaces a domain",
      "defaults write d Old x; defaults -currentHost write d Old y; defaults write d '{New = z;}'; "
        + "defaults read d", "{\n    New = z;\n}\n[0]\n"
    ),
    (
      "-array-add appends to an array",
      "defaults write d A -array-add a; defaults write d A -array-add a -int 1; defaults read d A",
      "(\n    a,\n    a,\n    1\n)\n[0]\n"
    ),
    (
      "-dict-add adds to a dictionary",
      "defaults write d O -dict-add a 1 b 2; defaults write d O -dict-add b 3; defaults read d O",
      "{\n    a = 1;\n    b = 3;\n}\n[0]\n"
    ),
    (
      "-array-add takes an array only", "defaults write d S s; defaults write d S -array-add a",
      "Value for key S is not an array; cannot append.  Leaving defaults unchanged.\n[1]\n"
    ),
    (
      "-dict-add takes a dictionary only", "defaults write d S s; defaults write d S -dict-add a b",
      "Value for key S is not a dictionary; cannot append.  Leaving defaults unchanged.\n[1]\n"
    ),
    (
      "rename replaces the other key",
      "defaults write d A -int 1; defaults write d B x; defaults rename d A B; "
        + "defaults read d", "{\n    B = 1;\n}\n[0]\n"
    ),
    (
      "rename of a missing key fails", "defaults rename d A B",
      "Key A does not exist in domain d; leaving defaults unchanged\n[1]\n"
    ),
    (
      "delete removes a key",
      "defaults write d A x; defaults write d B y; defaults delete d A; "
        + "defaults read d", "{\n    B = y;\n}\n[0]\n"
    ),
    (
      "remove removes a domain", "defaults write d A x; defaults remove d; defaults read d",
      "\nDomain d does not exist\n[1]\n"
    ),
    (
      "delete-all removes a domain",
      "defaults write d A x; defaults delete-all d; defaults domains", "\n[0]\n"
    ),
    (
      "delete of a missing domain fails", "defaults delete d",
      "\nDomain (d) not found.\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "delete of a missing key fails", "defaults write d A x; defaults delete d B",
      "\nDomain (d) not found.\nDefaults have not been changed.\n[1]\n"
    ),
    (
      "domains lists all but the global domain",
      "for d in b.c a -g; do defaults write $d K x; done; defaults domains",
      "a, b.c\n[0]\n"
    ),
    (
      "read without a domain prints them all",
      "for d in b.c a -g; do defaults write $d K x; done; defaults read",
      "{\n    \"Apple Global Domain\" =     {\n        K = x;\n    };\n    a =     {\n"
        + "        K = x;\n    };\n    \"b.c\" =     {\n        K = x;\n    };\n}\n[0]\n"
    ),
    (
      "find searches keys and values in any case",
      "defaults write d Needle x; defaults write d K -array -int 1 'a nEEdle b'; "
        + "defaults write e K no; defaults find needle",
      "Found 2 keys in domain 'd': {\n    K =     (\n        1,\n        \"a nEEdle b\"\n    );\n"
        + "    Needle = x;\n}\n[0]\n"
    ),
    (
      "find says that it found nothing",
      "defaults find zzz", "No domain, key, nor value containing 'zzz'\n[0]\n"
    ),
    (
      "-currentHost and -host use this host's list",
      "defaults write d K any; defaults -currentHost write d K here; "
        + "defaults read d K; defaults -currentHost delete d K; defaults read d K; "
        + "defaults -host localhost read d K",
      "here\nany\n\nThe domain/default pair of (d, K) does not exist\n[1]\n"
    ),
    (
      "a plain write changes this host's value too",
      "defaults -currentHost write d K here; "
        + "defaults write d K there; defaults -currentHost read d K", "there\n[0]\n"
    ),
    (
      "--path reaches into nested values",
      "defaults write --path d K:a:b -int 1; defaults write --path d K:a:c x; "
        + "defaults delete --path d K:a:b; defaults read --path d K:a",
      "{\n    c = x;\n}\n[0]\n"
    ),
    (
      "read of a path that leads nowhere fails", "defaults write d K x; defaults read --path d K:a",
      "\nThe domain/default pair of (d, K:a) does not exist\n[1]\n"
    ),
    (
      "--apple-text escapes as macOS does",
      "defaults write d K 'à'; defaults --apple-text read d K; defaults read d K",
      "\\340\nà\n[0]\n"
    ),
    (
      "escapes in an untyped word are read",
      "defaults write d K '@\\U21a9'; defaults read d K", "@↩\n[0]\n"
    ),
    (
      "the name of the global list is the global domain",
      "defaults write .GlobalPreferences K -int 1; defaults read -g K", "1\n[0]\n"
    ),
    (
      "-currentHost lists and reads this host's domains",
      "defaults write a K x; defaults -currentHost write b K x; defaults -currentHost domains; "
        + "defaults -currentHost read", "b\n{\n    b =     {\n        K = x;\n    };\n}\n[0]\n"
    ),
    (
      "whole reals have no exponent",
      "defaults write d K -float 100000000; defaults read d K", "100000000\n[0]\n"
    ),
    (
      "a domain is gone with its last key",
      "defaults write d K x; defaults delete d K; defaults domains", "\n[0]\n"
    ),
    (
      "a name that no list can have does not exist", "defaults read a/b; defaults read a/b K",
      "\nDomain a/b does not exist\n\n"
        + "The domain/default pair of (a/b, K) does not exist\n[1]\n"
    ),
    (
      "a rename renames the key in this host's list too, and each list keeps its value",
      "defaults write d A x; defaults -currentHost write d A y; defaults write d B z; "
        + "defaults rename d A B; defaults read $C/d; defaults -currentHost read d; "
        + "defaults read d A",
      """
      {
          B = x;
      }
      {
          B = y;
      }

      The domain/default pair of (d, A) does not exist
      [1]

      """
    ),
    (
      "a key of this host alone is renamed there alone",
      "defaults -currentHost write d A y; defaults write d B z; defaults rename d A B; "
        + "defaults -currentHost read d B; defaults -currentHost delete d; defaults read d B | tail -1",
      "y\n\nThe domain/default pair of (d, B) does not exist\n[0]\n"
    ),
    (
      "U+FFFD in an argument is UTF-8",
      "defaults write d $'\\xef\\xbf\\xbd' v; defaults read d $'\\xef\\xbf\\xbd'",
      "v\n[0]\n"
    ),
    (
      "a list that became unreadable refuses the next write at once",
      "defaults write --sync d A x; echo '{' > $C/d.plist; sleep 0.2; defaults write d A y "
        + "2> /dev/null; echo $?; defaults read d A 2> /dev/null", "1\n[1]\n"
    ),
    (
      "a date with a fraction is XML in whole seconds, also alone",
      "defaults write d A -date 2026-11-21T07:20:00.5Z; defaults read --plist d A | tail -2 | head -1",
      "<date>2026-11-21T07:20:00Z</date>\n[0]\n"
    ),
    (
      "history forget needs a domain",
      "defaults history forget > $C/../help; s=$?; head -c 5 $C/../help; "
        + "(exit $s)", "usage[255]\n"
    ),
    (
      "declared looks at this host's declarations too",
      "defaults -currentHost apply --as n - <<< '{\"d\":{\"A\":1}}' > /dev/null; "
        + "defaults -currentHost write d A 2; defaults -currentHost declared --drift | cut -c1-25",
      "d A: declared 1 (n), is 2\n[0]\n"
    ),
    (
      "an argument that is not UTF-8 is refused", "defaults write d $'\\xff' v",
      "An argument is not UTF-8; nothing was done\n[1]\n"
    ),
    (
      "a full device is reported", "defaults write d K x; defaults read d > /dev/full",
      "Could not write to standard output: No space left on device\n[1]\n"
    ),
    (
      "the 30th of February prints the usage", "defaults write d K -date 2026-02-30 | head -1",
      "usage: defaults [--apple-text] [-currentHost | -host HOST] VERB ...\n[0]\n"
    ),
    (
      "--json prints JSON",
      "defaults write d K -array -int 1 -float 2 -bool yes; defaults read --json d",
      "{\n  \"K\": [\n    1,\n    2.0,\n    true\n  ]\n}\n[0]\n"
    ),
  ]

  @Test("a session prints its text", arguments: sessions)
  func session(_ name: String, _ session: String, _ text: String) throws {
    try withSandbox { sandbox in
      #expect(Self.run(session, sandbox) == text, "\(name)")
    }
  }

  @Test(
    "a wrong command line prints the usage on standard output, with status 255",
    arguments: [
      "", "nonsense", "write", "write d", "read d K x", "-host", "rename d a",
      "write d K -bool 1", "domains x", "write d K",
    ])
  func usage(_ words: String) throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell("defaults \(words)")
      if words == "write d" || words == "write d K" {
        #expect(outcome.status == (words == "write d" ? 255 : 1))
        return
      }
      #expect(outcome.status == 255, "\(words)")
      #expect(outcome.output.hasPrefix("usage: defaults"), "\(words)")
      #expect(outcome.errors.isEmpty)
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
          == "Could not read data from /nope\n\nNeed a path to read from\n[1]\n")
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
        defaults write /proc/no/such/d K x 2>&1 | head -1
        """
      #expect(
        Self.run(session, sandbox)
          == "x\n{\n    Machine = y;\n}\nz\nx\nCould not write domain /proc/no/such/d; exiting\n[0]\n"
      )
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
        """)
      #expect(outcome.output == "0\n", "\(outcome)")
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
