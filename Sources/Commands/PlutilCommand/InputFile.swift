import Glibc
import PropertyList
import SystemCalls

/// Reads input files: their bytes, and the property list in them.
enum InputFile {
  /// The largest file, in bytes.
  private static let largest = 1 << 30

  /// Returns the bytes of a file; those of standard input if the path is `-`.
  static func bytes(_ path: String) throws(Refusal) -> [UInt8] {
    if path.isEmpty { throw Refusal("Empty path specified") }
    if path == "-" {
      let bytes = try? Descriptor(owning: dup(STDIN_FILENO)).readToEnd(limit: largest)
      guard let bytes, !bytes.isEmpty else {
        throw Refusal("(Unable to read file from standard input)")
      }
      return bytes
    }
    do throws(SystemError) {
      // A pipe is read to its end: `<(unzip -p ...)`, /dev/stdin.
      let descriptor = try Descriptor(opening: path, O_RDONLY)
      if try descriptor.status().st_mode & S_IFMT == S_IFDIR {
        throw SystemError("open", path, .isDirectory)
      }
      return try descriptor.readToEnd(limit: largest)
    } catch {
      throw Refusal("(\(sentence(error, path)))")
    }
  }

  private static func sentence(_ error: SystemError, _ path: String) -> String {
    let file = "The file “\(OutputPath.name(path))” couldn’t be opened"
    switch error.errno {
    case .noSuchFile, .notDirectory: return "\(file) because there is no such file."
    case .permissionDenied, .notPermitted:
      return "\(file) because you don’t have permission to view it."
    default: return "\(file)."
    }
  }

  /// Reads a property list, and returns its format with the value. Throws for JSON without a byte
  /// order mark, because JSON is not a property list format for this command.
  static func propertyList(
    _ bytes: [UInt8]
  ) throws(FormatError) -> (value: Value, format: Format) {
    let first = bytes.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    if bytes.starts(with: "bplist0".utf8) || first == UInt8(ascii: "<") || (first ?? 0) >= 0xEF {
      return try Document.read(bytes)
    }
    // A file of strings may have comments alone.
    return (try Document.readOpenStep(bytes, readsBlank: !bytes.isEmpty), .openStep)
  }

  /// Reads a file that is a property list or JSON.
  static func list(_ path: String) throws(Refusal) -> (value: Value, format: Format) {
    let bytes = try bytes(path)
    if bytes.isEmpty {
      throw Refusal(
        "Property List error: \(noBytes) / JSON error: Unable to parse empty data.")
    }
    let first: FormatError
    do throws(FormatError) {
      return try propertyList(bytes)
    } catch {
      first = error
    }
    do throws(FormatError) {
      let found = try Document.read(bytes)
      if found.format == .json { return found }
    } catch {
      throw Refusal("Property List error: \(first.reason) / JSON error: \(error.reason)")
    }
    throw Refusal("Property List error: \(first.reason) / JSON error: \(first.reason)")
  }

  static let noBytes = "Cannot parse a NULL or zero-length data"

  /// Throws if the file is not a property list.
  static func check(_ path: String) throws(Refusal) {
    let bytes = try bytes(path)
    if bytes.isEmpty { throw Refusal("(\(noBytes))") }
    do throws(FormatError) {
      _ = try propertyList(bytes)
    } catch {
      throw Refusal("(\(complaint(bytes, error)))")
    }
  }

  /// Returns the message of an error. If the text begins with a bracket, it only names the bracket,
  /// like the command of macOS.
  private static func complaint(_ bytes: [UInt8], _ error: FormatError) -> String {
    var line = 1
    for byte in bytes {
      if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        return "Unexpected character \(Character(Unicode.Scalar(byte))) at line \(line)"
      }
      if byte == UInt8(ascii: "\n") { line += 1 } else if byte != 0x20, byte != 0x09 { break }
    }
    return error.line.map { "\(error.reason) on line \($0)" } ?? error.reason
  }
}
