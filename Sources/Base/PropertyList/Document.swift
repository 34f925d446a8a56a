/// Reads and writes whole documents: property lists as the bytes of a file.
public enum Document {
  /// Reads a list in any of the four formats, and returns its format with the value.
  ///
  /// The first bytes tell the format: `bplist0` begins a binary list and `<` begins XML. Where a
  /// hexadecimal digit, a blank, `*` or `>` follows the `<`, old-style data is tried first. Anything
  /// else is read as JSON and, if it is not JSON, as an old-style list. UTF-16 and UTF-32 with a byte
  /// order mark, UTF-16 without one, and XML that declares an encoding of one byte for each character
  /// (ISO-8859-1, windows-1252 and others) are converted to UTF-8 first. XML that declares one of
  /// several bytes (Shift_JIS, GB18030) is read where it has ASCII alone.
  ///
  /// Odd lists have the values that they have in Foundation. What follows an XML list is ignored.
  /// In XML, the 30th of February is a day in March and second 60 the next minute, base64 ends with
  /// its last whole group, and a `<key>` in the place of a value is a string. In old-style text, half
  /// of a surrogate pair is U+FFFD. A text of nothing but blanks and comments is an empty dictionary.
  ///
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
    if let recoded = RecodedText.recode(bytes) {
      return try readText(recoded[...], isRecoded: true, limits: limits)
    }
    try RecodedText.requireReadable(bytes)
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return try readText(
      bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes[...], isRecoded: false, limits: limits)
  }

  /// Reads an old-style list; throws for every other format.
  public static func readOpenStep(
    _ bytes: [UInt8], limits: Limits = .standard, readsBlank: Bool = false
  ) throws(FormatError) -> Value {
    try parse(
      bytes[...], OpenStepParser(limits: limits, size: bytes.count, readsBlank: readsBlank))
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

  /// Returns the value as JSON for other programs, with dates as ISO text and data as base64,
  /// infinities and NaN as text (`"inf"`, `"-inf"`, `"nan"`), and a UID as `{"CF$UID": 7}`. A scalar
  /// is written too.
  public static func json(_ value: Value) -> [UInt8] {
    // A report refuses no value.
    (try? JSONWriter.write(value, as: .report)) ?? []
  }

  /// Returns the value as `json` does, on one line without its end. Newlines of the document stand
  /// between its parts alone: in strings they are escaped.
  /// - Parameter space: what follows a comma.
  package static func lineOfJSON(_ value: Value, space: String = " ") -> String {
    json(value).split(separator: UInt8(ascii: "\n")).map { line in
      let part = String(decoding: line.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
      return line.last == UInt8(ascii: ",") ? part + space : part
    }.joined()
  }

  /// Returns the value as XML. Its dates are in whole seconds, because no reader of property lists
  /// knows others. If no such XML can be read by every reader, it is what the file of a key shows,
  /// with control characters as references (`&#27;`): Foundation reads those, and plistlib does not.
  public static func anyXML(_ value: Value) -> [UInt8] {
    (try? write(value, as: .xml)) ?? (try? write(value.inWholeSeconds, as: .xml))
      ?? (try? XMLWriter.write(value, .any)) ?? ValueText.canonical(value, style: .xml)
  }

  /// Returns the XML element of the value, without what is around it in a document; nil where no
  /// element reads as the value, such as for a date with a fraction of a second. XML has one size of
  /// reals, so one of 32 bits reads as the same number in 64.
  public static func element(_ value: Value) -> [UInt8]? {
    let value = value.withoutSingles
    for dialect in [XMLWriter.Dialect.portable, .shown] {
      guard let text = try? XMLWriter.write(value, depth: 0, dialect) else { continue }
      if let read = try? read(text).value, read == value { return text }
    }
    return nil
  }

  /// Returns the value as a binary list. Never fails, because binary lists hold every value.
  public static func binary(_ value: Value) -> [UInt8] { BinaryWriter.write(value) }

  /// Returns the value as a binary list in which strings have the bytes that they have in another
  /// list, where those are not Unicode and read as U+FFFD; nil if none of them is in it. Cost:
  /// O(size of both); O(size of `written`) if the value has no U+FFFD.
  /// - Parameters:
  ///   - written: the value as a binary list.
  ///   - old: returns the bytes of the other list.
  public static func binary(
    _ value: Value, _ written: [UInt8], keepingOddStringsOf old: () -> [UInt8]?
  ) -> [UInt8]? {
    guard written.hasReplacementCharacter, let odd = old().map({ BinaryList.oddStrings(in: $0) }),
      !odd.isEmpty
    else { return nil }
    return BinaryWriter.write(value, keeping: odd)
  }

  private static func readText(
    _ text: ArraySlice<UInt8>, isRecoded: Bool, limits: Limits
  ) throws(FormatError) -> (value: Value, format: Format) {
    let start = text.drop(while: \.isBlank)
    if start.first == UInt8(ascii: "<") {
      let next = start.dropFirst().first
      let isData = next == UInt8(ascii: "*") || next == UInt8(ascii: ">") || next?.isBlank == true
      if isData || next?.hexValue != nil,
        let value = try? parse(
          text, OpenStepParser(limits: limits, size: text.count, isLenient: true))
      {
        return (value, .openStep)
      }
      return (
        try parse(
          text,
          XMLParser(
            limits: limits, size: text.count, checksEncoding: !isRecoded, isLenient: true)),
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
      let parser = OpenStepParser(
        limits: limits, size: text.count, readsBlank: !text.isEmpty, isLenient: true)
      return (try parse(text, parser), .openStep)
    } catch {
      throw (json.offset ?? 0) > (error.offset ?? 0) ? json : error
    }
  }

  private static func parse(
    _ text: ArraySlice<UInt8>, _ parser: some TextParser
  ) throws(FormatError) -> Value {
    var parser = parser
    return try text.withUnsafeBufferPointer { text throws(FormatError) in try parser.read(text) }
  }
}

/// Converts documents from other encodings to UTF-8.
enum RecodedText {
  /// Returns the text in UTF-8; nil if the bytes do not begin like one of the other encodings, or
  /// are not valid in it.
  static func recode(_ bytes: [UInt8]) -> [UInt8]? {
    if bytes.starts(with: [0xFF, 0xFE, 0, 0]) { return utf32(bytes, isBigEndian: false) }
    if bytes.starts(with: [0, 0, 0xFE, 0xFF]) { return utf32(bytes, isBigEndian: true) }
    return utf16(bytes) ?? Self.bytes(bytes)
  }

  private static func utf16(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.count >= 2, bytes.count % 2 == 0 else { return nil }
    let isBigEndian: Bool
    let start: Int
    switch (bytes[0], bytes[1]) {
    case (0xFE, 0xFF): (isBigEndian, start) = (true, 2)
    case (0xFF, 0xFE): (isBigEndian, start) = (false, 2)
    // No list begins with a NUL, and no other character of ASCII is followed by one.
    case (0, 1..<0x80): (isBigEndian, start) = (true, 0)
    case (1..<0x80, 0): (isBigEndian, start) = (false, 0)
    default: return nil
    }
    let units = stride(from: start, to: bytes.count, by: 2).map { index -> UInt16 in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
  }

  private static func utf32(_ bytes: [UInt8], isBigEndian: Bool) -> [UInt8]? {
    guard bytes.count % 4 == 0 else { return nil }
    let units = stride(from: 4, to: bytes.count, by: 4).map { index -> UInt32 in
      let four = bytes[index..<index + 4]
      return (isBigEndian ? Array(four) : four.reversed()).reduce(0) { $0 << 8 | UInt32($1) }
    }
    return String(validating: units, as: UTF32.self).map { Array($0.utf8) }
  }

  /// Converts XML that declares an encoding of bytes. A text of ASCII alone is the same in the
  /// encodings of several bytes that extend ASCII.
  private static func bytes(_ bytes: [UInt8]) -> [UInt8]? {
    guard bytes.starts(with: "<?xml".utf8), let end = bytes.prefix(256).firstIndex(of: 0x3E) else {
      return nil
    }
    let declaration = String(decoding: bytes[..<end], as: UTF8.self)
    guard let name = declaration.quoted(after: "encoding=") else { return nil }
    if let encoding = ByteEncoding.named(name) { return encoding.utf8(bytes) }
    let isASCII = { bytes.withUnsafeBufferPointer { UTF8Validator.isASCII($0) } }
    return multiByte.contains(name.lowercased()) && isASCII() ? bytes : nil
  }

  /// Whether XML declares no encoding, or one that needs no conversion.
  static func declaresUTF8(_ bytes: [UInt8]) -> Bool {
    declared(bytes).map { XMLParser.encodings.contains($0.lowercased()) } ?? true
  }

  /// Throws where XML that could not be converted declares another encoding. The tables of encodings
  /// of several bytes are large, and a static program has none.
  static func requireReadable(_ bytes: [UInt8]) throws(FormatError) {
    guard let name = declared(bytes), !declaresUTF8(bytes) else { return }
    throw FormatError(
      .xml, offset: 0, line: 1,
      ByteEncoding.named(name) != nil
        ? "text that is not \(name)"
        : "the encoding \(name) is not supported (use UTF-8 or UTF-16)")
  }

  /// The encoding that XML declares.
  private static func declared(_ bytes: [UInt8]) -> String? {
    let head = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
    guard head.starts(with: "<?xml".utf8), let end = head.prefix(256).firstIndex(of: 0x3E) else {
      return nil
    }
    return String(decoding: head[..<end], as: UTF8.self).quoted(after: "encoding=")
  }

  private static let multiByte = [
    "shift_jis", "euc-jp", "gbk", "gb2312", "gb18030", "big5", "euc-kr",
  ]
}

extension [UInt8] {
  /// Whether U+FFFD in UTF-16 may be among the bytes.
  fileprivate var hasReplacementCharacter: Bool {
    withUnsafeBufferPointer { bytes in
      var position = 0
      while true {
        position = bytes.endOfRun(from: position, without: 0xFF, 0xFF, controls: true) + 1
        if position >= bytes.count { return false }
        if bytes[position] == 0xFD { return true }
      }
    }
  }
}
