import Foundation
import Support
import Testing

/// A playbook as administrators write it must change settings the first time it runs, and find
/// nothing to change the second time.
@Suite("Ansible on a mount") struct AnsibleTests {
  private static let playbook = """
    - hosts: localhost
      connection: local
      gather_facts: false
      vars: { ansible_python_interpreter: /usr/bin/python3, prefs: "{{ lookup('env', 'M') }}" }
      tasks:
        - copy: { dest: "{{ prefs }}/d/Number", content: "43\\n" }
        - copy: { dest: "{{ prefs }}/d/Fresh", content: "true\\n", mode: "0640" }
        - template: { src: "{{ lookup('env', 'C') }}/../t.j2", dest: "{{ prefs }}/d/Dict" }
        - lineinfile: { path: "{{ prefs }}/d/Lines", line: "three", create: false }
        - replace: { path: "{{ prefs }}/d/Text", regexp: "hello", replace: "world" }
        - blockinfile: { path: "{{ prefs }}/d/Lines", block: "four" }
        - file: { path: "{{ prefs }}/e/Mode", mode: "0644" }
        - copy: { dest: "{{ prefs }}/e/Text", content: "no newline" }
        - copy: { dest: "{{ prefs }}/NSGlobalDomain/Shared", content: "1.5\\n" }
        - stat: { path: "{{ prefs }}/d/Number" }
        - slurp: { src: "{{ prefs }}/d/Number" }
    """

  private func prepare(_ sandbox: Sandbox) {
    sandbox.makeList(
      sandbox.config + "/d.plist",
      "dict(Number=42, Text='hello', Lines='one\\ntwo', Dict={'a': 1})")
    sandbox.makeList(sandbox.config + "/e.plist", "dict(Mode=1, Text='x')")
    try? Self.playbook.write(toFile: sandbox.root + "/play.yml", atomically: true, encoding: .utf8)
    try? "{\"b\": 2}\n".write(toFile: sandbox.root + "/t.j2", atomically: true, encoding: .utf8)
  }

  private func play(_ sandbox: Sandbox, _ options: String = "") -> Outcome {
    sandbox.shell(
      "cd $C/..; export PATH=/usr/bin:/bin ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_NOCOLOR=1; "
        + "ansible-playbook -i localhost, \(options) play.yml < /dev/null")
  }

  @Test("a playbook changes settings once, and check mode changes nothing")
  func idempotent() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let check = play(sandbox, "--check")
      #expect(check.output.contains("changed=9"), "\(check.output)\(check.errors)")
      #expect(sandbox.shell("cat $M/d/Number; ls $M/d | grep -c Fresh").output == "42\n0\n")
      let first = play(sandbox)
      #expect(first.output.contains("changed=9"), "\(first.output)\(first.errors)")
      let second = play(sandbox)
      #expect(second.output.contains("changed=0"), "\(second.output)\(second.errors)")
      #expect(sandbox.shell("echo 44 > $M/d/Number").status == 0)
      #expect(play(sandbox).output.contains("changed=1"))
      #expect(
        sandbox.shell("cd $M/d; cat Number Text Dict; ls -A").output == """
          43
          world
          {"b": 2}
          Dict
          Fresh
          Lines
          Number
          Text

          """)
    }
  }

  @Test("a declaration is a file that a playbook copies, and removes")
  func declared() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let write = { (tasks: String) in
        try? """
        - hosts: localhost
          connection: local
          gather_facts: false
          vars: { ansible_python_interpreter: /usr/bin/python3, declared: "{{ lookup('env', 'M') }}/.prefs/declared" }
          tasks:
        \(tasks)
        """.write(toFile: sandbox.root + "/play.yml", atomically: true, encoding: .utf8)
      }
      write(
        #"    - copy: { dest: "{{ declared }}/site.json", content: '{"d": {"Number": 7, "New": "x"}}' }"#
      )
      #expect(play(sandbox, "--check").output.contains("changed=1"))
      #expect(sandbox.shell("cat $M/d/Number").output == "42\n")
      let first = play(sandbox)
      #expect(first.output.contains("changed=1"), "\(first.output)\(first.errors)")
      #expect(sandbox.shell("cat $M/d/Number $M/d/New").output == "7\nx\n")
      let second = play(sandbox)
      #expect(second.output.contains("changed=0"), "\(second.output)\(second.errors)")
      write(#"    - file: { path: "{{ declared }}/site.json", state: absent }"#)
      #expect(play(sandbox).output.contains("changed=1"))
      #expect(play(sandbox).output.contains("changed=0"))
      #expect(sandbox.shell("cat $M/d/Number; ls $M/d | grep -c New").output == "42\n0\n")
    }
  }

  @Test("a value that is not of the key's type fails the task, and the old one stays")
  func refused() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, mount: Mount) throws -> Void in
      let outcome = sandbox.shell(
        "export PATH=/usr/bin:/bin ANSIBLE_NOCOLOR=1; ansible localhost -c local "
          + "-e ansible_python_interpreter=/usr/bin/python3 -m copy "
          + "-a \"dest=$M/d/Number content=word\" < /dev/null")
      #expect(outcome.status != 0 && outcome.output.contains("Operation not permitted"))
      #expect(
        mount.log.contains("d Number: the renamed file's text is not of the key's type, integer"))
      #expect(sandbox.shell("cat $M/d/Number; ls -A $M/d | wc -l").output == "42\n4\n")
    }
  }
}

/// The playbooks of the pages, as they stand there.
@Suite("Ansible on the machine's places") struct MachineAnsibleTests {
  private static func playbook(of page: String) throws -> String {
    let page = Program.package.appendingPathComponent(
      "Sources/Client/Preferences/Preferences.docc/\(page).md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let parts = text.components(separatedBy: "```yaml\n")
    return parts.dropFirst().first?.components(separatedBy: "\n```").first ?? ""
  }

  /// Runs `play.yml` in the sandbox as an administrator, whose home is not the user's.
  private func play(_ sandbox: Sandbox) -> Outcome {
    sandbox.shell(
      """
      cd $C/..; export ANSIBLE_LOCALHOST_WARNING=False ANSIBLE_NOCOLOR=1
      export PATH=$(dirname $(command -v prefs)):/usr/bin:/bin
      export HOME=$C/../root-home XDG_CONFIG_HOME=$C/../root-home/c XDG_STATE_HOME=$C/../root-home/s
      mkdir -p $HOME; ansible-playbook -i localhost, -c local \
        -e ansible_python_interpreter=/usr/bin/python3 -e ansible_become=false play.yml < /dev/null
      """)
  }

  @Test("a rule that a playbook declares for every user writes the user's file and runs a command")
  func rules() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let playbook = try Self.playbook(of: "Effects")
      let command = "systemctl --user try-restart server"
      #expect(playbook.contains(command))
      try (playbook.replacing(command, with: "touch told") + "\n").write(
        toFile: sandbox.root + "/play.yml", atomically: true, encoding: .utf8)
      let first = play(sandbox)
      #expect(first.output.contains("changed=1"), "\(first.output)\(first.errors)")
      sandbox.shell("defaults write com.example.server Port -int 8080")
      sandbox.waitUntil("grep -q Port=8080 $HOME/server.ini && [ -e $HOME/told ]")
      let second = play(sandbox)
      #expect(second.output.contains("changed=0"), "\(second.output)\(second.errors)")
      let report = sandbox.shell("defaults effects").output
      #expect(report.hasPrefix("server   up to date   wrote "), "\(report)")
    }
  }

  @Test(
    "the playbook of the page changes a machine once, and its values reach another user's mount")
  func page() throws {
    try withMount { (sandbox: Sandbox, _: Mount) throws -> Void in
      let playbook = try Self.playbook(of: "PreferencesOfMachines")
        .replacing("/run/prefsfs-machine", with: sandbox.root + "/machine")
        .replacing(
          "/usr/local/bin",
          with: URL(fileURLWithPath: Program.path)
            .deletingLastPathComponent().path)
      #expect(playbook.contains("prefsfs --system"))
      try (playbook + "\n").write(
        toFile: sandbox.root + "/play.yml", atomically: true, encoding: .utf8)
      try "{\"com.example.editor\": {\"Fonts\": {{ fonts | to_json }}}}\n".write(
        toFile: sandbox.root + "/defaults.json.j2", atomically: true, encoding: .utf8)
      let first = play(sandbox)
      #expect(
        first.status == 0 && !first.output.contains("changed=0"), "\(first.output)\(first.errors)")
      sandbox.waitUntil("[ $(cat $M/com.example.editor/Telemetry) = false ]")
      #expect(
        sandbox.shell("getfattr --only-values -n user.prefs.forced $M/com.example.editor/Telemetry")
          .output == "1")
      #expect(sandbox.shell("echo true > $M/com.example.editor/Telemetry").status != 0)
      let second = play(sandbox)
      #expect(
        second.status == 0 && second.output.contains("changed=0"),
        "\(second.output)\(second.errors)")
    }
  }
}
