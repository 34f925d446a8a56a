/// `help`: shows the verbs, or explains one of them, as `VERB --help` does.
enum HelpVerb {
  /// - Returns: the exit status.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let isManualPage = arguments.remove("--man")
    let name = arguments.isEmpty ? nil : try arguments.removeNext()
    try arguments.end()
    if let name {
      guard let verb = Verb(name) else { throw .mistake(Verb.absence(of: name)) }
      return show(verb)
    }
    Output.write(isManualPage ? Manual.page.troff : Manual.page.help)
    return 0
  }

  /// Explains a verb.
  /// - Returns: the exit status.
  static func show(_ verb: Verb) -> Int32 {
    Output.write(Manual.help(of: verb, as: .current))
    return 0
  }
}

extension HelpVerb {
  static let manual = VerbManual(
    group: .help, summary: "shows the verbs, or explains one",
    apple: [.init("help", "shows the verbs")],
    more: [
      .init("help VERB", "explains a verb with an example, as VERB --help does"),
      .init("help --man", "prints the manual page as troff"),
    ],
    example: """
      $ prefs help undo
      $ prefs undo --help
      """)
}
