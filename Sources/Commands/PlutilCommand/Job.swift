import Glibc
import PropertyList
import SystemCalls

/// Carries out the command of a command line for one of its files.
struct Job {
  private let invocation: Invocation
  private let file: String

  init(_ invocation: Invocation, _ file: String) {
    (self.invocation, self.file) = (invocation, file)
  }

  func run() throws(Refusal) {
    switch invocation.command {
    case .lint:
      try InputFile.check(file)
      if !invocation.isSilent { try Output.write("\(file == "-" ? "<stdin>" : file): OK\n") }
    case .print: try Output.write(PlainText.text(of: try InputFile.list(file).value) + "\n")
    case .convert(let format, let hasHeader):
      let (value, own) = try InputFile.list(file)
      let target = format == .unchanged ? OutputFormat(own) : format
      try write(value, target, path: "unknown key path", hasHeader: hasHeader)
    case .extract(let path, let format, let expected):
      let (root, own) = try InputFile.list(file)
      let value = try KeyPath(path).find(in: root)
      if let expected, value.typeWord != expected {
        throw Refusal("Value at [\(path)] expected to be \(expected) but is \(value.caseWord)")
      }
      try write(value, format == .unchanged ? OutputFormat(own) : format, path: path)
    case .edit(let edit):
      let (root, format) = try InputFile.list(file)
      try write(try edited(root, edit), OutputFormat(format), path: "")
    case .create(let format): try create(format)
    }
  }

  private func edited(_ root: Value, _ edit: Invocation.Edit) throws(Refusal) -> Value {
    switch edit {
    case .insert(let path, let value, let appends):
      try KeyPath(path).inserting(value, into: root, appends ? .append : .insert)
    case .replace(let path, let value):
      try KeyPath(path).inserting(value, into: root, .replace)
    case .remove(let path): try KeyPath(path).removing(from: root)
    }
  }

  /// Writes the value to the destination that the command line names: a path, standard output, or
  /// the file itself.
  private func write(
    _ value: Value, _ format: OutputFormat, path: String, hasHeader: Bool = false
  ) throws(Refusal) {
    let isText = format == .raw || format == .type
    let target =
      invocation.output ?? (isText || file == "-" ? "-" : OutputPath.path(file, invocation, format))
    let rendering = Rendering(
      file: file, output: target, isReadable: invocation.isReadable, keyPath: path)
    var bytes = try rendering.bytes(value, format)
    if target == "-" {
      if isText, invocation.endsLine { bytes.append(UInt8(ascii: "\n")) }
      return try Output.write(bytes)
    }
    try put(bytes, target)
    if hasHeader {
      try put(rendering.header(value), OutputPath.replacingExtension(of: target, by: "h"))
    }
  }

  private func create(_ format: OutputFormat) throws(Refusal) {
    if format == .openStep { throw Refusal("Cannot create open step property lists") }
    let rendering = Rendering(
      file: "-", output: "-", isReadable: invocation.isReadable, keyPath: "")
    var bytes = try rendering.bytes([:], format == .unchanged ? .xml : format)
    guard file == "-" else { return try put(bytes, file) }
    if format == .raw || format == .type, invocation.endsLine { bytes.append(UInt8(ascii: "\n")) }
    try Output.write(bytes)
  }

  /// Replaces the file in one step and keeps its mode.
  private func put(_ bytes: [UInt8], _ path: String) throws(Refusal) {
    do throws(SystemError) {
      try Files.write(bytes, to: path)
    } catch {
      throw Refusal("(\(error))")
    }
  }
}

/// Computes the path of a converted file.
enum OutputPath {
  static func path(_ file: String, _ invocation: Invocation, _ format: OutputFormat) -> String {
    if let given = invocation.fileExtension { return replacingExtension(of: file, by: given) }
    switch format {
    case .swift: return replacingExtension(of: file, by: "swift")
    case .objc: return replacingExtension(of: file, by: "m")
    default: return file
    }
  }

  /// Returns the path with the extension of its last component replaced, or added if there is none.
  static func replacingExtension(of path: String, by other: String) -> String {
    stem(path) + "." + other
  }

  /// Returns the path without the extension of its last component.
  static func stem(_ path: String) -> String {
    let start = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    guard let dot = path[start...].lastIndex(of: "."), dot > start else { return path }
    return String(path[..<dot])
  }

  /// Returns the last component of the path.
  static func name(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }
}
