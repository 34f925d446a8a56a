// The fast path for plain elements: tags without attributes, and whole elements without entities or
// comments. Nearly all of a list is made of these. They are read directly from the piece;
// everything else goes through the state machine.

extension XMLParser {
  /// Consumes the plain tag or element at the index.
  /// - Returns: the index behind it; nil if it is not plain, or if the piece ends inside it or
  ///   shortly behind it.
  mutating func consumePlainElement(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int? {
    guard piece[index] == UInt8(ascii: "<"), index + 9 <= piece.count else { return nil }
    let (tag, start) = (piece.eight(at: index + 1), index + 1)
    // The most common tags come first.
    if tag.begins(with: "key>") { return try consumePlain(.key, "key>", piece, from: start) }
    if tag.begins(with: "string>") {
      return try consumePlain(.string, "string>", piece, from: start)
    }
    if tag.begins(with: "integer>") {
      return try consumePlain(.integer, "integer>", piece, from: start)
    }
    if tag.begins(with: "true/>") { return try consumePlain(true, end: start + 6) }
    if tag.begins(with: "false/>") { return try consumePlain(false, end: start + 7) }
    if tag.begins(with: "real>") { return try consumePlain(.real, "real>", piece, from: start) }
    if tag.begins(with: "date>") { return try consumePlain(.date, "date>", piece, from: start) }
    if tag.begins(with: "data>") { return try consumePlain(.data, "data>", piece, from: start) }
    return try consumePlainContainer(tag, at: start)
  }

  private mutating func consumePlainContainer(
    _ tag: UInt64, at start: Int
  ) throws(FormatError) -> Int? {
    if tag.begins(with: "dict>") {
      try open(.dictionary)
      return start + 5
    }
    if tag.begins(with: "array>") {
      try open(.array)
      return start + 6
    }
    if tag.begins(with: "/dict>") {
      try close(.dictionary)
      return start + 6
    }
    if tag.begins(with: "/array>") {
      try close(.array)
      return start + 7
    }
    return nil
  }

  /// Consumes the scalar element whose start tag begins at `start`, behind the `<`.
  /// - Returns: as `consumePlainElement`.
  @inline(__always)
  private mutating func consumePlain(
    _ kind: Scalar, _ tag: StaticString, _ piece: UnsafeBufferPointer<UInt8>, from start: Int
  ) throws(FormatError) -> Int? {
    let first = start + tag.utf8CodeUnitCount
    let end = piece.endOfRun(from: first, without: 0x3C, 0x26, controls: true)
    // The end tag must be in the piece, and a load of eight bytes behind its "</" must be safe.
    guard end + 10 <= piece.count, piece[end] == 0x3C, piece[end + 1] == 0x2F,
      piece.eight(at: end + 2).begins(with: tag)
    else { return nil }
    try expectElement(isKey: kind == .key)
    try endScalar(kind, UnsafeBufferPointer(rebasing: piece[first..<end]))
    return end + 2 + tag.utf8CodeUnitCount
  }

  private mutating func consumePlain(_ flag: Bool, end: Int) throws(FormatError) -> Int {
    try expectElement(isKey: false)
    try builder.add(.boolean(flag))
    return end
  }
}
