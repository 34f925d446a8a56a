import Foundation
import Support
import Testing

/// The completions that the package installs, in the shells that they are for: the Tab key in a
/// terminal.
@Suite("Completions") struct CompletionTests {
  /// How each shell is started without the user's settings, and how it gets the completion.
  static let shells = [
    ("bash --noprofile --norc", "source @.bash"),
    (
      "zsh -f",
      "cp @.zsh ~/_program; fpath=(~ $fpath); autoload -U compinit; compinit -u -D"
    ),
    ("fish --no-config", "source @.fish"),
  ]

  /// Loads the file of completions in the shell, and types. Each step has what the screen shows
  /// before it, and the keys.
  private func type(
    _ shell: String, _ load: String, _ file: String, in sandbox: Sandbox,
    _ steps: [Sandbox.Step]
  ) {
    let completions = Program.script("debian/completions/\(file)")
    let load = load.replacingOccurrences(of: "@", with: completions)
    let built = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
    sandbox.type(
      shell, in: "$C", path: "\(sandbox.programs):\(built)",
      [("", "'\(load); echo rea\"\"dy' Enter")] + steps)
  }

  @Test("options of prefsfs and plutil, and their values", arguments: shells)
  func options(_ shell: String, _ load: String) throws {
    try withSandbox { sandbox in
      type(
        shell, load, "options", in: sandbox,
        [
          ("\nready", "'prefsfs --stat' Tab"),
          ("prefsfs --status", "C-u 'prefsfs d -o writeb' Tab"),
          ("-o writeback=", "C-u 'plutil -ext' Tab"),
          ("plutil -extract", "C-u 'exit' Enter"),
        ])
    }
  }

  @Test("verbs, domains, keys, and values", arguments: shells)
  func completes(_ shell: String, _ load: String) throws {
    try withSandbox { sandbox in
      sandbox.makeList(sandbox.config + "/com.example.app.plist", "dict(LongKey=True, Other=1)")
      sandbox.shell("mkdir -p \(sandbox.system)/schemas")
      sandbox.makeList(
        sandbox.system + "/schemas/com.example.app.plist",
        "dict(pfm_subkeys=[dict(pfm_name='Theme', pfm_range_list=['Light', 'Dark'])])")
      type(
        shell, load, "defaults", in: sandbox,
        [
          ("\nready", "'defaults read-ty' Tab"),
          ("defaults read-type", "C-u 'defaults read com.exa' Tab"),
          ("read com.example.app", "C-u 'defaults read com.example.app Lon' Tab"),
          (
            "com.example.app LongKey",
            "C-u 'defaults write com.example.app LongKey -bool fal' Tab"
          ),
          ("-bool false", "C-u 'prefs describe com.example.app The' Tab"),
          ("app Theme", "C-u 'defaults write com.example.app Theme Li' Tab"),
          ("app Theme Light", "C-u 'prefs undo --since 1h --sk' Tab"),
          ("1h --skip", "C-u 'prefs undec' Tab"),
          ("prefs undeclare", "C-u 'prefs apply --as site --mer' Tab"),
          ("site --merge", "C-u 'exit' Enter"),
        ])
    }
  }

  @Test("bash runs nothing that stands in a key, and completes keys with blanks")
  func runsNothing() throws {
    try withSandbox { sandbox in
      sandbox.makeList(
        sandbox.config + "/d.plist",
        "{'A`touch ran`': 1, '<(touch ran)': 1, '$(touch ran)': 1, 'A B': 1}")
      let outcome = sandbox.shell(
        #"""
        cd $C; cat > try <<'END'
        source \#(Program.script("debian/completions/defaults.bash"))
        complete_words() { COMP_WORDS=(defaults "$@"); COMP_CWORD=$#; _defaults; printf '%s\n' "${COMPREPLY[@]}"; }
        complete_words read d ''; complete_words read d 'A\ '; complete_words write d 'A\ B' -bool t
        complete_words read d '"A'; complete_words read d "'A "; complete_words write '"d"' '"A B"' -bool f
        complete_words read d '"$'
        END
        bash try; ls ran
        """#)
      #expect(
        outcome.output == """
          \\$\\(touch\\ ran\\)
          \\<\\(touch\\ ran\\)
          A\\ B
          A\\`touch\\ ran\\`
          A\\ B
          true
          A B
          A\\`touch ran\\`
          A B
          false
          \\$(touch ran)

          """, "\(outcome)")
    }
  }
}
