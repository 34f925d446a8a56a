import Foundation
import Support
import Testing

/// Editors in a terminal (tmux), without configuration, and with the backup files that they make.
@Suite("Editors on a mount") struct TerminalTests {
  private func prepare(_ sandbox: Sandbox) {
    sandbox.makeList(sandbox.config + "/d.plist", "dict(Number=42, Dict={'a': [1, 2]})")
  }

  @Test("vim reports a broken dictionary at :w and the old value stays; a good one is saved")
  func vim() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.type(
        "vim -u NONE -N Dict",
        [("\"a\"", "':%s/\\]/}/' Enter"), ("  }", "':w' Enter"), ("E514", "Enter ':q!' Enter")])
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n")
      sandbox.type(
        "vim -u NONE -N Dict", [("\"a\"", "':%s/2/7/' Enter"), ("    7", "':wq' Enter")])
      #expect(sandbox.shell("cat $M/d/Dict").output == "{\n  \"a\": [\n    1,\n    7\n  ]\n}\n")
      sandbox.waitUntil("test \"$(ls -A $M/d | tr '\\n' ' ')\" = 'Dict Number '")
    }
  }

  @Test("nano edits and saves a number")
  func nano() throws {
    try withMount(prepare: prepare) { (sandbox: Sandbox, _: Mount) throws -> Void in
      sandbox.type(
        "nano -I Number",
        [("42", "7"), ("742", "C-o"), ("File Name to Write", "Enter"), ("Wrote 1 line", "C-x")])
      #expect(sandbox.shell("cat $M/d/Number; ls -A $M/d | wc -l").output == "742\n2\n")
    }
  }
}
