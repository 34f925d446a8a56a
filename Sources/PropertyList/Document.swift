/// Whole documents: a property list as the bytes of a file.
public enum Document {
  /// Reads a list in any of the four formats and says which it was.
  ///
  /// The format is found from the first bytes: `bplist0` is binary, `<` XML (old-style data
  /// where a hexadecimal digit, `*` or `>` follows); anything else is read as JSON if it is JSON, and
  /// as an old-style list otherwise. UTF-16 with a byte order mark, and XML in UTF-16 without
  /// one, are recoded. Cost: O(size). Never traps, whatever the bytes.
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

  /// Reads an old-style list, and nothing else.
  public static func readOpenStep(
    _ bytes: [UInt8], limits: Limits = .standard
  ) throws(FormatError) -> Value {
    try parse(bytes[...], OpenStepParser(limits: limits, size: bytes.count))
  }

  /// Reads what a command line's `-Key value` takes as a property list: XML or an old-style list.
  public static func readArgument(_ bytes: [UInt8]) throws(FormatError) -> Value {
    let (value, format) = try read(bytes)
    return format == .json || format == .binary ? try readOpenStep(bytes) : value
  }

  /// Writes a list.
  ///
  /// Throws where the format cannot hold the value exactly for every reader of the format, but that
  /// text has no precision: a real of single precision is read back as one of double. JSON
  /// holds no dates, data, UIDs, infinities; XML no fractions of seconds and no control
  /// characters. Old-style lists are not written. Binary holds everything.
  public static func write(_ value: Value, as format: Format) throws(FormatError) -> [UInt8] {
    switch format {
    case .binary: BinaryWriter.write(value)
    case .xml: try XMLWriter.write(value, .portable)
    case .json: try JSONWriter.write(value)
    case .openStep: throw FormatError(.openStep, "old-style lists are read, not written")
    }
  }

  /// The value as JSON for other programs, scalars too: dates as ISO text, data as base64. Throws for what
  /// JSON has no form of (infinities, `CF$UID`).
  public static func json(_ value: Value) throws(FormatError) -> [UInt8] {
    try JSONWriter.write(value, lossy: true)
  }

  /// The value as a binary list, which holds every value.
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

/// UTF-16 documents.
enum UTF16Text {
  /// The text in UTF-8; nil where the bytes do not begin like UTF-16, or are none.
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
