import Foundation
import Support
import Testing

/// Editors in a terminal (tmux), without configuration, and with the backup files that they make.
@Suite("Editors on a mount") struct TerminalTests {
  /// A text that the screen must show, and the keys that are typed then.
  private typealias Step = (screen: String, keys: String)

  /// Starts the command in a terminal of its own, takes the steps, and waits for its end.
  private func type(_ sandbox: Sandbox, _ command: String, _ steps: [Step]) {
    let tmux = "tmux -f /dev/null -S \(sandbox.root)/tmux"
    // tmux's server goes on in the background, so it must not hold the tests' descriptors.
    sandbox.shell(
      "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval \"exec $fd>&-\"; done; "
        + "env -u TMUX TERM=xterm PATH=/usr/bin:/bin \(tmux) new-session -d -x 100 -y 30 "
        + "'cd '$M'/d && exec \(command)' < /dev/null > /dev/null 2>&1")
    for step in steps {
      var screen = ""
      for _ in 0..<100 {
        screen = sandbox.shell("\(tmux) capture-pane -p 2> /dev/null").output
        if screen.contains(step.screen) { break }
        usleep(50_000)
      }
      #expect(screen.contains(step.screen), "\(screen)")
      sandbox.shell("\(tmux) send-keys \(step.keys)")
    }
    for _ in 0..<100 {
      if sandbox.shell("\(tmux) has-session 2> /dev/null").status != 0 { break }
      usleep(50_000)
    }
    sandbox.shell("\(tmux) kill-server 2> /dev/null; true")
  }

  private func prepare(_ sandbox: Sandbox) {
    sandbox.makeList(sandbox.config + "/d.plist", "dict(Number=42, Dict={'a': [1, 2]})")
  }

  @Test("vim reports a broken dictionary at :w and the old value stays; a good one is saved")
  func vim() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      type(
        sandbox, "vim -u NONE -N Dict",
        [("\"a\"", "':%s/\\]/}/' Enter"), ("  }", "':w' Enter"), ("E514", "Enter ':q!' Enter")])
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n")
      type(
        sandbox, "vim -u NONE -N Dict", [("\"a\"", "':%s/2/7/' Enter"), ("    7", "':wq' Enter")])
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    7\n  ]\n}\n")
      sandbox.waitUntil("test \"$(ls -A $M/d | tr '\\n' ' ')\" = 'Dict Number '")
    }
  }

  @Test("nano edits and saves a number")
  func nano() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      type(
        sandbox, "nano -I Number",
        [("42", "7"), ("742", "C-o"), ("File Name to Write", "Enter"), ("Wrote 1 line", "C-x")])
      #expect(sandbox.shell("cat $M/d/Number; ls -A $M/d | wc -l").output == "742\n2\n")
    }
  }
}
