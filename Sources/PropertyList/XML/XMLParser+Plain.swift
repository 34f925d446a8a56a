// Tags without attributes, and whole elements without entities and comments: nearly all of a list.
// They are read straight from the piece; everything else goes to the state machine.

extension XMLParser {
  /// A tag as the eight bytes after its `<`.
  private struct Tag {
    var bytes: UInt64
    var mask: UInt64
    var length: Int
    var element: Element
    var closes = false
    var isEmpty = false

    init(_ text: StaticString, _ element: Element) {
      length = text.utf8CodeUnitCount
      bytes = (0..<length).reduce(0) { $0 | UInt64(text.utf8Start[$1]) << UInt64(8 * $1) }
      mask = length == 8 ? .max : 1 << UInt64(8 * length) - 1
      self.element = element
      closes = text.utf8Start[0] == UInt8(ascii: "/")
      isEmpty = !closes && text.utf8Start[length - 2] == UInt8(ascii: "/")
    }

    /// The tag that the bytes are.
    @inline(__always)
    init?(_ bytes: UInt64) {
      guard let tag = Self.all.first(where: { bytes & $0.mask == $0.bytes }) else { return nil }
      self = tag
    }

    /// The commonest first.
    private static let all = [
      Tag("key>", .scalar(.key)), Tag("string>", .scalar(.string)),
      Tag("integer>", .scalar(.integer)), Tag("true/>", .scalar(.yes)),
      Tag("false/>", .scalar(.no)), Tag("dict>", .dictionary), Tag("/dict>", .dictionary),
      Tag("real>", .scalar(.real)), Tag("array>", .array), Tag("/array>", .array),
      Tag("date>", .scalar(.date)), Tag("data>", .scalar(.data)), Tag("array/>", .array),
      Tag("dict/>", .dictionary), Tag("string/>", .scalar(.string)),
    ]
  }

  /// Takes the plain tag or element at the index; nil where there is none, or not all of it yet.
  mutating func takePlainElement(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int? {
    guard piece[index] == UInt8(ascii: "<"), index + 9 <= piece.count else { return nil }
    let raw = UnsafeRawBufferPointer(piece)
    let eight = raw.loadUnaligned(fromByteOffset: index + 1, as: UInt64.self).littleEndian
    guard let tag = Tag(eight) else { return nil }
    let end = index + 1 + tag.length
    if case .scalar(let kind) = tag.element, !tag.isEmpty {
      return try takePlainScalar(kind, tag, piece, from: end)
    }
    if tag.closes {
      try close(tag.element)
    } else {
      try open(tag.element)
      if tag.isEmpty { try close(tag.element) }
    }
    return end
  }

  private mutating func takePlainScalar(
    _ kind: Scalar, _ tag: Tag, _ piece: UnsafeBufferPointer<UInt8>, from start: Int
  ) throws(FormatError) -> Int? {
    let end = piece.endOfRun(from: start, without: 0x3C, 0x26, controls: true)
    // "</", the tag again, and what a load of eight bytes reaches.
    guard end + 10 <= piece.count, piece[end] == 0x3C, piece[end + 1] == 0x2F else { return nil }
    let raw = UnsafeRawBufferPointer(piece)
    let eight = raw.loadUnaligned(fromByteOffset: end + 2, as: UInt64.self).littleEndian
    guard eight & tag.mask == tag.bytes else { return nil }
    try open(.scalar(kind))
    try endScalar(kind, UnsafeBufferPointer(rebasing: piece[start..<end]))
    return end + 2 + tag.length
  }
}
