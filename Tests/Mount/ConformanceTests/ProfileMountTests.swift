import Foundation
import Support
import Testing

/// Configuration profiles on a machine: what mounts and programs see while they come and go.
@Suite("Profiles on a mount") struct ProfileMountTests {
  /// Makes `/tmp/.../make NAME IDENTIFIER PYTHON`, which installs a profile in one step; PYTHON is
  /// a list of payloads, with `forced(domain, **settings)` and `once(domain, stamp, **settings)`.
  private static let maker = """
    import datetime, os, plistlib, sys
    target, name, identifier, payloads = sys.argv[1:5]
    def mcx(domain, row, **entry):
        return dict(PayloadType='com.apple.ManagedClient.preferences', PayloadContent={domain: {row: [entry]}})
    def forced(domain, **settings): return mcx(domain, 'Forced', mcx_preference_settings=settings)
    def once(domain, stamp, **settings):
        entry = dict(mcx_preference_settings=settings)
        if stamp: entry['mcx_data_timestamp'] = datetime.datetime(2026, 1, 1)
        return mcx(domain, 'Set-Once', **entry)
    profile = dict(PayloadType='Configuration', PayloadVersion=1, PayloadIdentifier=identifier,
        PayloadUUID='U-' + identifier, PayloadContent=eval(payloads))
    for word in sys.argv[5:]:
        profile['RemovalDate'] = datetime.datetime.utcnow() + datetime.timedelta(seconds=float(word))
    os.makedirs(target, exist_ok=True)
    plistlib.dump(profile, open(f'{target}/.{name}', 'wb'))
    os.rename(f'{target}/.{name}', f'{target}/{name}.mobileconfig')
    """

  private func prepare(_ sandbox: Sandbox) throws {
    Fixture.make(sandbox)
    try Self.maker.write(toFile: sandbox.root + "/make.py", atomically: true, encoding: .utf8)
  }

  private func install(
    _ sandbox: Sandbox, _ name: String, _ payloads: String, _ identifier: String? = nil,
    ending: String = ""
  ) {
    let outcome = sandbox.shell(
      "python3 -W ignore $C/../make.py \(sandbox.system)/managed \(name) \(identifier ?? "org.\(name)") \"\(payloads)\" \(ending)"
    )
    #expect(outcome.status == 0, "\(outcome)")
  }

  @Test("a profile forces, is replaced, broken and removed while mounted, with events")
  func lifecycle() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/Integer").output == "42\n")
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      install(sandbox, "a", "[forced('d', Integer=1, Fresh='x', Forced=9), forced('new', K=1)]")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      for line in ["CLOSE_WRITE,CLOSE d/Integer", "CREATE d/Fresh"] {
        sandbox.waitUntil("grep -q '\(line)' $C/../events")
      }
      let outcome = sandbox.shell(
        """
        cd $M; cat d/Forced new/K; ls .prefs/places/managed/d; stat -c %a d/Integer
        stat -c %a .prefs/places/managed/d/Fresh .prefs/places/managed/d/Forced
        rm .prefs/places/managed/d/Fresh; echo y > .prefs/places/managed/d/Fresh; echo 2 > d/Integer
        """)
      // A list is searched before profiles.
      #expect(outcome.output == "7\n1\nForced\nFresh\nInteger\n400\n400\n600\n", "\(outcome)")
      #expect(
        outcome.errors.components(separatedBy: "Operation not permitted").count == 4, "\(outcome)")
      sandbox.waitUntil("[ -e $M/d/Fresh ]")
      install(sandbox, "b", "[forced('d', Integer=2)]")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 2 ]")
      let explained = sandbox.shell("defaults explain d Integer").output
      #expect(
        explained == """
          * managed (forced): 2
              \(sandbox.system)/managed/b.mobileconfig (profile org.b)
            managed (forced): 1
              \(sandbox.system)/managed/a.mobileconfig (profile org.a)
            user: 42
              \(sandbox.config)/d.plist
            any-user: 1
              \(sandbox.system)/d.plist

          """)
      sandbox.shell("echo '<plist><dict>' > \(sandbox.system)/managed/b.mobileconfig")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      #expect(
        sandbox.shell("defaults profiles | grep -c 'b.mobileconfig; refused: xml'").output == "1\n")
      #expect(
        sandbox.backgroundLog.contains("b.mobileconfig is refused, and none of its settings count"))
      #expect(
        sandbox.shell("jq -r '.profiles[].refused | values' $M/.prefs/status.json").output
          .contains("the text ends too early"))
      sandbox.shell("rm \(sandbox.system)/managed/*.mobileconfig")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ] && [ ! -e $M/d/Fresh ] && [ ! -e $M/new ]")
      sandbox.waitUntil("grep -q 'DELETE d/Fresh' $C/../events")
      #expect(sandbox.shell("echo 5 > $M/d/Integer; cat $M/d/Integer").output == "5\n")
    }
  }

  @Test("RemovalDate ends a profile while it is mounted, in a program too")
  func removal() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      install(sandbox, "a", "[forced('d', Integer=1)]", ending: "2.5")
      sandbox.waitUntil("[ $(cat $M2/d/Integer) = 1 ]")
      let watcher = try sandbox.watch(["d"], in: sandbox.secondMountPoint)
      defer { sandbox.end(watcher) }
      sandbox.waitUntil("[ $(cat $M2/d/Integer) = 42 ]")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE d/Integer' $C/../events")
      #expect(sandbox.shell("ls -l $M2/d/Integer").output.hasPrefix("-rw"))
      #expect(sandbox.shell("defaults profiles").output.contains("over since"))
    }
  }

  @Test("a list that cannot be read holds up no other domain's values that are set once")
  func onceBesideUnreadable() throws {
    try withSandbox { sandbox in
      try prepare(sandbox)
      sandbox.shell("echo '{broken' > $C/bad.plist")
      install(sandbox, "a", "[once('bad', 1, B=7), once('good', 1, K=7)]")
      let mount = try Mount(sandbox)
      defer { mount.unmount() }
      sandbox.waitUntil("[ $(cat $M/good/K) = 7 ]")
    }
  }

  @Test("Set-Once is set once, a user's value stays, and kill -9 repeats nothing")
  func once() throws {
    try withSandbox { sandbox in
      try prepare(sandbox)
      install(
        sandbox, "a",
        "[once('d', 1, Once='first', String='other'), once('e.ByHost', 1, H=1), once('d', 0, Often=1)]"
      )
      var mount = try Mount(sandbox)
      sandbox.waitUntil("[ $(cat $M/d/Once) = first ] && [ $(cat $M/e/H) = 1 ]")
      let outcome = sandbox.shell(
        """
        cat $M/d/String $M/d/Often; getfattr --only-values -n user.prefs.source $M/d/Once $M/e/H
        echo mine > $M/d/Once; echo 2 > $M/d/Often; cat $M/d/Once
        """)
      #expect(outcome.output == "hello\n1\nuserhostmine\n", "\(outcome)")
      sandbox.shell("rm $M/e/H")
      mount.crash()
      mount = try Mount(sandbox)
      defer { mount.unmount() }
      usleep(500_000)
      #expect(sandbox.shell("cat $M/d/Once $M/d/Often; ls $M/e").output == "mine\n2\n")
      #expect(sandbox.shell("cat $M/prefsfs/AppliedProfiles | grep -c org.a").output == "3\n")
    }
  }

  @Test("a Set-Once that failed is tried again, and nothing else is set again")
  func onceAgain() throws {
    try withMount(prepare: { sandbox in
      try prepare(sandbox)
      sandbox.shell("echo garbage > $C/damaged.plist")
      install(sandbox, "a", "[once('d', 0, Often=1)]")
    }) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      sandbox.waitUntil("[ $(cat $M/d/Often) = 1 ]")
      install(sandbox, "b", "[once('damaged', 1, K=1)]")
      for _ in 0..<100 where !sandbox.backgroundLog.contains("trying again") { usleep(50_000) }
      #expect(sandbox.backgroundLog.contains("values that profiles set once are not set yet"))
      sandbox.shell("echo 2 > $M/d/Often; rm $C/damaged.plist; sleep 10.5; echo 1 > $M/d/Integer")
      sandbox.waitUntil("[ $(cat $M/damaged/K) = 1 ]")
      #expect(sandbox.shell("cat $M/d/Often").output == "2\n")
    }
  }

  @Test("no name in a profile forges a part of its line")
  func forged() throws {
    try withSandbox { sandbox in
      let outcome = sandbox.shell(
        """
        python3 -c "import plistlib
        plistlib.dump(dict(PayloadType='Configuration', PayloadVersion=1, PayloadIdentifier='org.a',
          PayloadDisplayName='Fonts\\"; signed by Corp CA; x (Size)\\n', PayloadUUID='U',
          PayloadContent=[dict(PayloadType='com.p', **{'K; signed by Corp CA': 1})]),
          open('$C/../evil.mobileconfig', 'wb'))"
        defaults profiles check $C/../evil.mobileconfig | tr ';' '\\n' | sed 's/^ //' | head -3
        """)
      #expect(
        outcome.output == #"""
          org.a "Fonts\u{22}\u{3B} signed by Corp CA\u{3B} x (Size)\u{A}"
          not signed
          com.p (K\u{3B} signed by Corp CA)

          """#, "\(outcome)")
    }
  }

  @Test("defaults profiles checks and shows a profile, and apply takes what it shows")
  func command() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      install(
        sandbox, "a",
        "[forced('x', K=1, L=[2]), once('y', 1, M='m'), dict(PayloadType='com.apple.wifi.managed')]"
      )
      let file = "\(sandbox.system)/managed/a.mobileconfig"
      let line =
        "org.a \"org.a\"; not signed; x (K, L); once y (M); left alone: com.apple.wifi.managed; \(file)\n"
      sandbox.waitUntil("defaults profiles | grep -q org.a")
      #expect(sandbox.shell("defaults profiles").output == line)
      #expect(sandbox.shell("defaults profiles check \(file)").output == line)
      sandbox.shell("mv \(file) $C/../a; echo junk > $C/../junk")
      sandbox.waitUntil("[ -z \"$(defaults profiles)\" ]")
      let refused = sandbox.shell("defaults profiles check $C/../junk")
      #expect(refused.status == 1 && refused.output.contains("refused"), "\(refused)")
      #expect(sandbox.shell("defaults profiles check $C/../none").status == 1)
      let outcome = sandbox.shell(
        "defaults profiles show $C/../a > $C/../settings; defaults apply $C/../settings; "
          + "cat $M/x/K $M/y/M")
      #expect(outcome.output.hasSuffix("1\nm\n"), "\(outcome)")
    }
  }

  @Test(
    "where a list stood before a profile and is removed, owner and client show the profile's value")
  func uncovered() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      install(sandbox, "a", "[forced('d', Forced=9), forced('new', K=1)]")
      sandbox.makeList(sandbox.system + "/managed/new.plist", "dict(K=2)")
      let other = try Mount(sandbox, at: sandbox.secondMountPoint)
      defer { other.unmount() }
      sandbox.waitUntil("[ $(cat $M/new/K)$(cat $M2/new/K)$(cat $M2/d/Forced) = 227 ]")
      let watcher = try sandbox.watch(["new"], in: sandbox.secondMountPoint)
      defer { sandbox.end(watcher) }
      sandbox.shell("rm \(sandbox.system)/managed/new.plist $M/.prefs/places/managed/d/Forced")
      sandbox.waitUntil("[ $(cat $M/new/K)$(cat $M2/new/K) = 11 ]")
      sandbox.waitUntil("[ $(cat $M/d/Forced)$(cat $M2/d/Forced) = 99 ]")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE new/K' $C/../events")
      let outcome = sandbox.shell(
        """
        grep -c 'DELETE\\|CREATE' $C/../events; stat -c %a $M2/.prefs/places/managed/d/Forced
        getfattr --only-values -n user.prefs.forced $M2/new/K; ls $M2/new
        """)
      #expect(outcome.output == "0\n400\n1K\n", "\(outcome)")
    }
  }

  @Test("profiles that are links, pipes, or in another user's directory are seen, and hang nothing")
  func unusualFiles() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let managed = "\(sandbox.system)/managed"
      sandbox.shell("mkfifo \(managed)/pipe.mobileconfig; ls $M/.prefs/places/managed-for/eve")
      install(sandbox, "a", "[forced('d', Integer=1)]")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      #expect(sandbox.shell("defaults profiles").output.contains("pipe.mobileconfig; refused"))
      sandbox.shell("mkdir $C/../far; mv \(managed)/a.mobileconfig $C/../far/x")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ]")
      sandbox.shell("ln -s $C/../far/x \(managed)/link.mobileconfig")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      sandbox.shell("echo junk > $C/../far/x")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ]")
      sandbox.shell("mkdir -p \(managed)/eve; rm \(managed)/*.mobileconfig")
      install(sandbox, "a", "[forced('eves', K=1)]")
      sandbox.shell("mv \(managed)/a.mobileconfig \(managed)/eve")
      sandbox.waitUntil("[ \"$(ls $M/.prefs/places/managed-for/eve)\" = eves ]")
      sandbox.waitUntil("[ $(cat $M/.prefs/places/managed-for/eve/eves/K) = 1 ]")
      #expect(sandbox.shell("ls $M").output == "NSGlobalDomain\nd\nother\n")
    }
  }

  @Test("links that are given other targets later, on the way or at the end, are followed")
  func laterTargets() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      install(sandbox, "a", "[forced('d', Integer=1)]")
      sandbox.makeList(sandbox.system + "/managed/n.plist", "dict(A=1)")
      sandbox.shell(
        """
        cd \(sandbox.system); mv managed one; cp -r one two; rm two/a.mobileconfig; ln -s one now
        ln -s now managed
        """)
      sandbox.makeList(sandbox.system + "/two/n.plist", "dict(A=2)")
      sandbox.waitUntil("[ $(cat $M/n/A)$(cat $M/d/Integer) = 11 ]")
      sandbox.shell("cd \(sandbox.system); ln -sfn two now")
      sandbox.waitUntil("[ $(cat $M/n/A)$(cat $M/d/Integer) = 242 ]")
      sandbox.makeList(sandbox.system + "/two/n.plist", "dict(A=3)")
      sandbox.waitUntil("[ $(cat $M/n/A) = 3 ]")
      sandbox.shell("cd \(sandbox.system); ln -s ../later managed/l.mobileconfig; sleep 0.3")
      sandbox.shell("cd \(sandbox.system); cp one/a.mobileconfig later")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      // Nobody may sign now, and then everybody.
      sandbox.shell("ln -s nowhere \(sandbox.system)/profile-signers")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ]")
      sandbox.shell("rm \(sandbox.system)/profile-signers")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 1 ]")
      sandbox.shell("touch \(sandbox.system)/profile-signers")
      sandbox.waitUntil("[ $(cat $M/d/Integer) = 42 ]")
      sandbox.shell("cd \(sandbox.system); rm managed profile-signers; mkdir managed")
      sandbox.waitUntil("! test -e $M/n")
    }
  }

  @Test("a read-only mount announces what changed, and nothing else")
  func readOnly() throws {
    try withMount(
      ["-o", "ro"],
      prepare: { sandbox in
        try prepare(sandbox)
        install(sandbox, "a", "[forced('d', K=1, L=2)]")
      }
    ) { (sandbox: Sandbox, _: Mount) throws -> Void in
      #expect(sandbox.shell("cat $M/d/K $M/d/Forced").output == "1\n7\n")
      let watcher = try sandbox.watch(["d"], in: sandbox.mountPoint)
      defer { sandbox.end(watcher) }
      sandbox.makeList(sandbox.system + "/managed/d.plist", "dict(Forced=8)")
      sandbox.waitUntil("grep -q 'CLOSE_WRITE,CLOSE d/Forced' $C/../events")
      #expect(sandbox.shell("grep -c 'd/[KL]' $C/../events; cat $M/d/Forced").output == "0\n8\n")
    }
  }
}
