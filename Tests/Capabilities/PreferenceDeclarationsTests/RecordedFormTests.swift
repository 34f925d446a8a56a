import Foundation
import PreferenceDeclarations
import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@Suite("Forms of recorded changes") struct RecordedFormTests {
  private func changes(_ value: Value) -> [NetChange] {
    let stored = StoredValue(value, Metadata(text: nil, modified: Timestamp(nanoseconds: 0)))
    var record = HistoryRecord(
      [.init(Location(.user, "d"), "K", from: .none, to: RecordedValue(stored))],
      time: .now, source: ChangeSource(.command))
    record.number = 1
    return NetChange.all(HistoryContents([.change(record)]), HistoryFilter())
  }

  @Test(
    "a shell takes the whole text for one word",
    arguments: ["it's", "'\u{301}; echo no", "$(echo no)", "'", "''\u{200D}'", "a\\nb", "\u{2028}"])
  func shell(_ text: String) throws {
    let line = RecordedForm.commands.text(of: changes(.string(text))).text
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "defaults() { printf %s \"$5\"; }; " + line]
    process.standardOutput = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect([UInt8](output) == Array(text.utf8))
  }

  static let lines: [(text: String, word: String)] = [
    ("plain", "plain"), ("two words", "'two words'"), ("it's", "'it'\\''s'"), ("a\nb", "$'a\\nb'"),
    ("\u{1B}[31m", "$'\\x1b[31m'"), ("\u{9B}'\\", "$'\\xc2\\x9b\\'\\\\'"),
    ("\u{202E}x", "$'\\xe2\\x80\\xaex'"),
  ]

  @Test("a line that is printed has no control characters", arguments: lines.indices)
  func line(_ index: Int) {
    #expect([Self.lines[index].text].printableShellLine == Self.lines[index].word)
  }

  @Test("a text with NUL is left out of commands")
  func nul() {
    let (text, rest) = RecordedForm.commands.text(of: changes("a\0b"))
    #expect(text.isEmpty && rest.count == 1)
  }

  static let singles: [(value: Value, words: String)] = [
    (.single(0.5), "-float 0.5"), (.single(-1e20), "-float -1e+20"),
    (.array([.single(0.5), 1, "a"]), "-array -float 0.5 -int 1 -string a"),
    (["b": .single(0.5), "a": true], "-dict -string a -bool true -string b -float 0.5"),
  ]

  @Test("commands keep the size of a real of 32 bits", arguments: singles.indices)
  func single(_ index: Int) {
    let (value, words) = Self.singles[index]
    let (text, rest) = RecordedForm.commands.text(of: changes(value))
    #expect(text == "defaults write d K \(words)\n" && rest.isEmpty)
  }

  @Test("every form has a real of 32 bits, also deep in a container")
  func deepSingle() {
    for value: Value in [.single(0.5), ["a": .array([.single(0.5)])]] {
      for form in RecordedForm.allCases where form != .commands || value.kind == .dictionary {
        let (text, rest) = form.text(of: changes(value))
        #expect(text.contains("<real>0.5</real>") && rest.isEmpty, "\(form): \(text)")
      }
    }
  }

  @Test(
    "YAML reads strings back", arguments: ["it's {# x #}", "{{ x }}", "\u{301}a", "\u{85}\u{2028}"])
  func yaml(_ text: String) throws {
    let tasks = RecordedForm.ansible.text(of: changes(.string(text))).text
    let process = Process()
    let (input, pipe) = (Pipe(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
    process.arguments = [
      "-c",
      """
      import plistlib, sys, yaml
      yaml.SafeLoader.add_constructor('!unsafe', lambda loader, node: loader.construct_scalar(node))
      task = yaml.safe_load(sys.stdin.buffer.read().decode())[0]
      list = task['ansible.builtin.command']['stdin']
      sys.stdout.buffer.write(plistlib.loads(list.encode())['d']['K'].encode())
      """,
    ]
    (process.standardInput, process.standardOutput) = (input, pipe)
    try process.run()
    input.fileHandleForWriting.write(Data(tasks.utf8))
    try input.fileHandleForWriting.close()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect([UInt8](output) == Array(text.utf8))
  }
}
