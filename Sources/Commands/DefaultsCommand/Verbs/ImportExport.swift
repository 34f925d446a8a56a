import EffectiveDocuments
import Glibc
import PreferenceModel
import PropertyList
import SystemCalls

/// `import`: sets the keys of a property list. Other keys of the domain stay as they are.
enum Import {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    guard !arguments.isEmpty else { throw Refusal("\nNeed a path to read from\n") }
    let path = try arguments.removeNext()
    try arguments.end()
    let (values, format) = try list(path)
    try RuleConsent.require(
      values, of: target.domain, arguments.options.allowsRules, "import \(path)")
    try target.makeDirectory()
    try target.writing { () throws(EngineError) in
      let view = try DomainView(target)
      let location = Location(target.place ?? .user, target.domain)
      let sets = view.typed(values, of: format).map { view.setting($0.key, $0.value) }
      return try view.store.apply(
        [.edit(location, .createDomain)] + sets, target, isJudged: !arguments.options.isForced)
    }
  }

  /// Returns the dictionary in a list of any format; the list on standard input if the path is `-`.
  /// - Parameters:
  ///   - null: what `null` of JSON stands for; nil if it is refused.
  ///   - waits: whether a pipe is waited for: see `ListFile`.
  static func dictionary(
    _ path: String, null: Value? = nil, waits: Bool = true
  ) throws(Refusal) -> ValueDictionary {
    try list(path, null: null, waits: waits).values
  }

  /// As `dictionary`, with the format of the list.
  static func list(
    _ path: String, null: Value? = nil, waits: Bool = true
  ) throws(Refusal) -> (values: ValueDictionary, format: Format) {
    let bytes = try waits ? ListFile.contents(path) : ListFile.looked(at: path)
    let read: (value: Value, format: Format)
    do throws(FormatError) {
      var limits = Limits.list
      limits.null = null
      read = try Document.read(bytes, limits: limits)
    } catch {
      throw Refusal("Could not parse property list from \(path) due to \(error)")
    }
    let value = read.value
    guard case .dictionary(let values) = value else {
      if null != nil {
        throw Refusal(
          message: "Could not apply \(path); nothing was changed",
          detail: "it is \(value.kind.noun), and not a dictionary of domains")
      }
      let list = ValueDescription.text(of: value, isAppleText: false)
      throw Refusal(
        "Property list \(list) was not a dictionary\nDefaults have not been changed.")
    }
    return (values, read.format)
  }
}

/// `export`: writes a domain to a file as a binary list, or to standard output as XML; or domains as
/// another system reads them.
enum Export {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let form = try arguments.remove(option: "--as")
    if arguments.remove("--effective") { return try ExportEffective.run(form, &arguments) }
    if let form {
      guard form == "dconf" else {
        throw .mistake(
          DocumentForm(rawValue: form) == nil
            ? "export --as is for dconf, not \(form)" : "export --as \(form) needs --effective")
      }
      return try ExportDconf.run(&arguments)
    }
    let target = try Target(&arguments)
    guard !arguments.isEmpty else { throw Refusal("\nNeed a path to write to\n") }
    let path = try arguments.removeNext()
    try arguments.end()
    let unreadable = Refusal("\nThe domain \(target.name) does not exist\n")
    // A domain that does not exist is an empty list, as programs that call this expect.
    let values = try target.reading(orSaying: unreadable) { () throws(EngineError) in
      try DomainView(target).contents()
    }
    let list = Value.dictionary(values)
    if path == "-" { return Output.write(Document.anyXML(list.inWholeSeconds)) }
    try write(Document.binary(list), to: path)
  }

  /// Writes the bytes to a file that the command line names.
  static func write(_ bytes: [UInt8], to path: String) throws(Refusal) {
    try Refusal.wrapping("Could not write to \(path); exiting") { () throws(SystemError) in
      try Files.write(bytes, to: path)
    }
  }
}

/// Reads a property list that the user names and that is not a preference.
enum ListFile {
  /// The largest file, in bytes.
  private static let largest = 1 << 30

  /// Returns the bytes of the file, or of standard input if the path is `-`.
  static func contents(_ path: String) throws(Refusal) -> [UInt8] {
    let message = "Could not read data from \(path)"
    let bytes = try Refusal.wrapping(message) { () throws(SystemError) -> [UInt8]? in
      if path == "-" { return try Descriptor(owning: dup(0)).readToEnd(limit: largest) }
      return try Files.contents(path, limit: largest)
    }
    if let bytes { return bytes }
    throw Refusal(message: message, detail: "there is no such file")
  }

  /// Returns the bytes of a file, or of standard input if the path is `-`, for a command that only
  /// looks at files. Refuses a pipe or a device, which may give nothing or give without end; but a
  /// pipe that the command was started with is read, as of `<(...)`.
  static func looked(at path: String, limit: Int = largest) throws(Refusal) -> [UInt8] {
    let message = "Could not read data from \(path)"
    if path == "-" { return try contents(path) }
    do throws(SystemError) {
      // Without O_NONBLOCK the opening of a pipe would wait for a writer.
      let file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
      if try file.status().st_mode & S_IFMT == S_IFREG {
        return try file.readToEnd(limit: limit)
      }
    } catch  where error.errno == .noSuchFile || error.errno == .notDirectory {
      throw Refusal(message: message, detail: "there is no such file")
    } catch {
      throw Refusal(message: message, detail: "\(error)")
    }
    let isOfProcess = Files.links(on: path).contains {
      $0.hasPrefix("/proc/") && $0.contains("/fd/")
    }
    guard isOfProcess else { throw Refusal(message: message, detail: "it is not a regular file") }
    return try contents(path)
  }

  /// Returns the bytes as text.
  static func text(_ path: String) throws(Refusal) -> String {
    String(decoding: try contents(path), as: UTF8.self)
  }
}

extension Import {
  static let manual = VerbManual(
    group: .files, summary: "sets the keys of a property list",
    apple: [
      .init("import DOMAIN FILE", "sets the keys of a property list (-: standard input)")
    ],
    text: """
      The list may be XML, binary, JSON or an old-style property list. Keys that it
      does not have stay as they are.
      """,
    options: [VerbManual.synchronous, VerbManual.force, VerbManual.rules],
    example: """
      $ prefs import com.example.editor editor.plist
      $ echo '{"TabWidth": 8}' | prefs import com.example.editor -
      """)
}

extension Export {
  static let manual = VerbManual(
    group: .files, summary: "writes a domain in a form that other programs read",
    apple: [
      .init("export DOMAIN FILE", "writes the domain as a binary list (-: XML on output)")
    ],
    more: [
      .init(
        "export --as dconf [DOMAIN...]",
        "prints domains of GSettings as `dconf load /` reads them"),
      .init(
        "export --effective --as FORM [--global] DOMAIN [FILE]",
        "writes what programs read as json, plist, env or ini"),
    ],
    text: """
      It writes the user's own values. A domain that does not exist is an empty list.

      With --effective it writes the values that programs read, from all places: as
      JSON, as a property list, as variables for EnvironmentFile= of systemd and for a
      shell, or as an INI file. Comments name keys that such a file cannot hold. Keys
      that only the global domain has are added with --global.
      """,
    example: """
      $ prefs export com.example.editor editor.plist
      $ prefs export --as dconf org.gnome.desktop.interface
      $ prefs export --effective --as env com.example.server server.env
      """)
}
