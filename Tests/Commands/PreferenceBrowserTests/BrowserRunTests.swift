import Foundation
import Support
import Testing

/// The browser in a real terminal, over a real store. Each run waits for what the screen shows.
@Suite("The browser in a terminal") struct BrowserRunTests {
  /// Starts the browser and waits until it has read everything.
  private func browse(_ screen: Screen, _ words: String = "") {
    screen.type("'$B \(words)' Enter")
    screen.wait(for: " keys")
    screen.waitUntilGone("reading")
  }

  private func value(_ key: String, _ sandbox: Sandbox) -> String {
    sandbox.shell("defaults read com.example.editor \(key)").output
  }

  @Test("a key is found by a word of its title, changed, refused, corrected, and taken back")
  func edit() throws {
    try withScreen { screen, sandbox in
      browse(screen)
      screen.type("width Enter")
      screen.wait(for: "TabWidth: 8")
      // Keys that come before the answer are not lost.
      screen.type("BSpace 17 Enter")
      screen.wait(for: "17 is more than 16")
      screen.type("BSpace 2 Enter")
      screen.wait(for: "defaults write com.example.editor TabWidth -int 12")
      screen.wait(for: "set; Tab, then u takes it back")
      #expect(value("TabWidth", sandbox) == "12\n")
      screen.type("Tab u")
      screen.wait(for: "taken back: TabWidth is 8")
      screen.wait(for: "defaults write com.example.editor TabWidth -int 8")
      #expect(value("TabWidth", sandbox) == "8\n")
      screen.type("q")
      screen.wait(for: "$ ")
    }
  }

  @Test("a boolean that only a schema has toggles; Delete removes it")
  func toggle() throws {
    try withScreen { screen, sandbox in
      browse(screen)
      screen.type("wrap Enter")
      screen.wait(for: "-bool true")
      screen.wait(for: "(none) -> true")
      #expect(value("Wrap", sandbox) == "1\n")
      screen.type("Tab DC")
      screen.wait(for: "removed")
      #expect(sandbox.shell("defaults read com.example.editor Wrap").status == 1)
    }
  }

  @Test("what others change is shown, also after prefsd was killed; two browsers show the same")
  func live() throws {
    try withScreen { screen, sandbox in
      browse(screen)
      screen.type("name")
      screen.wait(for: "Ada")
      sandbox.shell("defaults write com.example.editor Name Grace")
      screen.wait(for: "Grace")
      screen.type("' @changed'")
      screen.wait(for: "1 of ")
      screen.type("C-w")
      sandbox.killOwner()
      sandbox.shell("printf 'name\\nset 1 Mary\\n' | prefs --plain")
      screen.wait(for: "Mary")
      screen.type("Enter")
      screen.wait(for: "Name: Mary")
      screen.type("C-u Ida Enter")
      screen.wait(for: "Name -string Ida")
      sandbox.waitUntil("test $(defaults read com.example.editor Name) = Ida")
    }
  }

  @Test("a forced key cannot be changed, and the screen says who forces it")
  func forced() throws {
    let prepare = { (sandbox: Sandbox) in
      sandbox.makeList(
        sandbox.system + "/managed/com.example.editor.plist", "dict(Name='Root')")
    }
    try withScreen(prepare: prepare) { screen, sandbox in
      browse(screen)
      screen.type("name Enter")
      screen.wait(for: "an administrator has set it in")
      screen.wait(for: "forced")
      #expect(value("Name", sandbox) == "Ada\n")
    }
  }

  @Test("what is typed stays when the terminal gets another size")
  func resize() throws {
    try withScreen { screen, _ in
      browse(screen)
      screen.type("name Enter")
      screen.wait(for: "Name: Ada")
      screen.type("'_Lovelace'")
      screen.resize(columns: 44, rows: 12)
      screen.wait(for: "Name: Ada_Lovelace")
      screen.resize(columns: 120, rows: 40)
      screen.wait(for: "Name: Ada_Lovelace")
    }
  }

  @Test("Ctrl-Z stops and fg comes back", .timeLimit(.minutes(1)))
  func stop() throws {
    try withScreen { screen, _ in
      browse(screen)
      screen.type("name C-z")
      screen.wait(for: "Stopped")
      screen.type("fg Enter")
      screen.wait(for: "Ada")
      screen.type("C-c")
      screen.waitUntilGone("/ name")
    }
  }

  @Test("the terminal is as before after an editor that was stopped and went on")
  func stoppedEditor() throws {
    try withScreen { screen, sandbox in
      try "unset VISUAL; export EDITOR='kill -CONT $PPID; :'\n".write(
        toFile: sandbox.root + "/editor", atomically: true, encoding: .utf8)
      screen.type("'. ./editor; stty -g > before; $B; stty -g > after; echo o\"\"ver' Enter")
      screen.wait(for: " keys")
      screen.waitUntilGone("reading")
      screen.type("name Tab e")
      screen.wait(for: "nothing was changed")
      screen.type("q")
      screen.wait(for: "over")
      #expect(sandbox.shell("cmp $C/../before $C/../after").status == 0)
      #expect(screen.knows("#{alternate_on}#{cursor_flag}#{mouse_any_flag}") == "010")
    }
  }

  @Test("without $EDITOR a value is edited in the editor that the administrator has chosen")
  func chosenEditor() throws {
    try withScreen { screen, sandbox in
      let program = sandbox.programs + "/editor"
      try "#!/bin/sh\necho Grace > \"$1\"\n".write(
        toFile: program, atomically: true, encoding: .utf8)
      chmod(program, 0o755)
      screen.type("'unset VISUAL EDITOR; $B' Enter")
      screen.wait(for: " keys")
      screen.waitUntilGone("reading")
      screen.type("name Tab e")
      screen.wait(for: "Name -string Grace")
    }
  }

  @Test("the terminal is as before after a signal, and after a crash")
  func signals() throws {
    try withScreen { screen, sandbox in
      screen.type("'ulimit -c 0; stty -g > before' Enter")
      for signal in ["TERM", "INT", "HUP", "SEGV", "ABRT"] {
        screen.type(
          "'sh -c \"echo \\$\\$ > process; exec $B\"; stty -g > after; echo o\"\"ver' Enter")
        screen.wait(for: " keys")
        screen.waitUntilGone("reading")
        sandbox.shell("kill -\(signal) $(cat $C/../process)")
        screen.wait(for: "over")
        #expect(sandbox.shell("cmp $C/../before $C/../after").status == 0, "\(signal)")
        #expect(
          screen.knows("#{alternate_on}#{cursor_flag}#{mouse_any_flag}") == "010", "\(signal)")
        screen.type("clear Enter")
        screen.waitUntilGone("over")
      }
    }
  }

  @Test("a value of 1 MB, with escape sequences, reaches the terminal as text")
  func controls() throws {
    let prepare = { (sandbox: Sandbox) in
      sandbox.makeList(
        sandbox.config + "/evil.plist",
        "{'Title': '\\x1b]0;owned\\x07' + 'x' * 1000000, 'K\\x1b[2J\\n': '\\u202e\\u009b31m', "
          + "'Wide': '\\u65e5' * 500}")
    }
    try withScreen(prepare: prepare) { screen, _ in
      browse(screen)
      screen.wait(for: "K\\u{1B}[2J\\u{A}")
      screen.type("owned")
      screen.wait(for: "user      \\u{1B}]0;owned\\u{7}xxx")
      #expect(!screen.knows("#{pane_title}").contains("owned"))
      screen.type("C-u title Tab y")
      screen.wait(for: "copied")
      screen.type("q")
      screen.wait(for: "prefs explain evil Title")
    }
  }

  @Test("a terminal that cannot move its cursor gets a list and a prompt; no UTF-8, no others")
  func plain() throws {
    try withScreen(environment: "TERM=dumb LC_ALL=C") { screen, sandbox in
      sandbox.shell("defaults write com.example.editor Name é")
      sandbox.shell("defaults write com.example.editor Long \(String(repeating: "x", count: 99))")
      screen.type("'$B' Enter")
      screen.wait(for: "prefs>")
      screen.type("'name' Enter")
      screen.wait(for: "1. com.example.editor Name: \\u{E9} (user)")
      screen.type("'set 1 Ida' Enter")
      screen.wait(for: "defaults write com.example.editor Name -string Ida")
      screen.type("'long' Enter")
      screen.wait(for: "1. com.example.editor Long: \(String(repeating: "x", count: 50))")
      screen.wait(for: "xxx... (user)")
      screen.type("'view 1' Enter")
      screen.wait(for: "\n" + String(repeating: "x", count: 80))
      sandbox.shell("defaults write com.example.editor Password hunter2")
      screen.type("'password' Enter")
      screen.wait(for: "1. com.example.editor Password: (secret)")
      screen.type("'view 1' Enter")
      screen.wait(for: "it is a secret; reveal NUMBER shows it")
      screen.type("'no such key' Enter")
      screen.wait(for: "0 of ")
      screen.type("'remove 7' Enter")
      screen.wait(for: "the list has no number 7; it is empty")
      screen.type("'@changed' Enter")
      screen.wait(for: "1. com.example.editor Name: Ida (user)")
      screen.type("quit Enter")
      screen.wait(for: "quit\n$")
    }
  }

  @Test("the past is shown, and not changed; without a terminal there is the plain form")
  func past() throws {
    try withScreen { _, sandbox in
      sandbox.shell("defaults write com.example.editor TabWidth 4")
      sandbox.shell("defaults write com.example.editor TabWidth 2")
      let shown = sandbox.shell("printf 'width\\nset 1 7\\n' | prefs browse --at 1")
      #expect(shown.output.contains("1. com.example.editor TabWidth: 4 (user)"), "\(shown)")
      #expect(shown.output.contains("this is the past"))
      #expect(value("TabWidth", sandbox) == "2\n")
    }
  }
}
