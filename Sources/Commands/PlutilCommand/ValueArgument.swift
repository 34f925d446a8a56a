import Glibc
import PropertyList

/// Parses the value of `-insert` and `-replace`: an option that names the type, and the word behind
/// it.
enum ValueArgument {
  /// Returns the value of the type, and removes its word from the command line.
  static func value(_ type: String, _ rest: inout ArraySlice<String>) throws(Refusal) -> Value {
    switch type {
    case "-dictionary": return [:]
    case "-array": return []
    case "-bool", "-integer", "-float", "-string", "-date", "-data", "-xml", "-json": break
    default: throw Refusal("Unknown insert or replace type \(type)")
    }
    guard let word = rest.popFirst() else {
      throw Refusal("'Insert' and 'Replace' require a key path, a type, and a value2.")
    }
    switch type {
    case "-bool": return .boolean(["yes", "true"].contains(word.lowercased()))
    case "-integer": return integer(word)
    case "-float": return .real(strtod(word, nil))
    case "-string": return .string(word)
    case "-date": return try date(word)
    case "-data": return try data(word)
    case "-xml": return try list(word)
    default: return try json(word)
    }
  }

  /// Returns the number at the beginning of the word, or the nearest one in range. It is 0 if there
  /// are no digits.
  private static func integer(_ word: String) -> Value {
    let number = Int64(strtoll(word, nil, 10))
    let large = strtoull(word, nil, 10)
    return number == .max && !word.contains("-")
      ? .integer(WideInteger(UInt64(large))) : .integer(WideInteger(number))
  }

  private static func date(_ word: String) throws(Refusal) -> Value {
    guard word.utf8.count == 20, let value = Recogniser.value(of: Array(word.utf8), kind: .date)
    else { throw Refusal("Invalid date in argument") }
    return value
  }

  private static func data(_ word: String) throws(Refusal) -> Value {
    let document = "<plist><data>\(word)</data></plist>"
    guard !word.contains("<"), !word.contains("&"),
      let value = try? Document.read(Array(document.utf8)).value
    else { throw Refusal("Invalid base64 data in argument") }
    return value
  }

  private static func list(_ word: String) throws(Refusal) -> Value {
    do throws(FormatError) {
      return try InputFile.propertyList(Array(word.utf8)).value
    } catch {
      throw Refusal("Unable to parse xml property list: \(error)")
    }
  }

  /// Reads a JSON value. The word is read as the element of an array, because a fragment such as a
  /// string is a value too.
  private static func json(_ word: String) throws(Refusal) -> Value {
    do throws(FormatError) {
      let (value, format) = try Document.read(Array("[\(word)]".utf8))
      if format == .json, case .array(let items) = value, items.count == 1 { return items[0] }
    } catch {
      throw Refusal("Unable to parse JSON: \(error)")
    }
    throw Refusal("Unable to parse JSON: expected one value")
  }
}
