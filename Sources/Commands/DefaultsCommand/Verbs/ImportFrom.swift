import PropertyList
import SystemCalls

/// `import-from`: prints the preferences of another system as a document for `apply`. It changes
/// nothing.
enum ImportFrom {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let system = try arguments.removeNext()
    let files = Array(arguments.rest)
    let all: OtherStores.Document
    switch system {
    case "dconf": all = OtherStores.dconf(try text(files, or: ["dconf", "dump", "/"]))
    case "gsettings":
      all = OtherStores.gsettings(
        try text(files, or: ["gsettings", "list-recursively"]), GSettingsTypes.ofMachine().domains)
    default:
      throw Refusal(
        message: "Preferences of \(system) cannot be read", detail: "it is one of dconf, gsettings")
    }
    Output.write(Document.anyXML(.dictionary(all.domains)))
    for line in all.rest { Output.write(line: "# left out: \(line)", to: .errors) }
  }

  /// The text of the file (`-`: of standard input); without one, what the program prints.
  private static func text(
    _ files: [String], or command: [String]
  ) throws(Refusal) -> String {
    if let file = files.first {
      guard files.count == 1 else { throw Arguments.unexpected(files[1]) }
      return try ListFile.text(file)
    }
    let message = "Could not run \(command.joined(separator: " "))"
    let output = try Refusal.wrapping(message) { () throws(SystemError) in
      try Child.output(command[0], Array(command.dropFirst()), milliseconds: 60_000)
    }
    return String(decoding: output, as: UTF8.self)
  }
}

extension ImportFrom {
  static let manual = VerbManual(
    group: .files, summary: "prints what dconf or GSettings has, for apply",
    more: [
      .init(
        "import-from dconf|gsettings [FILE]",
        "prints other preferences as a document for apply")
    ],
    text: """
      FILE is what `dconf dump /` or `gsettings list-recursively` has printed; without
      one the program is asked. Nothing is changed.
      """,
    example: """
      $ prefs import-from dconf | prefs apply --dry-run -
      """)
}
