/// Reads and writes whole documents: property lists as the bytes of a file.
public enum Document {
  /// Reads a list in any of the four formats, and returns its format with the value.
  ///
  /// The first bytes tell the format: `bplist0` begins a binary list and `<` begins XML. Where a
  /// hexadecimal digit, `*` or `>` follows the `<`, old-style data is tried first. Anything else is
  /// read as JSON and, if it is not JSON, as an old-style list. UTF-16 with a byte order mark, and
  /// UTF-16 without one that begins with `<`, is converted to UTF-8 first.
  /// Cost: O(size). Never traps, whatever the bytes.
  public static func read(
    _ bytes: [UInt8], limits: Limits = .standard
  ) throws(FormatError) -> (value: Value, format: Format) {
    guard bytes.count <= limits.size else {
      throw FormatError(.binary, offset: limits.size, "larger than \(limits.size) bytes")
    }
    if bytes.starts(with: "bplist0".utf8) {
      return (try BinaryReader.read(bytes, limits: limits), .binary)
    }
    if let recoded = UTF16Text.recode(bytes) {
      return try readText(recoded[...], isRecoded: true, limits: limits)
    }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return try readText(
      bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes[...], isRecoded: false, limits: limits)
  }

  /// Reads an old-style list; throws for every other format.
  public static func readOpenStep(
    _ bytes: [UInt8], limits: Limits = .standard
  ) throws(FormatError) -> Value {
    try parse(bytes[...], OpenStepParser(limits: limits, size: bytes.count))
  }

  /// Reads the value of a `-Key value` argument as a property list: XML or an old-style list.
  public static func readArgument(_ bytes: [UInt8]) throws(FormatError) -> Value {
    let (value, format) = try read(bytes)
    return format == .json || format == .binary ? try readOpenStep(bytes) : value
  }

  /// Returns the value as a document of the format.
  ///
  /// Throws if the format cannot hold the value exactly for every reader of that format. The one
  /// exception is precision: in text, a real of single precision reads back as double precision.
  /// Binary holds every value. XML does not hold fractions of seconds or control characters. JSON
  /// does not hold dates, data, UIDs, infinities or NaN. Old-style lists cannot be written.
  public static func write(_ value: Value, as format: Format) throws(FormatError) -> [UInt8] {
    switch format {
    case .binary: BinaryWriter.write(value)
    case .xml: try XMLWriter.write(value, .portable)
    case .json: try JSONWriter.write(value)
    case .openStep: throw FormatError(.openStep, "old-style lists can be read but not written")
    }
  }

  /// Returns the value as JSON for other programs, with dates as ISO text and data as base64.
  /// A scalar is written too. Throws for values that have no form in JSON: infinities, NaN, UIDs.
  public static func json(_ value: Value) throws(FormatError) -> [UInt8] {
    try JSONWriter.write(value, lossy: true)
  }

  /// Returns the value as a binary list. Never fails, because binary lists hold every value.
  public static func binary(_ value: Value) -> [UInt8] { BinaryWriter.write(value) }

  private static func readText(
    _ text: ArraySlice<UInt8>, isRecoded: Bool, limits: Limits
  ) throws(FormatError) -> (value: Value, format: Format) {
    let start = text.drop(while: \.isBlank)
    if start.first == UInt8(ascii: "<") {
      let next = start.dropFirst().first
      if next == UInt8(ascii: "*") || next == UInt8(ascii: ">") || next?.hexValue != nil,
        let value = try? parse(text, OpenStepParser(limits: limits, size: text.count))
      {
        return (value, .openStep)
      }
      return (
        try parse(text, XMLParser(limits: limits, size: text.count, checksEncoding: !isRecoded)),
        .xml
      )
    }
    let json: FormatError
    do {
      return (try parse(text, JSONParser(limits: limits, size: text.count)), .json)
    } catch {
      json = error
    }
    do {
      return (try parse(text, OpenStepParser(limits: limits, size: text.count)), .openStep)
    } catch {
      throw (json.offset ?? 0) > (error.offset ?? 0) ? json : error
    }
  }

  private static func parse(
    _ text: ArraySlice<UInt8>, _ parser: some TextParser
  ) throws(FormatError) -> Value {
    var parser = parser
    var outcome: Result<Value, FormatError>?
    text.withUnsafeBufferPointer { text in
      do throws(FormatError) {
        outcome = .success(try parser.read(text))
      } catch {
        outcome = .failure(error)
      }
    }
    guard let outcome else { throw parser.failure("empty") }
    return try outcome.get()
  }
}

/// Converts documents from UTF-16 to UTF-8.
enum UTF16Text {
  /// Returns the text in UTF-8; nil if the bytes do not begin like UTF-16 or are not valid UTF-16.
  static func recode(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count >= 2, bytes.count % 2 == 0 else { return nil }
    let isBigEndian: Bool
    let start: Int
    switch (bytes[0], bytes[1]) {
    case (0xFE, 0xFF): (isBigEndian, start) = (true, 2)
    case (0xFF, 0xFE): (isBigEndian, start) = (false, 2)
    case (0, UInt8(ascii: "<")): (isBigEndian, start) = (true, 0)
    case (UInt8(ascii: "<"), 0): (isBigEndian, start) = (false, 0)
    default: return nil
    }
    let units = stride(from: start, to: bytes.count, by: 2).map { index -> UInt16 in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
  }
}
