import Foundation
import Support
import Testing

/// Editors in a terminal (tmux), as they come: no configuration, backups as they make them.
@Suite("Editors on a mount") struct TerminalTests {
  /// Starts the command in a terminal of its own, types the keys, and gives what the screen shows
  /// before the last ones.
  private func type(
    _ sandbox: Sandbox, _ command: String, _ keys: [String]
  ) -> String {
    let socket = "\(sandbox.root)/tmux"
    var screen = ""
    // The server goes on in the background, and must not hold descriptors that we wait for.
    sandbox.shell(
      "for n in {3..40}; do eval \"exec $n>&-\"; done; "
        + "env -u TMUX TERM=xterm PATH=/usr/bin:/bin tmux -f /dev/null -S \(socket) "
        + "new-session -d -x 100 -y 30 \"cd $M/d && \(command)\" < /dev/null > /dev/null 2>&1")
    for key in keys {
      usleep(500_000)
      screen = sandbox.shell("tmux -S \(socket) capture-pane -p 2> /dev/null").output
      sandbox.shell("tmux -S \(socket) send-keys \(key)")
    }
    usleep(500_000)
    sandbox.shell("tmux -S \(socket) kill-server; true")
    return screen
  }

  private func prepare(_ sandbox: Sandbox) {
    sandbox.makeList(sandbox.config + "/d.plist", "dict(Number=42, Dict={'a': [1, 2]})")
    sandbox.shell("mkdir -p $C/../home")
  }

  @Test("vim: a broken dictionary is refused at :w and the old value stands; mended, it is saved")
  func vim() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let broken = type(
        sandbox, "vim -u NONE -N Dict", ["':%s/\\]/}/' Enter", "':w' Enter", "':q!' Enter"])
      #expect(
        broken.contains("E514") || broken.contains("E667") || broken.contains("rror"), "\(broken)")
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n")
      _ = type(sandbox, "vim -u NONE -N Dict", ["':%s/2/7/' Enter", "':wq' Enter"])
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    7\n  ]\n}\n")
      sandbox.waitUntil("test \"$(ls -A $M/d | tr '\\n' ' ')\" = 'Dict Number '")
    }
  }

  @Test("nano")
  func nano() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      _ = type(sandbox, "nano -I Number", ["7", "C-o", "Enter", "C-x"])
      #expect(sandbox.shell("cat $M/d/Number; ls -A $M/d | wc -l").output == "742\n2\n")
    }
  }
}
