import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceEffects

/// The state of rules, the files that they write, and their commands, on a real file system.
@Suite("Files and commands of rules") struct EffectFileTests {
  private func layout(_ sandbox: Sandbox) -> StoreLayout {
    StoreLayout(
      userDirectory: sandbox.config, systemDirectory: sandbox.system,
      stateDirectory: sandbox.state + "/prefsfs/store", hostIdentifier: "HOST", userName: "ada")
  }

  // MARK: - The state

  @Test("a state is read back; a damaged one, and another machine's, count for nothing")
  func state() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let directory = sandbox.state + "/effects"
      let file = EffectStateFile(directory: directory, host: "HOST")
      #expect(try file.read() == nil)
      let saved = try file.update { state in
        var rule = EffectState.Rule()
        rule.done = EffectValues("r", 1, [EffectKey("d", "K"): 2], key: state.key)
        (rule.file, rule.path) = ([Digest(of: [1], key: state.key)], "/x")
        rule.last = ["end": "status 1", "keys": ["d K"], "count": 7, "milliseconds": 31]
        state.rules["r"] = rule
        state.rules["new"] = EffectState.Rule()
      }
      #expect(try file.read() == saved)
      #expect(try EffectStateFile(directory: directory, host: "OTHER").read() == nil)
      let bytes = try Data(contentsOf: URL(fileURLWithPath: directory + "/state"))
      #expect(
        try FileManager.default.attributesOfItem(atPath: directory + "/state")[
          .posixPermissions] as? Int == 0o600)
      for count in stride(from: 0, to: bytes.count, by: 7) {
        #expect(EffectState(Array(bytes.prefix(count)), host: "HOST") == nil)
      }
      try Data("garbage".utf8).write(to: URL(fileURLWithPath: directory + "/state"))
      let fresh = try file.update()
      #expect(fresh.rules.isEmpty && fresh.key != saved.key)
    }
  }

  @Test("a state that cannot be saved is an error, and the one before stays")
  func fullState() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let file = EffectStateFile(directory: sandbox.state + "/effects", host: "HOST")
      let saved = try file.update { $0.rules["a"] = EffectState.Rule() }
      for call in ["write", "fsync", "rename"] {
        _ = Interposition.with({ $0.name == call ? .fail(.noSpace) : .proceed }) {
          #expect(throws: EngineError.self) {
            try file.update { $0.rules["b"] = EffectState.Rule() }
          }
        }
        #expect(try file.read() == saved)
      }
    }
  }

  // MARK: - Files

  private func rule(_ path: String) throws -> EffectRule {
    try EffectRule("r", ["Keys": "d/*", "Write": .string(path), "As": "json"])
  }

  @Test("a file is made 0600, keeps its mode, and a link of the user's stays")
  func files() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let home = sandbox.root + "/home"
      let writer = EffectWriter(layout(sandbox), home: home)
      let path = try #require(writer.path(of: rule("~/f")))
      #expect(path == home + "/f")
      try writer.write([1], to: writer.target(path))
      #expect(
        sandbox.shell("cd $HOME; stat -c %a f; chmod 4640 f; ln -s f l; ln -s g m").output
          == "600\n")
      try writer.write([2], to: writer.target(home + "/l"))
      try writer.write([3], to: writer.target(home + "/m"))
      let outcome = sandbox.shell("cd $HOME; stat -c %a f g; readlink l m; od -An -tx1 f g; ls -A")
      #expect(outcome.output == "640\n600\nf\ng\n 02 03\nf\ng\nl\nm\n", "\(outcome)")
      // Equal bytes are not written.
      sandbox.shell("cd $HOME; stat -c %i f > ../inode")
      try writer.write([2], to: writer.target(path))
      #expect(sandbox.shell("cd $HOME; stat -c %i f | cmp - ../inode").status == 0)
    }
  }

  @Test("what prefsfs has not written is left alone, and so is what was edited since")
  func edited() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let path = sandbox.root + "/home/f"
      let writer = EffectWriter(layout(sandbox), home: sandbox.root + "/home")
      let key = EffectState().key
      func check(_ bytes: [UInt8], known: [[UInt8]]) throws {
        let known = known.map { Digest(of: $0, key: key) }
        try writer.check(writer.target(path), bytes, rule: "r", known: known, key: key)
      }
      try check([1], known: [])
      try writer.write([1], to: writer.target(path))
      try check([1], known: [])
      try check([2], known: [[0], [1]])
      #expect(throws: EffectProblem.self) { try check([2], known: []) }
      #expect(throws: EffectProblem.self) { try check([2], known: [[2], [3]]) }
    }
  }

  @Test("files are refused where others can write, or prefsfs keeps or shows something")
  func refused() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let writer = EffectWriter(layout(sandbox), home: sandbox.root + "/home")
      sandbox.shell(
        """
        cd $HOME; mkdir open sticky own dir; chmod 777 open; chmod 1777 sticky; mkfifo pipe
        ln -s gone/x dead; mkdir open/inner; mkdir -p ../state/prefsfs/store; ln -s ../own open/via
        """)
      for path in [
        "home/open/f", "home/open/inner/f", "home/open/via/f", "home/sticky/f", "home/none/f",
        "home/dir", "home/pipe", "home/dead", "config/com.example.plist", "config/ByHost/f",
        "system/f", "system/managed/f", "state/prefsfs/store/f", "state/prefsfs/f",
      ] {
        #expect(throws: EffectProblem.self, "\(path)") {
          try writer.target("\(sandbox.root)/\(path)")
        }
      }
      for path in ["home/own/f", "config/server.ini", "home/f.plist"] {
        _ = try writer.target("\(sandbox.root)/\(path)")
      }
    }
  }

  @Test("a full disk leaves the file as it was, and nothing beside it")
  func fullDisk() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let path = sandbox.root + "/home/f"
      let writer = EffectWriter(layout(sandbox), home: sandbox.root + "/home")
      try writer.write([1], to: writer.target(path))
      let target = try writer.target(path)
      for call in ["write", "fsync", "rename"] {
        _ = Interposition.with({ $0.name == call ? .fail(.noSpace) : .proceed }) {
          #expect(throws: EffectProblem.self) { try writer.write([2], to: target) }
        }
      }
      #expect(sandbox.shell("cd $HOME; ls -A; od -An -tx1 f").output == "f\n 01\n")
    }
  }

  // MARK: - Commands

  private func run(
    _ line: String, _ input: String = "", words: [String]? = nil, timeout: Double = 10
  ) throws -> EffectRunner.Outcome {
    try EffectRunner.run(
      words ?? ["/bin/sh", "-c", line], input: Array(input.utf8),
      variables: ["PREFS_EFFECT=r", "PREFS_CHANGED=d K\n"], timeout: timeout)
  }

  @Test("a command gets input, variables, and no descriptor but the standard streams")
  func command() throws {
    let line =
      "cat; echo \"$PREFS_EFFECT $PREFS_CHANGED\" >&2; ls /proc/self/fd | tr '\\n' ' '; exit 3"
    let outcome = try run(line, "input\n")
    #expect(String(decoding: outcome.output, as: UTF8.self) == "input\nr d K\n\n0 1 2 3 ")
    #expect(outcome.status == 3 && outcome.end == "status 3")
    #expect(try run("", words: ["printf", "%s", "$HOME"]).output == Array("$HOME".utf8))
    #expect(throws: SystemError.self) { try run("", words: ["/no/such/program"]) }
    // Nobody waits for a command that reads nothing.
    #expect(try run("exit 0", String(repeating: "x", count: 1 << 20)).status == 0)
    let killed = try run("kill -9 $$")
    #expect(killed.status == nil && killed.end == "signal 9")
  }

  @Test("a command that hangs is ended, with its children")
  func hang() throws {
    let outcome = try run("echo begun; sleep 60 & sleep 60", timeout: 0.3)
    #expect(outcome.status == nil && outcome.end == "timeout, signal 15")
    #expect(outcome.output == Array("begun\n".utf8) && outcome.milliseconds < 3000)
  }

  @Test("much output is cut at 64 KiB, and what a daemon writes is waited for by nobody")
  func output() throws {
    let much = try run("head -c 20000000 /dev/zero")
    #expect(much.status == 0 && much.output.count == 1 << 16)
    let daemon = try run("(sleep 1; echo late; echo late) & echo now")
    #expect(daemon.status == 0 && daemon.output == Array("now\n".utf8))
    #expect(daemon.milliseconds < 900)
  }

  @Test("output without end delays neither the timeout nor the end of the command")
  func flood() throws {
    let late = try run("yes", timeout: 0.3)
    #expect(late.end == "timeout, signal 15" && late.output.count == 1 << 16)
    #expect(late.milliseconds < 3000)
    let left = try run("timeout 4 yes & exit 0")
    #expect(left.status == 0 && left.milliseconds < 2000, "\(left.milliseconds) ms")
  }

  @Test("a command whose success could not be saved does not run, and runs once later")
  func fullStateDisk() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let file = EffectStateFile(directory: sandbox.state + "/effects", host: "HOST")
      let line = "echo run >> \(sandbox.root)/runs"
      let rule = try EffectRule("r", ["Keys": "d/*", "Run": .string(line)])
      let digests = EffectValues("r", 1, [:], key: try file.update().key)
      let job = EffectJob(rule, digests, [:], since: nil)
      let problem = Interposition.with({ $0.name == "write" ? .fail(.noSpace) : .proceed }) {
        job.perform(file, layout(sandbox)) { _ in }
      }
      #expect(problem?.hasPrefix("its state cannot be saved: ") == true, "\(problem ?? "")")
      #expect(job.perform(file, layout(sandbox)) { _ in } == nil)
      #expect(sandbox.shell("cat $C/../runs").output == "run\n")
      #expect(try file.read()?.rules["r"]?.done == digests)
    }
  }

  @Test("a command does not run where there is room for the state as it is, but not for the note")
  func fullStateOfNewRule() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let file = EffectStateFile(directory: sandbox.state + "/effects", host: "HOST")
      let line = "echo run >> \(sandbox.root)/runs"
      let rule = try EffectRule("r", ["Keys": "d/*", "Run": .string(line)])
      let values = (0..<1000).map { (EffectKey("d", Key("K\($0)")), Value.integer(1)) }
      let known = Dictionary(uniqueKeysWithValues: values)
      let digests = EffectValues("r", 1, known, key: try file.update().key)
      let job = EffectJob(rule, digests, known, since: nil)
      let writes = Atomic(0)
      let problem = Interposition.with({ call in
        guard call.name == "write" else { return .proceed }
        let isRoom = writes.add(1, ordering: .relaxed).oldValue < 4
        return isRoom ? .shorten(500) : .fail(.noSpace)
      }) { job.perform(file, layout(sandbox)) { _ in } }
      #expect(problem?.hasPrefix("its state cannot be saved: ") == true, "\(problem ?? "")")
      #expect(sandbox.shell("cat $C/../runs").output.isEmpty)
    }
  }

  @Test("what others can write to is not trusted")
  func trust() throws {
    try withSandbox { (sandbox: Sandbox) throws -> Void in
      let list = sandbox.config + "/prefsfs.effects.plist"
      #expect(EffectTrust.objection(to: list) == nil)
      sandbox.shell("touch $C/prefsfs.effects.plist; chmod 644 $C/prefsfs.effects.plist")
      #expect(EffectTrust.objection(to: list) == nil)
      for (mode, undo, path) in [
        ("g+w", "g-w", list), ("o+w", "o-w", sandbox.config), ("o+w", "o-w", sandbox.root),
      ] {
        sandbox.shell("chmod \(mode) \(path)")
        #expect(EffectTrust.objection(to: list) == "others can write to \(path)")
        sandbox.shell("chmod \(undo) \(path)")
      }
      sandbox.shell("mkdir $C/../real; mv \(list) $C/../real/l; ln -s ../real/l \(list)")
      #expect(EffectTrust.objection(to: list) == nil)
      sandbox.shell("chmod 777 $C/../real")
      #expect(EffectTrust.objection(to: list) == "others can write to \(sandbox.root)/real")
      // A link that is neither the first nor the last.
      sandbox.shell(
        "cd $C/..; chmod 755 real; mkdir mid; mv \(list) mid/l; ln -s ../mid/l \(list)")
      #expect(EffectTrust.objection(to: list) == nil)
      sandbox.shell("chmod 777 $C/../mid")
      #expect(EffectTrust.objection(to: list) == "others can write to \(sandbox.root)/mid")
    }
  }
}
