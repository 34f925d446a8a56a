import CLinux
import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// Edits a value in the user's editor: arrays and dictionaries as JSON, or XML where JSON cannot
/// hold the value; strings as they are.
///
/// The file has mode 0600 and is in `$XDG_RUNTIME_DIR`, which only the user reads and which is in
/// memory; without that in a directory of its own below /tmp. It is removed afterwards.
struct ExternalEditor {
  let subject: Subject
  /// Why the schema refuses a value; nil if it does not.
  let objection: (Value) -> String?

  /// How an edit ended.
  enum Outcome { case value(Value), unchanged, failed(String) }

  /// Runs the editor, and again if the text is not that of a value and the user wants that. The
  /// terminal must be as programs expect it. Blocks.
  func run() -> Outcome {
    let before = text
    var directory: String?
    defer { if let directory { rmdir(directory) } }
    let parent = Environment.directory("XDG_RUNTIME_DIR") ?? ""
    if !Files.isDirectory(parent) { directory = Self.makeDirectory("/tmp/prefs-XXXXXX") }
    guard let path = Self.makeFile("\(directory ?? parent)/prefs-XXXXXX", before, ending: ending)
    else { return .failed("the file for the editor could not be made: \(Errno.current)") }
    defer { unlink(path) }
    while true {
      let status = Self.edit(path)
      guard status == 0, let after = (try? Files.contents(path, limit: 1 << 26)) ?? nil else {
        return .failed("the editor ended with status \(status)")
      }
      if after == before { return .unchanged }
      let problem: String
      switch value(of: after) {
      case .success(let value):
        guard let objection = objection(value) else { return .value(value) }
        problem = objection
      case .failure(let refusal): problem = refusal.sentence
      }
      let question = "\(subject.id.key): \(problem)\nEnter edits it again, n gives up: "
      Browser.write(
        question.split(separator: "\n").map { $0.description.printable() }.joined(separator: "\n"))
      guard let answer = readLine(), !answer.lowercased().hasPrefix("n") else {
        return .failed("given up: \(problem)")
      }
    }
  }

  private var ending: String {
    subject.kind == .string ? ".txt" : text.first == UInt8(ascii: "<") ? ".xml" : ".json"
  }

  private var text: [UInt8] {
    if let value = subject.value { return ValueText.canonical(value, style: .json) }
    switch subject.kind {
    case .array: return Array("[]\n".utf8)
    case .dictionary: return Array("{}\n".utf8)
    default: return []
    }
  }

  private func value(of text: [UInt8]) -> Result<Value, ValueLine.Refusal> {
    let shown = subject.value?.kind == subject.kind ? subject.value : nil
    var recogniser = Recogniser(kind: subject.kind, template: shown, shown: shown)
    recogniser.feed(text[...])
    if let value = recogniser.value(of: text) { return .success(value) }
    if case .impossible(let reason) = recogniser.judgement(of: text) {
      return .failure(ValueLine.Refusal(sentence: reason))
    }
    return .failure(ValueLine.Refusal(sentence: "the end of the value is missing"))
  }

  private static func makeDirectory(_ template: String) -> String? {
    var path = Array(template.utf8CString)
    return mkdtemp(&path) == nil ? nil : name(path)
  }

  private static func makeFile(_ template: String, _ text: [UInt8], ending: String) -> String? {
    var path = Array((template + ending).utf8CString)
    let number = mkstemps(&path, Int32(ending.utf8.count))
    guard number >= 0 else { return nil }
    let file = Descriptor(owning: number)
    guard (try? file.write(text)) != nil else { return nil }
    return name(path)
  }

  private static func name(_ path: [CChar]) -> String {
    String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Runs the editor to its end. Ctrl-Z in it stops this process too, so that the shell goes on.
  private static func edit(_ path: String) -> Int32 {
    // `editor` is what Debian's administrator has chosen.
    let editor =
      Environment.variable("VISUAL") ?? Environment.variable("EDITOR")
      ?? "$(command -v editor || echo vi)"
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTSTP)
    sigprocmask(SIG_UNBLOCK, &set, nil)
    defer { sigprocmask(SIG_BLOCK, &set, nil) }
    return (try? Child.run("/bin/sh", ["-c", editor + " \"$1\"", "sh", path])) ?? 127
  }
}
