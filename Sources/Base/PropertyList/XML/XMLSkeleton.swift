/// Where the pairs of the root dictionary of an XML list are, by its tags alone: what stands between
/// the tags of a value need not be valid.
///
/// There is no skeleton of a list that ends too early, so one that is just being written is never
/// taken for whole.
struct XMLSkeleton {
  /// The end of the tag that opens the dictionary.
  private(set) var start = 0
  private(set) var pairs: [PairPlace] = []
  private let bytes: UnsafeBufferPointer<UInt8>
  /// The next byte.
  private var index = 0

  /// The most elements that may be inside of each other, as `Limits.standard` has it.
  private static let depth = 512

  /// Nil where the tags are not those of a dictionary. Use it while the bytes are there. Cost:
  /// O(bytes).
  init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
    guard readList() else { return nil }
  }

  /// A tag: its name, and what it does.
  private struct Tag {
    enum Kind { case opens, closes, isEmpty }

    var name: Slice<UnsafeBufferPointer<UInt8>>
    var kind: Kind

    func isNamed(_ text: StaticString) -> Bool {
      name.elementsEqual(
        UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
  }

  private mutating func readList() -> Bool {
    guard skipBetween(), var tag = readTag() else { return false }
    let hasPlist = tag.isNamed("plist") && tag.kind == .opens
    if hasPlist {
      guard skipBetween(), let next = readTag() else { return false }
      tag = next
    }
    guard tag.isNamed("dict"), tag.kind == .opens else { return false }
    start = index
    while let isEnd = readPair() {
      if isEnd { return !hasPlist || endsPlist() }
    }
    return false
  }

  /// Reads the next pair of the dictionary, or its end.
  /// - Returns: whether it was the end; nil where it was neither.
  private mutating func readPair() -> Bool? {
    guard skipBetween() else { return nil }
    let first = index
    guard let opening = readTag() else { return nil }
    if opening.kind == .closes { return opening.isNamed("dict") ? true : nil }
    guard opening.isNamed("key"), skipElement(opening) else { return nil }
    let key = first..<index
    guard skipBetween() else { return nil }
    let second = index
    guard let element = readTag(), element.kind != .closes, skipElement(element) else { return nil }
    pairs.append(PairPlace(key: key, value: second..<index))
    return false
  }

  private mutating func endsPlist() -> Bool {
    guard skipBetween(), let tag = readTag() else { return false }
    return tag.isNamed("plist") && tag.kind == .closes
  }

  /// Skips the rest of an element whose first tag was read.
  private mutating func skipElement(_ tag: Tag) -> Bool {
    if tag.kind == .isEmpty { return true }
    var open = [tag.name]
    while let name = open.last {
      while index < bytes.count, bytes[index] != UInt8(ascii: "<") { index += 1 }
      let start = index
      if skip("<!--", to: "-->") || skip("<![CDATA[", to: "]]>") || skip("<?", to: "?>") {
        continue
      }
      guard index < bytes.count else { return false }
      guard let tag = readTag() else {
        // A `<` that begins no tag is a part of the text.
        index = start + 1
        continue
      }
      switch tag.kind {
      case .isEmpty: break
      case .opens:
        open.append(tag.name)
        guard open.count <= Self.depth else { return false }
      case .closes:
        guard tag.name.elementsEqual(name) else { return false }
        open.removeLast()
      }
    }
    return true
  }

  /// Skips blanks, comments, instructions and a DTD.
  /// - Returns: whether a `<` comes next.
  private mutating func skipBetween() -> Bool {
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
  private mutating func readTag() -> Tag? {
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
    return Tag(name: name, kind: closes ? .closes : isEmpty ? .isEmpty : .opens)
  }
}
