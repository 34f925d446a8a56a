import Foundation
import Support
import Testing

/// Rules on a real store: `prefsd` and the program that it starts for them.
@Suite("Rules of what happens when values change") struct EffectsTests {
  /// A rule that appends a line with the changed keys and the value of `K` to `$C/../log`.
  private static func rule(_ keys: String, delay: Double = 0.05) -> String {
    """
    {"Keys": ["\(keys)"], "Delay": \(delay),
     "Run": "echo $PREFS_CHANGED = $(jq -c .d.K) >> $XDG_CONFIG_HOME/../log"}
    """
  }

  private func set(_ sandbox: Sandbox, _ name: String, _ rule: String) throws {
    let document = "{\"prefsfs.effects\": {\"\(name)\": \(rule)}}"
    try document.write(toFile: sandbox.root + "/rule.json", atomically: true, encoding: .utf8)
    let outcome = sandbox.shell("defaults apply --rules $C/../rule.json")
    #expect(outcome.status == 2, "\(outcome)")
  }

  /// Waits until the log has that many lines, and then for as long as a further run would take.
  private func settle(_ sandbox: Sandbox, _ lines: Int, milliseconds: UInt32 = 150) {
    sandbox.waitUntil("[ $(cat $C/../log | wc -l) -ge \(lines) ]")
    usleep(milliseconds * 1000)
    #expect(sandbox.shell("cat $C/../log | wc -l").output == "\(lines)\n")
  }

  @Test(
    "forty keys in one apply are one run, the same again is none, and so is a change and its undo")
  func runs() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      sandbox.shell("defaults write d K 1; touch $C/../log")
      try set(sandbox, "r", Self.rule("d/*", delay: 0.3))
      settle(sandbox, 1)
      let keys = (0..<40).map { "\"K\($0)\": 1" }.joined(separator: ",")
      let document = "{\"d\": {\"K\": 2, \(keys)}}"
      try document.write(toFile: sandbox.root + "/d.json", atomically: true, encoding: .utf8)
      sandbox.shell("defaults apply $C/../d.json")
      settle(sandbox, 2, milliseconds: 450)
      sandbox.shell(
        "defaults apply $C/../d.json; defaults write d K -int 3; defaults write d K -int 2")
      settle(sandbox, 2, milliseconds: 450)
      #expect(sandbox.shell("tail -n 1 $C/../log | grep -o '= .*'").output == "= 2\n")
      let report = sandbox.shell("defaults effects").output
      #expect(report.hasPrefix("r   up to date   ran "), "\(report)")
      #expect(report.hasSuffix(", status 0, for d K, d K0, d K1 and 38 more\n"), "\(report)")
      // Without a rule there is no program.
      sandbox.shell("defaults delete prefsfs.effects r")
      sandbox.waitUntil("! pgrep -f \"effects --serve --store $C\" > /dev/null")
      #expect(sandbox.shell("defaults effects").output == "")
    }
  }

  @Test("each way of changing is one run")
  func ways() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.shell("mkdir $M/d; echo 0 > $M/d/K; touch $C/../log")
      try set(sandbox, "r", Self.rule("d/K"))
      settle(sandbox, 1)
      let profile = """
        import plistlib; plistlib.dump(dict(PayloadType='Configuration', PayloadVersion=1,
        PayloadIdentifier='p', PayloadUUID='u', PayloadContent=[dict(PayloadVersion=1,
        PayloadType='com.apple.ManagedClient.preferences', PayloadUUID='v', PayloadIdentifier='q',
        PayloadContent={'d': {'Forced': [dict(mcx_preference_settings={'K': 5})]}})]),
        open('$PREFSFS_SYSTEM_DIR/managed/p.mobileconfig', 'wb'))
        """
      let edit = """
        import plistlib; p = '$C/d.plist'; l = plistlib.load(open(p, 'rb')); l['K'] = 7
        import os; plistlib.dump(l, open(p + '.new', 'wb')); os.rename(p + '.new', p)
        """
      let ways = [
        ("echo 1 > $M/d/K", "1"), ("defaults write d K -int 2", "2"),
        ("python3 -c \"\(profile)\"", "5"), ("rm $PREFSFS_SYSTEM_DIR/managed/p.mobileconfig", "2"),
        ("defaults undo $(defaults history d K | grep ' user d K: 1 -> 2' | cut -d' ' -f1)", "1"),
        ("printf '{\"d\": {\"K\": 4}}' | defaults apply --as site -", "4"),
        ("defaults undeclare site", "1"),
        ("defaults write --sync d Other 1; python3 -c \"\(edit)\"", "7"),
        ("defaults delete d K", "null"),
      ]
      for (index, (way, value)) in ways.enumerated() {
        let outcome = sandbox.shell(way)
        settle(sandbox, index + 2)
        #expect(
          sandbox.shell("tail -n 1 $C/../log").output == "d K = \(value)\n", "\(way) \(outcome)")
      }
      let report = sandbox.shell("cat $M/.prefs/effects").output
      #expect(report.hasPrefix("r   up to date   ran ") && report.hasSuffix(", for d K\n"))
    }
  }

  @Test("kill -9 of everything between change and run loses nothing")
  func kills() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      sandbox.shell("touch $C/../log")
      try set(sandbox, "r", Self.rule("d/K"))
      settle(sandbox, 1)
      for (round, pause) in [0, 20, 50, 60, 70, 90].enumerated() {
        sandbox.shell("defaults write d K -int \(round)")
        usleep(UInt32(pause) * 1000)
        sandbox.shell("pkill -9 -f \"effects --serve --store $C\"")
        sandbox.killOwner()
        sandbox.shell("defaults read d K")
        sandbox.waitUntil("tail -n 1 $C/../log | grep -q '= \(round)$'")
      }
    }
  }

  @Test("a list of rules that cannot be read for a while has them forgotten by nobody")
  func damagedList() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      // One that keeps the program running.
      let managed = sandbox.system + "/managed/prefsfs.effects.plist"
      sandbox.makeList(managed, "dict(m=dict(Keys='x/*', Run='true'))")
      sandbox.shell("chmod 644 \(managed); defaults write d K 1; touch $C/../log")
      try set(sandbox, "r", Self.rule("d/K"))
      settle(sandbox, 1)
      sandbox.waitUntil("[ $(defaults effects | grep -c ' up to date ') = 2 ]")
      sandbox.shell(
        """
        defaults synchronize; cd $C; cp -p prefsfs.effects.plist ../list; echo x > ../bad
        mv ../bad prefsfs.effects.plist
        """)
      sandbox.waitUntil("! defaults effects | grep -q '^r '")
      settle(sandbox, 1)
      sandbox.shell("mv $C/../list $C/prefsfs.effects.plist")
      sandbox.waitUntil("defaults effects | grep -q '^r '")
      settle(sandbox, 1, milliseconds: 400)
    }
  }

  @Test("a file is written, left alone where it was edited, and replaced if asked")
  func writes() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      sandbox.shell("mkdir -p $C/../share/preferences/schemas")
      sandbox.makeList(
        sandbox.root + "/share/preferences/schemas/d.plist",
        "dict(pfm_domain='d', prefs_authoritative=True, pfm_subkeys=[dict(pfm_name='K', "
          + "pfm_type='integer'), dict(pfm_name='L', pfm_type='integer', pfm_default=4)])")
      sandbox.shell("defaults write d K -int 1")
      let rule = #"{"Keys": ["d/*"], "Delay": 0.05, "Write": "~/d.json", "As": "json"}"#
      try set(sandbox, "w", rule)
      sandbox.waitUntil("[ $(jq .K $HOME/d.json) = 1 ]")
      sandbox.waitUntil("defaults effects | grep -q '^w   up to date   wrote .*/d.json$'")
      // It is the effective document, with the schema's defaults.
      let same = "defaults export --effective --as json d | cmp - $HOME/d.json; jq .L $HOME/d.json"
      #expect(sandbox.shell(same).output == "4\n")
      sandbox.shell("echo >> $HOME/d.json; defaults write d K -int 2")
      sandbox.waitUntil("defaults effects | grep -q '^w   failed   .*edited since.*--over w'")
      #expect(sandbox.shell("jq .K $HOME/d.json").output == "1\n")
      #expect(sandbox.shell("defaults effects run w").status == 1)
      #expect(sandbox.shell("defaults effects run --over w").status == 0)
      #expect(sandbox.shell("jq .K $HOME/d.json; stat -c %a $HOME/d.json").output == "2\n600\n")
      #expect(sandbox.shell("defaults effects check").output == "")
      let second = rule.replacingOccurrences(of: "\"Delay\"", with: "\"Dellay\"")
      try set(sandbox, "x", second)
      let check = sandbox.shell("defaults effects check")
      let expected = "x: Dellay means nothing\nx: w writes \(sandbox.root)/home/d.json too; "
      #expect(check.status == 1 && check.output.hasPrefix(expected), "\(check)")
    }
  }

  @Test("a document with rules shows their commands, and needs --rules")
  func consent() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let document = #"{"prefsfs.effects": {"r": {"Keys": "d/*", "Run": "touch x"}}}"#
      try document.write(toFile: sandbox.root + "/r.json", atomically: true, encoding: .utf8)
      for (command, status) in [
        ("apply", Int32(1)), ("apply --as site", 1), ("apply --dry-run", 2),
        ("apply --as site --dry-run", 2),
      ] {
        let outcome = sandbox.shell("defaults \(command) $C/../r.json")
        let shows = outcome.output.contains("r runs \"touch x\"\n")
        #expect(outcome.status == status && shows, "\(outcome)")
        #expect(sandbox.shell("defaults read prefsfs.effects").status == 1)
      }
      let list = "defaults import prefsfs.effects -"
      #expect(sandbox.shell("echo '{\"r\": {\"Run\": \"x\"}}' | \(list)").status == 1)
      // Neither the ledger of declarations nor adopting is a way around it.
      let ways = sandbox.shell(
        """
        cd $C/..; printf '{"d": {"A": 1}}' > a.json; defaults apply --as a a.json > /dev/null
        defaults write d A -int 2
        defaults declared --adopt - < a.json > /dev/null 2>&1; test -e ./- || echo none
        printf '{"d": {"A": 1}, "prefsfs.effects": {"r": {"Keys": "e/*", "Run": "true"}}}' > a.json
        defaults declared --adopt --as a a.json > /dev/null; echo $?; grep -c '"A": 1' a.json
        printf '{"prefsfs.declared": {"b": {"d": {"B": 1}}}}' | defaults apply -; echo $?
        printf '{"b": {"d": {"B": 1}}}' | defaults import prefsfs.declared -; echo $?
        """)
      #expect(ways.output == "none\n1\n1\n1\n1\n", "\(ways)")
      #expect(sandbox.shell("defaults read prefsfs.effects").status == 1)
      #expect(sandbox.shell("defaults read prefsfs.declared b").status == 1)
      // In a store that is not the user's own, and where others can write, a rule is ignored.
      sandbox.shell("defaults apply --rules $C/../r.json; defaults synchronize; chmod 777 $C")
      #expect(
        sandbox.shell("defaults effects").output
          == "r   ignored   others can write to \(sandbox.config)\n")
    }
  }

  @Test("a document that is written in a mount sets no rules; a declaration may keep its own")
  func mountedDocuments() throws {
    try withMount { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        """
        exec 2>&1; cd $M; D=.prefs/declared
        document='{"d": {"A": 1}, "prefsfs.effects": {"r": {"Keys": "e/*", "Run": "true"}}}'
        echo "$document" > .prefs/apply; echo "$document" > $D/site.json
        echo '{"prefsfs.declared": {"b": {"d": {"A": 1}}}}' > .prefs/apply
        test -e d || echo none; echo "$document" > $C/../site.json
        defaults apply --as site --rules $C/../site.json > /dev/null; echo $?
        cp $C/../site.json $D/site.json && cat d/A; echo "${document/true/false}" > $D/site.json
        defaults read prefsfs.effects r | grep 'Run =' | tr -d ' '
        """)
      let lines = outcome.output.split(separator: "\n").map { $0.split(separator: ": ").last ?? "" }
      let refusal: Substring = "Operation not permitted"
      #expect(
        lines == [refusal, refusal, refusal, "none", "2", "1", refusal, "Run=true;"], "\(outcome)")
      #expect(mount.log.contains("prefs apply --rules FILE"), "\(mount.log)")
      #expect(mount.log.contains("prefs apply --as site --rules FILE"))
    }
  }
}
