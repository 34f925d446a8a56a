import PropertyList

/// A parsed command line.
struct Invocation {
  /// What to do with each file.
  enum Command {
    case lint
    case print
    case convert(OutputFormat, hasHeader: Bool)
    case edit(Edit)
    case extract(String, OutputFormat, expected: String?)
    case create(OutputFormat)
  }

  /// A change of the value at a key path.
  enum Edit {
    case insert(String, Value, appends: Bool)
    case replace(String, Value)
    case remove(String)
  }

  let command: Command
  private(set) var files: [String] = []
  /// `-o`: the path of the result.
  private(set) var output: String?
  /// `-e`: the extension of the result, which is put beside the file.
  private(set) var fileExtension: String?
  /// `-s`: `-lint` prints nothing for valid files.
  private(set) var isSilent = false
  /// `-r`: JSON has line breaks and indents.
  private(set) var isReadable = false
  /// False with `-n`: there is no newline after raw text.
  private(set) var endsLine = true

  /// Parses a command line, without the program's name. Only the first word can be the command; if
  /// it is not one, the command is `-lint`.
  init(_ words: ArraySlice<String>) throws(Refusal) {
    guard let first = words.first else { throw Refusal("No files specified.") }
    var rest = words.dropFirst()
    switch first {
    case "-lint": command = .lint
    case "-p": command = .print
    case "-convert": command = try Self.conversion(&rest)
    case "-insert", "-replace": command = .edit(try Self.insertion(first, &rest))
    case "-remove":
      guard let path = rest.popFirst() else { throw Refusal("'Remove' requires a key path.") }
      command = .edit(.remove(path))
    case "-extract", "-type": command = try Self.extraction(first, &rest)
    case "-create":
      guard let word = rest.popFirst() else { throw Refusal("'Create' requires a plist format.") }
      command = .create(try OutputFormat(word: word))
    default:
      command = .lint
      rest = words
    }
    try parseGeneral(rest)
    try check()
  }

  private static func conversion(_ rest: inout ArraySlice<String>) throws(Refusal) -> Command {
    guard let word = rest.popFirst() else {
      throw Refusal("Missing format specifier for command.")
    }
    let format = try OutputFormat(word: word)
    guard rest.first == "-header" else { return .convert(format, hasHeader: false) }
    rest.removeFirst()
    guard format == .objc else {
      throw Refusal("-header is only valid for objc literal conversions.")
    }
    return .convert(format, hasHeader: true)
  }

  private static func insertion(
    _ command: String, _ rest: inout ArraySlice<String>
  ) throws(Refusal) -> Edit {
    guard let path = rest.popFirst(), let type = rest.popFirst() else {
      throw Refusal("'Insert' and 'Replace' require a key path, a type, and a value.")
    }
    let value = try ValueArgument.value(type, &rest)
    let appends = rest.first == "-append"
    if appends { rest.removeFirst() }
    return command == "-insert" ? .insert(path, value, appends: appends) : .replace(path, value)
  }

  private static func extraction(
    _ command: String, _ rest: inout ArraySlice<String>
  ) throws(Refusal) -> Command {
    guard let path = rest.popFirst(), let word = command == "-type" ? "type" : rest.popFirst()
    else { throw Refusal("'Extract' requires a key path and a plist format.") }
    let format = try OutputFormat(word: word)
    guard rest.first == "-expect" else { return .extract(path, format, expected: nil) }
    rest.removeFirst()
    guard let type = rest.popFirst() else {
      throw Refusal("-expect requires a type argument.")
    }
    guard Value.typeWords.contains(type) else {
      throw Refusal("-expect type [\(type)] not valid.")
    }
    return .extract(path, format, expected: type)
  }

  /// Parses the words behind the command: options that every command has, and files.
  private mutating func parseGeneral(_ words: ArraySlice<String>) throws(Refusal) {
    var rest = words
    while let word = rest.popFirst() {
      switch word {
      case "-o":
        guard let path = rest.popFirst() else { throw Refusal("Missing argument for -o.") }
        output = path
      case "-e":
        guard let name = rest.popFirst() else { throw Refusal("Missing argument for -e.") }
        fileExtension = name
      case "-s": isSilent = true
      case "-r": isReadable = true
      case "-n": endsLine = false
      case "--":
        files += rest
        rest = []
      case _ where word.hasPrefix("-") && word.utf8.count > 1:
        throw Refusal("unrecognized option: \(word)")
      default: files.append(word)
      }
    }
  }

  /// Throws if there is no file, or if the command does not have one of the options.
  private func check() throws(Refusal) {
    if files.isEmpty { throw Refusal("No files specified.") }
    let name: String
    switch command {
    case .lint: name = "-lint"
    case .print: name = "-p"
    default: return
    }
    if output != nil { throw Refusal("-o is not used with \(name).") }
    if fileExtension != nil { throw Refusal("-e is not used with \(name).") }
  }
}

/// The format in which a value is written.
enum OutputFormat: String {
  case xml = "xml1"
  case binary = "binary1"
  case json, swift, objc, raw, type
  case openStep
  /// The format of the input.
  case unchanged = "NoConversion"

  init(word: String) throws(Refusal) {
    guard let format = OutputFormat(rawValue: word) else {
      throw Refusal("Unknown format specifier: \(word)")
    }
    self = format
  }

  /// The format of a list that was read.
  init(_ format: Format) {
    switch format {
    case .binary: self = .binary
    case .xml: self = .xml
    case .openStep: self = .openStep
    case .json: self = .json
    }
  }
}
