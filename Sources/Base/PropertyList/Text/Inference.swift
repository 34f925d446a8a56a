/// Infers the type and value of a new key from its text, which arrives in pieces.
///
/// The first of these that fits is the value:
/// - an integer, a finite real or a boolean, if its canonical text is exactly the text, apart from
///   one newline at the end (so `007`, `1.10`, `NO` and `inf` are strings);
/// - a JSON object or array, or a property list that begins with `<?xml`, `<plist` or `bplist00`;
/// - a string, if the text is UTF-8 without NUL;
/// - data.
///
/// Cost: feeding n bytes in any number of pieces is O(n).
public struct Inference: Sendable {
  private var utf8 = UTF8Validator()
  /// Whether the text so far is UTF-8 without NUL.
  private var isText = true
  /// Judges whether the text is JSON or a property list.
  private var document = ContainerRecogniser()

  /// Creates an inference that has received no text.
  public init() {}

  /// Receives the next bytes of the text.
  public mutating func feed(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBufferPointer { bytes in
      isText = isText && utf8.feed(bytes) && !bytes.contains(0)
      document.feed(bytes)
    }
  }

  /// What is known of a text without reading it as a whole.
  public enum Plain: Equatable, Sendable {
    /// The text is a string or data, so its bytes are the value's.
    case value(Kind)
    /// The text ends inside a UTF-8 character. It is a string if the rest of the character follows,
    /// else data.
    case unfinished
    /// The text is short or may be a document, so `value(of:)` must read it as a whole.
    case other
  }

  /// Classifies the text without reading it as a whole. Cost: O(1); for a text that begins and ends
  /// like a binary list, O(objects of the list).
  /// - Parameter text: all bytes that were fed.
  public func plain(_ text: [UInt8]) -> Plain {
    guard text.count >= Self.longestScalar else { return .other }
    if document.isBinary { return BinaryReader.hasTrailer(text) ? .other : .value(.data) }
    guard document.isUnfinished || document.isHopeless else { return .other }
    guard isText else { return .value(.data) }
    return utf8.isComplete ? .value(.string) : .unfinished
  }

  /// Whether the text can be no document, however it goes on: if it is long, it is a string, or
  /// else data.
  public var isPlain: Bool { document.isHopeless }

  /// A text of this many bytes or more is not a number or a boolean.
  private static let longestScalar = 40

  /// Returns the value of the text. Cost: O(text).
  /// - Parameter text: all bytes that were fed.
  public func value(of text: [UInt8]) -> Value {
    if let scalar = Self.scalar(text) { return scalar }
    if case .success(let value?) = document.outcome(text) { return value }
    return (isText ? Recogniser.value(of: text, kind: .string) : nil) ?? .data(text)
  }

  /// Returns the value of a whole text. Cost: O(text).
  public static func value(of text: [UInt8]) -> Value {
    var inference = Inference()
    inference.feed(text[...])
    return inference.value(of: text)
  }

  /// Returns the number or boolean whose canonical text this is; nil if there is none.
  private static func scalar(_ text: [UInt8]) -> Value? {
    guard text.count < longestScalar else { return nil }
    let line = text.last == UInt8(ascii: "\n") ? Array(text.dropLast()) : text
    for kind in [Kind.integer, .real, .boolean] {
      guard let value = Recogniser.value(of: line, kind: kind),
        ValueText.canonical(value).dropLast().elementsEqual(line)
      else { continue }
      if case .real(let number) = value, !number.isFinite { continue }
      return value
    }
    return nil
  }
}
