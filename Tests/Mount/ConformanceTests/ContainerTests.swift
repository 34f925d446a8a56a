import Foundation
import Support
import Testing

/// A Mac's home, whose sandboxed programs have their lists in containers.
@Suite("A Mac's home") struct ContainerTests {
  /// Makes a Mac's home in the sandbox's directory `mac`: a program with a container, lists of the
  /// same names outside of it, an application group, and a container with a link out of it.
  private static func makeHome(_ sandbox: Sandbox) {
    sandbox.shell(
      """
      mkdir $C/../mac; mkdir -p $C/../mac/Library/Preferences/ByHost; cd $C/../mac/Library
      mkdir -p Containers/{org.app,org.new,org.evil}/Data/Library/Preferences
      mkdir -p 'Group Containers/group.org/Library/Preferences'
      """)
    let library = sandbox.root + "/mac/Library"
    let inner = library + "/Containers/org.app/Data/Library/Preferences"
    for (path, python) in [
      ("\(inner)/org.app.plist", "dict(K='inside')"),
      ("\(inner)/org.app.part.plist", "dict(K='part')"),
      (
        "\(library)/Group Containers/group.org/Library/Preferences/group.org.plist",
        "dict(K='group')"
      ),
      ("\(library)/Preferences/org.app.plist", "dict(K='outside', Old=1)"),
      ("\(library)/Preferences/org.plain.plist", "dict(K='plain')"),
      ("\(sandbox.root)/secret.plist", "dict(K='secret')"),
    ] {
      sandbox.makeList(path, python)
    }
    sandbox.shell(
      "ln -s $C/../secret.plist $C/../mac/Library/Containers/org.evil/Data/Library/Preferences/org.evil.plist"
    )
  }

  /// Runs a test with the home mounted at `$M`; the command runs in its `Library`.
  private func withHome(_ body: (Sandbox, Mount, (String) -> Outcome) throws -> Void) throws {
    try withSandbox { sandbox in
      Self.makeHome(sandbox)
      let mount = try Mount(sandbox, ["-o", "store=\(sandbox.root)/mac/Library/Preferences"])
      defer { mount.unmount() }
      try body(sandbox, mount) { sandbox.shell("cd $C/../mac/Library; \($0)") }
    }
  }

  @Test("a value is read from the list of the program's container, and written there")
  func containers() throws {
    try withHome { sandbox, mount, run in
      let outcome = run(
        """
        ls $M; cat $M/org.app/K $M/org.app.part/K $M/group.org/K $M/org.plain/K; ls $M/org.app
        for domain in org.app org.app.part group.org org.plain; do echo new > $M/$domain/K; done
        mkdir $M/org.new $M/org.app.other; echo 1 > $M/org.new/N; echo 1 > $M/org.app.other/N
        defaults -currentHost write $PWD/Preferences/org.app H -int 2; cat $M/org.app/H
        """)
      #expect(
        outcome.output == """
          NSGlobalDomain
          group.org
          org.app
          org.app.part
          org.evil
          org.plain
          inside
          part
          group
          plain
          K
          2

          """, "\(outcome)")
      let domains = [
        "org.app", "org.app.part", "group.org", "org.plain", "org.new", "org.app.other",
      ]
      for domain in domains { _ = run("defaults synchronize $PWD/Preferences/\(domain)") }
      mount.unmount()
      #expect(
        run("find . -name '*.plist' -newer Preferences/org.app.plist -not -type l | sort").output
          == """
          ./Containers/org.app/Data/Library/Preferences/org.app.part.plist
          ./Containers/org.app/Data/Library/Preferences/org.app.plist
          ./Containers/org.new/Data/Library/Preferences/org.new.plist
          ./Group Containers/group.org/Library/Preferences/group.org.plist
          ./Preferences/org.app.other.plist
          ./Preferences/org.plain.plist

          """)
    }
  }

  @Test("explain says container, and names the list; the list outside is none of the places")
  func explained() throws {
    try withHome { sandbox, _, run in
      let outcome = run(
        """
        defaults explain $PWD/Preferences/org.app K; cat $M/.prefs/explain/org.app/K
        cat $M/.prefs/explain/org.app.part/K; defaults explain $PWD/Preferences/org.app.part K
        defaults explain --json $PWD/Preferences/org.plain K | grep -o '"container": *false'
        grep ^user $M/.prefs/search/org.app
        """)
      let inner = "/mac/Library/Containers/org.app/Data/Library/Preferences"
      #expect(
        outcome.output.replacing(sandbox.root, with: "") == """
          * user (container): inside
              \(inner)/org.app.plist
          * user (container): inside
              \(inner)/org.app.plist
          * user: part
              (a list, perhaps in a container)
          * user (container): part
              \(inner)/org.app.part.plist
          "container": false
          user: org.app \(inner)/org.app.plist

          """, "\(outcome)")
    }
  }

  @Test("a link out of a container is refused with a sentence, and what it leads to stays")
  func links() throws {
    try withHome { sandbox, mount, run in
      let outcome = run(
        """
        cat $M/org.evil/K; echo x > $M/org.evil/K; defaults write $PWD/Preferences/org.evil K x
        cat $M/org.app/K
        """)
      #expect(outcome.output == "inside\n")
      #expect(outcome.errors.contains("Input/output error"), "\(outcome)")
      #expect(outcome.errors.contains("none is followed there"), "\(outcome)")
      #expect(mount.allLogs.contains("a sandboxed program can change"))
      #expect(sandbox.evaluate(sandbox.root + "/secret.plist", "d") == "{'K': 'secret'}")
    }
  }

  @Test("what other programs change in containers is seen, in new lists and directories too")
  func outside() throws {
    try withHome { sandbox, _, run in
      _ = run("cat $M/org.app/K; ls $M")
      let containers = sandbox.root + "/mac/Library/Containers"
      sandbox.makeList(
        "\(containers)/org.app/Data/Library/Preferences/org.app.plist", "dict(K='by')")
      sandbox.waitUntil("[ $(cat $M/org.app/K) = by ]")
      sandbox.makeList(
        "\(containers)/org.new/Data/Library/Preferences/org.new.plist", "dict(K='new')")
      sandbox.waitUntil("[ $(cat $M/org.new/K) = new ]")
      sandbox.shell("rm \(containers)/org.app/Data/Library/Preferences/org.app.part.plist")
      sandbox.waitUntil("! ls $M/org.app.part")
    }
  }

  @Test("in a home with a Mac's layout, the commands use the container of a program")
  func commands() throws {
    try withSandbox { sandbox in
      Self.makeHome(sandbox)
      sandbox.shell("mkdir -p ~/Applications/App.app/Contents")
      sandbox.makeList(
        sandbox.root + "/home/Applications/App.app/Contents/Info.plist",
        "dict(CFBundleIdentifier='org.app')")
      let outcome = sandbox.shell(
        """
        export XDG_CONFIG_HOME=$C/../mac/Library/Preferences; defaults read -app App K
        defaults read org.app; defaults write -app App New yes; defaults domains
        defaults synchronize org.app
        """)
      #expect(
        outcome.output == """
          inside
          {
              K = inside;
          }
          group.org, org.app, org.app.part, org.evil, org.plain

          """, "\(outcome)")
      let library = sandbox.root + "/mac/Library"
      #expect(
        sandbox.evaluate(
          "\(library)/Containers/org.app/Data/Library/Preferences/org.app.plist", "d")
          == "{'K': 'inside', 'New': 'yes'}")
      #expect(
        sandbox.evaluate("\(library)/Preferences/org.app.plist", "d")
          == "{'K': 'outside', 'Old': 1}")
    }
  }
}
