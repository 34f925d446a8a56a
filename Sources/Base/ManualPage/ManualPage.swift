/// The documentation of a program: its help and its manual page, both made from one table.
public struct ManualPage: Sendable {
  /// A form of the command line, an option or a file, with its explanation.
  public struct Form: Sendable {
    /// What the user types, or a file name.
    public let words: String
    /// The explanation.
    public let meaning: String

    /// Creates a form.
    /// - Parameters:
    ///   - words: what the user types, or a file name.
    ///   - meaning: the explanation, one line of about 60 characters at most.
    public init(_ words: String, _ meaning: String) {
      (self.words, self.meaning) = (words, meaning)
    }
  }

  /// Several forms below a title.
  public struct Section: Sendable {
    let title: String
    let forms: [Form]

    /// Creates a section.
    public init(_ title: String, _ forms: [Form]) { (self.title, self.forms) = (title, forms) }

    /// The section in a help: its title, and a line for each form.
    public var help: String {
      let width = min(30, (forms.map(\.words.utf8.count).max() ?? 0) + 2)
      let lines = forms.map { form in
        let space = String(repeating: " ", count: max(2, width - form.words.utf8.count))
        return "  \(form.words)\(space)\(form.meaning)\n"
      }
      return "\(title):\n\(lines.joined())"
    }
  }

  /// The release that the pages are of, as the programs' versions say it, and its day.
  public static let release = "prefsfs 0.1"
  private static let day = "2026-11-26"

  private let name: String
  private let summary: String
  private let synopsis: String
  private let description: String
  private let sections: [Section]
  private let files: Section
  private let related: [String]
  private let overview: [Section]?
  private let closing: String?

  /// Creates a page.
  /// - Parameters:
  ///   - name: the name of the program.
  ///   - summary: what the program does, beginning with a verb in lower case.
  ///   - description: paragraphs, separated by empty lines. The help does not show them.
  ///   - files: the files of the program. The help does not show them.
  ///   - related: other pages, e.g. `fusermount3(1)`.
  ///   - overview: what the help shows in the place of `sections`; nil if it shows those.
  ///   - closing: the last lines of the help; nil if it has none.
  public init(
    _ name: String, _ summary: String, synopsis: String, description: String,
    sections: [Section], files: [Form], related: [String], overview: [Section]? = nil,
    closing: String? = nil
  ) {
    (self.name, self.summary, self.synopsis) = (name, summary, synopsis)
    (self.description, self.sections) = (description, sections)
    (self.files, self.related) = (Section("Files", files), related)
    (self.overview, self.closing) = (overview, closing)
  }

  /// The text of the help.
  public var help: String {
    let first = summary.prefix(1).uppercased() + summary.dropFirst()
    let parts = (overview ?? sections).map(\.help) + (closing.map { [$0 + "\n"] } ?? [])
    return "usage: \(synopsis)\n\n\(first).\n\n\(parts.joined(separator: "\n"))"
  }

  /// The manual page as troff, for man(1). No line is longer than 80 bytes, as mandoc(1) wants it,
  /// but for long words.
  public var troff: String {
    let paragraphs = description.split(separator: "\n\n").map { Self.filled(String($0)) }
    let parts = (sections + [files]).map { section in
      ".SH \(section.title.uppercased())\n"
        + section.forms.map { form in
          ".TP\n.B \(Self.escaped(form.words))\n\(Self.filled(form.meaning + "."))\n"
        }.joined()
    }
    let others = related.map { page in ".BR " + page.replacing("(", with: " (") }
    return """
      .TH \(name.uppercased()) 1 "\(Self.day)" "\(Self.release)" "User Commands"
      .SH NAME
      \(Self.filled("\(name) - \(summary)"))
      .SH SYNOPSIS
      .B \(Self.escaped(synopsis))
      .SH DESCRIPTION
      \(paragraphs.joined(separator: "\n.PP\n"))
      \(parts.joined()).SH SEE ALSO
      \(others.joined(separator: ",\n"))

      """
  }

  /// The text, escaped, in lines of 80 bytes at most. None of them begins like a request.
  private static func filled(_ text: String) -> String {
    var lines: [String] = []
    for word in escaped(text).split(whereSeparator: \.isWhitespace) {
      if let line = lines.last, line.utf8.count + 1 + word.utf8.count <= 80 {
        lines[lines.count - 1] = "\(line) \(word)"
      } else {
        lines.append(word.hasPrefix(".") ? "\\&\(word)" : String(word))
      }
    }
    return lines.joined(separator: "\n")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("'", with: "\\(aq")
      .replacing("\"", with: "\\(dq")
  }
}
