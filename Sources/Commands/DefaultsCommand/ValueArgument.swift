import Glibc
import PropertyList

/// Parses the value of a command line: a word without a type, or an option for the type and its
/// text. The grammar and the conversions are those of Apple's command.
enum ValueArgument {
  /// What to do with the present value of the key.
  enum Form {
    /// Replace it.
    case value(Value)
    /// Append these elements to the array.
    case arrayAdd([Value])
    /// Add these pairs to the dictionary.
    case dictionaryAdd(ValueDictionary)
  }

  /// Parses the value, which is all of the remaining words.
  static func parse(_ arguments: inout Arguments) throws(Refusal) -> Form {
    guard let type = arguments.first else { throw .mistake("a value is missing") }
    switch type {
    case "-array": return .value(.array(try parseElements(&arguments)))
    case "-array-add": return .arrayAdd(try parseElements(&arguments))
    case "-dict": return .value(.dictionary(try parsePairs(&arguments)))
    case "-dict-add": return .dictionaryAdd(try parsePairs(&arguments))
    default: break
    }
    let value = try parseScalar(&arguments)
    if let extra = arguments.first {
      throw Refusal("Unexpected argument \(extra); leaving defaults unchanged.")
    }
    return .value(value)
  }

  private static func parseElements(_ arguments: inout Arguments) throws(Refusal) -> [Value] {
    _ = try arguments.removeNext()
    var elements: [Value] = []
    while !arguments.isEmpty { elements.append(try parseElement(&arguments)) }
    return elements
  }

  private static func parsePairs(_ arguments: inout Arguments) throws(Refusal) -> ValueDictionary {
    _ = try arguments.removeNext()
    var pairs: ValueDictionary = [:]
    while !arguments.isEmpty {
      guard case .string(let key) = try parseElement(&arguments) else {
        throw Refusal("Dictionary keys must be strings")
      }
      guard !arguments.isEmpty else { throw Refusal("Key \(key) lacks a corresponding value") }
      pairs[Key(key)] = try parseElement(&arguments)
    }
    return pairs
  }

  private static func parseElement(_ arguments: inout Arguments) throws(Refusal) -> Value {
    if let type = arguments.first, ["-array", "-array-add", "-dict", "-dict-add"].contains(type) {
      throw Refusal("Cannot nest composite types (arrays and dictionaries); exiting")
    }
    return try parseScalar(&arguments)
  }

  private static func parseScalar(_ arguments: inout Arguments) throws(Refusal) -> Value {
    let word = try arguments.removeNext()
    switch word {
    case "-string": return .string(try arguments.removeNext())
    case "-data": return .data(try data(try arguments.removeNext()))
    case "-int", "-integer": return .integer(WideInteger(integer(try arguments.removeNext())))
    case "-float": return .single(single(try arguments.removeNext()))
    case "-bool", "-boolean": return .boolean(try boolean(try arguments.removeNext()))
    case "-date":
      let word = try arguments.removeNext()
      guard let date = DateArgument.date(word) else {
        throw .mistake("\"\(word)\" is not a date, as in 2026-11-21 07:20:00 +0000")
      }
      return .date(date)
    default: return try untyped(word)
    }
  }

  /// Parses a word without a type. A word with one of `"()[]{}<>` is a property list. Any other
  /// word is a string, in which a backslash begins an escape as in a quoted string of an old-style
  /// list.
  static func untyped(_ word: String) throws(Refusal) -> Value {
    do throws(FormatError) {
      guard word.utf8.contains(where: signs.contains) else {
        guard word.utf8.contains(UInt8(ascii: "\\")) else { return .string(word) }
        return try Document.readOpenStep(Array("\"\(word)\"".utf8))
      }
      return try Document.read(Array(word.utf8), limits: .text).value
    } catch {
      throw Refusal(
        message: "Could not parse: \(word).  Try single-quoting it.", detail: "\(error)")
    }
  }

  /// Whether a word has no types but those of an old-style list, in which a number is a string.
  static func hasNoTypes(_ word: String) -> Bool {
    guard word.utf8.contains(where: signs.contains) else { return true }
    guard let read = try? Document.read(Array(word.utf8), limits: .text) else { return false }
    return read.format == .openStep || read.value.kind == .string
  }

  /// The signs of which a word has one if it is a property list.
  private static let signs = Set("\"()[]{}<>".utf8)

  /// Returns the number at the beginning of the text, like longLongValue of NSString: 0 if there
  /// are no digits, and the nearest number in range if there are too many.
  static func integer(_ text: String) -> Int64 { Int64(strtoll(text, nil, 10)) }

  /// Returns the decimal number at the beginning of the text in single precision, like floatValue
  /// of NSString.
  static func single(_ text: String) -> Float {
    let number = text.drop { $0.isWhitespace }
    let digits = number.drop { $0 == "+" || $0 == "-" }
    guard let first = digits.first, first.isNumber || first == ".", !digits.hasPrefix("0x"),
      !digits.hasPrefix("0X")
    else { return 0 }
    return strtof(String(number), nil)
  }

  private static func boolean(_ text: String) throws(Refusal) -> Bool {
    switch text.lowercased() {
    case "true", "yes": return true
    case "false", "no": return false
    default: throw .mistake("-bool takes true, false, yes or no, not \"\(text)\"")
    }
  }

  /// Returns the bytes of hexadecimal digits. If their number is odd, the first digit is a byte of
  /// its own.
  private static func data(_ text: String) throws(Refusal) -> [UInt8] {
    let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count else {
      throw .mistake("-data takes hexadecimal digits, not \"\(text.prefix(40))\"")
    }
    let even = (digits.count % 2 == 0 ? [] : [0]) + digits
    return stride(from: 0, to: even.count, by: 2).map { UInt8(even[$0] << 4 | even[$0 + 1]) }
  }
}
