// Strings without escapes, short numbers and literals that stand in the piece with what follows them:
// nearly all of a document. They are read straight from the piece; everything else goes to the state machine.

extension JSONParser {
  /// Takes the key at the index, its colon and the blanks around it; nil where they are not plain.
  mutating func takePlainKey(_ piece: UnsafeBufferPointer<UInt8>, at index: Int) -> Int? {
    guard let text = plainString(piece, at: index) else { return nil }
    let colon = piece.endOfBlanks(from: index + text.count + 2)
    guard colon < piece.count, piece[colon] == UInt8(ascii: ":") else { return nil }
    builder.add(key: text)
    state = .value
    return piece.endOfBlanks(from: colon + 1)
  }

  /// Takes the value at the index, and a comma behind it; nil where it is not plain.
  mutating func takePlainValue(
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

  /// What stands between the quotes.
  @inline(__always)
  private func plainString(
    _ piece: UnsafeBufferPointer<UInt8>, at index: Int
  ) -> UnsafeBufferPointer<UInt8>? {
    guard piece[index] == UInt8(ascii: "\"") else { return nil }
    let end = piece.endOfRun(from: index + 1, without: 0x22, 0x5C, controls: false)
    guard end < piece.count, piece[end] == UInt8(ascii: "\"") else { return nil }
    return UnsafeBufferPointer(rebasing: piece[index + 1..<end])
  }

  /// The number, where something follows that ends it.
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

  /// Passes over a comma behind a value, where there is one.
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
