/// The tags of an XML text, one after the other. The text between them need not be valid.
package struct XMLTags {
  /// A tag: its name, what it does, and where it is.
  package struct Tag {
    package enum Kind { case opens, closes, isEmpty }

    let name: Slice<UnsafeBufferPointer<UInt8>>
    package let kind: Kind
    package let range: Range<Int>

    package func isNamed(_ text: StaticString) -> Bool {
      name.elementsEqual(
        UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
  }

  private let bytes: UnsafeBufferPointer<UInt8>
  /// The next byte.
  var index = 0

  /// Use it while the bytes are there.
  package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  /// Reads the next tag, behind text, comments, CDATA and instructions; nil where there is none. A
  /// `<` that begins no tag is a part of the text.
  package mutating func next() -> Tag? {
    while true {
      while index < bytes.count, bytes[index] != UInt8(ascii: "<") { index += 1 }
      if skip("<!--", to: "-->") || skip("<![CDATA[", to: "]]>") || skip("<?", to: "?>") {
        continue
      }
      guard index < bytes.count else { return nil }
      if let tag = readTag() { return tag }
      index += 1
    }
  }

  /// Skips blanks, comments, instructions and a DTD.
  /// - Returns: whether a `<` comes next.
  mutating func skipBetween() -> Bool {
    repeat {
      index = bytes.endOfBlanks(from: index)
    } while skip("<!--", to: "-->") || skip("<?", to: "?>") || skipDocumentType()
    return index < bytes.count && bytes[index] == UInt8(ascii: "<")
  }

  /// - Returns: whether a DTD came next, which was skipped. One without an end has all bytes.
  private mutating func skipDocumentType() -> Bool {
    guard isNext("<!DOCTYPE") else { return false }
    var (quote, depth): (UInt8?, Int) = (nil, 0)
    while index < bytes.count {
      if quote == nil, skip("<!--", to: "-->") || index == bytes.count { continue }
      let byte = bytes[index]
      index += 1
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        if quote == nil { quote = byte } else if quote == byte { quote = nil }
      case UInt8(ascii: "[") where quote == nil: depth += 1
      case UInt8(ascii: "]") where quote == nil: depth -= 1
      case UInt8(ascii: ">") where quote == nil && depth == 0: return true
      default: break
      }
    }
    return false
  }

  /// Skips what begins with one mark, up to the other one.
  /// - Returns: whether it does, and the other one comes. If that never comes, the bytes are at
  ///   their end.
  private mutating func skip(_ mark: StaticString, to end: StaticString) -> Bool {
    guard isNext(mark) else { return false }
    index += mark.utf8CodeUnitCount
    while index < bytes.count {
      if bytes[index] == end.utf8Start[0], isNext(end) {
        index += end.utf8CodeUnitCount
        return true
      }
      index += 1
    }
    return false
  }

  private func isNext(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    return bytes.count - index >= count
      && (0..<count).allSatisfy { bytes[index + $0] == text.utf8Start[$0] }
  }

  /// Reads the tag at the `<` that comes next; nil if it is none.
  mutating func readTag() -> Tag? {
    let start = index + 1
    var end = start
    var quote: UInt8?
    while end < bytes.count, quote != nil || bytes[end] != UInt8(ascii: ">") {
      let byte = bytes[end]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: "<") {
        return nil
      }
      end += 1
    }
    guard end < bytes.count, end > start else { return nil }
    let closes = bytes[start] == UInt8(ascii: "/")
    let isEmpty = !closes && bytes[end - 1] == UInt8(ascii: "/")
    let text = bytes[(closes ? start + 1 : start)..<(isEmpty ? end - 1 : end)]
    let name = text.prefix { !$0.isBlank }
    guard let first = name.first, first.isLetter else { return nil }
    index = end + 1
    return Tag(
      name: name, kind: closes ? .closes : isEmpty ? .isEmpty : .opens, range: start - 1..<index)
  }
}
