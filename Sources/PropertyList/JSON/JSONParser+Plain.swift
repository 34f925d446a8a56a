// The fast path for plain tokens: strings without escapes, short numbers and literals that are in
// the piece together with the byte behind them. Nearly all of a document is made of these. They are
// read directly from the piece; everything else goes through the state machine.

extension JSONParser {
  /// Consumes the plain key at the index, its colon and the blanks around the colon.
  /// - Returns: the index behind them; nil if they are not plain.
  mutating func consumePlainKey(_ piece: UnsafeBufferPointer<UInt8>, at index: Int) -> Int? {
    guard let text = plainString(piece, at: index) else { return nil }
    let colon = piece.endOfBlanks(from: index + text.count + 2)
    guard colon < piece.count, piece[colon] == UInt8(ascii: ":") else { return nil }
    builder.add(key: text)
    state = .value
    return piece.endOfBlanks(from: colon + 1)
  }

  /// Consumes the plain value at the index, and a comma behind it.
  /// - Returns: the index behind them; nil if the value is not plain.
  mutating func consumePlainValue(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) throws(FormatError) -> Int? {
    if let text = plainString(piece, at: index) {
      try add(.string(String(valid: text)))
      return endOfComma(piece, from: index + text.count + 2)
    }
    if let (number, end) = plainNumber(piece, at: index) {
      try add(number)
      return endOfComma(piece, from: end)
    }
    guard index + 8 <= piece.count else { return nil }
    let word = piece.eight(at: index)
    let isTrue = word.begins(with: "true")
    guard isTrue || word.begins(with: "false") else { return nil }
    try add(.boolean(isTrue))
    return endOfComma(piece, from: index + (isTrue ? 4 : 5))
  }

  /// Returns the bytes between the quotes of the string at the index; nil if it is not plain.
  @inline(__always)
  private func plainString(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) -> UnsafeBufferPointer<UInt8>? {
    guard piece[index] == UInt8(ascii: "\"") else { return nil }
    let end = piece.endOfRun(from: index + 1, without: 0x22, 0x5C, controls: false)
    guard end < piece.count, piece[end] == UInt8(ascii: "\"") else { return nil }
    return UnsafeBufferPointer(rebasing: piece[index + 1..<end])
  }

  /// Returns the number at the index and the index behind it; nil if it is not plain, or if the
  /// byte that ends it is not in the piece.
  @inline(__always)
  private func plainNumber(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) -> (Value, end: Int)? {
    guard let (number, end) = piece.plainNumber(at: index), end < piece.count,
      piece[end].endsJSONNumber
    else { return nil }
    let first = piece[index] == UInt8(ascii: "-") ? index + 1 : index
    guard piece[first] != UInt8(ascii: "0") || !piece[first + 1].isDigit else { return nil }
    return (number.value, end)
  }

  /// Skips blanks, and a comma if there is one, behind a value.
  /// - Returns: the index behind them.
  @inline(__always)
  private mutating func endOfComma(_ piece: UnsafeBufferPointer<UInt8>, from index: Int) -> Int {
    let comma = piece.endOfBlanks(from: index)
    guard comma < piece.count, piece[comma] == UInt8(ascii: ","), let open = builder.open else {
      return comma
    }
    state = open == .array ? .value : .key
    return piece.endOfBlanks(from: comma + 1)
  }
}

extension UInt8 {
  fileprivate var endsJSONNumber: Bool {
    isBlank || self == UInt8(ascii: ",") || self == UInt8(ascii: "]") || self == UInt8(ascii: "}")
  }
}
