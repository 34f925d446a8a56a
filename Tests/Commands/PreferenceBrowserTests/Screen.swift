import Foundation
import Support
import Testing

/// A terminal of its own (tmux) with a shell in it, in which a test types.
struct Screen {
  let sandbox: Sandbox
  private var tmux: String { "tmux -f /dev/null -S \(sandbox.root)/tmux" }

  /// Starts the shell, whose prompt is `$ `. `$B` is the browser.
  init(_ sandbox: Sandbox, environment: String = "") {
    self.sandbox = sandbox
    // tmux's server goes on in the background, so it must not hold the tests' descriptors.
    sandbox.shell(
      "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval \"exec $fd>&-\"; done; "
        + "cd \(sandbox.root); env -u TMUX TERM=xterm B=\(sandbox.programs)/prefs "
        + "\(tmux) new-session -d -x 80 -y 24 "
        + "'exec env PS1=\"\\$ \" \(environment) bash --norc --noprofile' < /dev/null > /dev/null 2>&1"
    )
    wait(for: "$")
  }

  /// What the screen shows.
  var text: String { sandbox.shell("\(tmux) capture-pane -p").output }

  /// Waits until the screen has the text.
  func wait(for text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    wait("\(text) is not there", sourceLocation) { $0.contains(text) }
  }

  /// Waits until the screen has it no more.
  func waitUntilGone(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    wait("\(text) is still there", sourceLocation) { !$0.contains(text) }
  }

  private func wait(
    _ problem: String, _ sourceLocation: SourceLocation, _ holds: (String) -> Bool
  ) {
    var screen = ""
    for _ in 0..<200 {
      screen = text
      if holds(screen) { return }
      usleep(25_000)
    }
    Issue.record("\(problem): \(screen)", sourceLocation: sourceLocation)
  }

  /// Types keys, as tmux(1) names them; texts are in quotes.
  func type(_ keys: String) { sandbox.shell("\(tmux) send-keys \(keys)") }

  func resize(columns: Int, rows: Int) {
    sandbox.shell("\(tmux) resize-window -x \(columns) -y \(rows)")
  }

  /// What tmux(1) knows of the terminal, e.g. `#{pane_title}`.
  func knows(_ format: String) -> String {
    String(sandbox.shell("\(tmux) display-message -p '\(format)'").output.dropLast())
  }

  /// Ends the terminal, which ends what runs in it. The server may have SIGTERM blocked, with which
  /// `kill-server` ends it.
  func end() { sandbox.shell("kill -KILL $(\(tmux) display-message -p '#{pid}')") }
}

/// Runs a test in a terminal, in a sandbox with an editor's preferences and its schema.
func withScreen(
  environment: String = "", prepare: (Sandbox) throws -> Void = { _ in },
  _ body: (Screen, Sandbox) throws -> Void
) throws {
  try withSandbox { sandbox in
    sandbox.makeList(
      sandbox.config + "/com.example.editor.plist", "dict(TabWidth=8, Name='Ada', Bell=True)")
    sandbox.shell("mkdir -p \(sandbox.system)/schemas")
    sandbox.makeList(
      sandbox.system + "/schemas/com.example.editor.plist",
      "dict(pfm_domain='com.example.editor', prefs_authoritative=True, pfm_subkeys=["
        + "dict(pfm_name='TabWidth', pfm_type='integer', pfm_title='Width of a tab', "
        + "pfm_range_min=1, pfm_range_max=16), "
        + "dict(pfm_name='Wrap', pfm_type='boolean', pfm_title='Wrap lines')])", format: "XML")
    try prepare(sandbox)
    let screen = Screen(sandbox, environment: environment)
    defer { screen.end() }
    try body(screen, sandbox)
  }
}
