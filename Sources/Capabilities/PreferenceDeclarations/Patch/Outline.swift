import PropertyList

/// Where the values of a document are in its text.
struct Outline {
  /// A value of the text.
  struct Node {
    var range: Range<Int>
    var contents = Contents.scalar
  }

  enum Contents {
    case scalar
    case array([Node])
    case dictionary([Member])
  }

  struct Member {
    var name: Key
    var key: Range<Int>
    var value: Node
  }

  let root: Node
  let format: Format

  /// The most containers that may be inside of each other.
  static let deepest = 512

  /// Nil for a text that is neither JSON nor XML in UTF-8. Whether it is valid, its reader has
  /// checked. Cost: O(bytes).
  init?(_ bytes: [UInt8], _ format: Format) {
    var root: Node?
    switch format {
    case .json:
      var reader = JSONOutlineReader(bytes)
      root = reader.readAll()
    case .xml:
      var reader = XMLOutlineReader(bytes)
      root = reader.readAll()
    case .binary, .openStep: root = nil
    }
    guard let root else { return nil }
    (self.root, self.format) = (root, format)
  }
}

/// Finds the values of a JSON text.
struct JSONOutlineReader {
  private let bytes: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
  }

  mutating func readAll() -> Outline.Node? {
    guard let node = readValue(depth: 0) else { return nil }
    skipBlanks()
    return index == bytes.count ? node : nil
  }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipBlanks() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
  }

  private mutating func skip(_ mark: Unicode.Scalar) -> Bool {
    skipBlanks()
    guard next == UInt8(ascii: mark) else { return false }
    index += 1
    return true
  }

  private mutating func readValue(depth: Int) -> Outline.Node? {
    skipBlanks()
    let start = index
    guard depth < Outline.deepest, let byte = next else { return nil }
    var contents = Outline.Contents.scalar
    switch byte {
    case UInt8(ascii: "{"):
      guard let members = readMembers(depth: depth) else { return nil }
      contents = .dictionary(members)
    case UInt8(ascii: "["):
      guard let elements = readElements(depth: depth) else { return nil }
      contents = .array(elements)
    case UInt8(ascii: "\""): guard skipString() else { return nil }
    default:
      while let byte = next, !" \t\r\n,]}".utf8.contains(byte) { index += 1 }
      if index == start { return nil }
    }
    return Outline.Node(range: start..<index, contents: contents)
  }

  private mutating func skipString() -> Bool {
    index += 1
    while let byte = next {
      index += byte == UInt8(ascii: "\\") ? 2 : 1
      if byte == UInt8(ascii: "\"") { return true }
    }
    return false
  }

  private mutating func readElements(depth: Int) -> [Outline.Node]? {
    index += 1
    var elements: [Outline.Node] = []
    if skip("]") { return elements }
    while let element = readValue(depth: depth + 1) {
      elements.append(element)
      if skip("]") { return elements }
      guard skip(",") else { return nil }
    }
    return nil
  }

  private mutating func readMembers(depth: Int) -> [Outline.Member]? {
    index += 1
    var members: [Outline.Member] = []
    if skip("}") { return members }
    while true {
      skipBlanks()
      let start = index
      guard next == UInt8(ascii: "\""), skipString(), let name = name(start..<index) else {
        return nil
      }
      let key = start..<index
      guard skip(":"), let value = readValue(depth: depth + 1) else { return nil }
      members.append(Outline.Member(name: name, key: key, value: value))
      if skip("}") { return members }
      guard skip(",") else { return nil }
    }
  }

  private func name(_ range: Range<Int>) -> Key? {
    let list = try? Document.read([0x5B] + bytes[range] + [0x5D]).value
    return list?.elements?.first?.string.map { Key($0) }
  }
}

/// Finds the values of an XML property list.
struct XMLOutlineReader {
  private let bytes: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func readAll() -> Outline.Node? {
    guard var tag = readTag() else { return nil }
    if tag.name == "plist" {
      guard tag.kind == .opens, let next = readTag() else { return nil }
      tag = next
    }
    return readValue(tag, depth: 0)
  }

  private struct Tag {
    enum Kind { case opens, closes, isEmpty }

    var name: String
    var kind: Kind
    var range: Range<Int>
  }

  private func isNext(_ text: StaticString) -> Bool {
    let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    return bytes[index...].starts(with: text)
  }

  private mutating func skip(behind text: String) -> Bool {
    while index < bytes.count {
      if bytes[index...].starts(with: text.utf8) {
        index += text.utf8.count
        return true
      }
      index += 1
    }
    return false
  }

  /// Reads the next tag; what stands before it, comments and CDATA among that, is skipped.
  private mutating func readTag() -> Tag? {
    while let start = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
      index = start
      if isNext("<!--") {
        guard skip(behind: "-->") else { return nil }
      } else if isNext("<![CDATA[") {
        guard skip(behind: "]]>") else { return nil }
      } else if isNext("<?") {
        guard skip(behind: "?>") else { return nil }
      } else if isNext("<!") {
        // A list with entities of its own is not patched.
        guard skip(behind: ">"), !bytes[start..<index].contains(UInt8(ascii: "[")) else {
          return nil
        }
      } else {
        guard skip(behind: ">") else { return nil }
        let isClosing = bytes[start + 1] == UInt8(ascii: "/")
        let isEmpty = bytes[index - 2] == UInt8(ascii: "/")
        let name = bytes[(start + (isClosing ? 2 : 1))..<(index - 1)].prefix {
          !" \t\r\n/".utf8.contains($0)
        }
        return Tag(
          name: String(decoding: name, as: UTF8.self),
          kind: isClosing ? .closes : isEmpty ? .isEmpty : .opens, range: start..<index)
      }
    }
    return nil
  }

  private mutating func readValue(_ tag: Tag, depth: Int) -> Outline.Node? {
    guard depth < Outline.deepest, tag.kind != .closes else { return nil }
    var contents = Outline.Contents.scalar
    if tag.name == "dict" {
      guard let members = tag.kind == .isEmpty ? [] : readMembers(depth: depth) else { return nil }
      contents = .dictionary(members)
    } else if tag.name == "array" {
      guard let elements = tag.kind == .isEmpty ? [] : readElements(depth: depth) else {
        return nil
      }
      contents = .array(elements)
    } else if tag.kind == .opens {
      guard let end = readTag(), end.kind == .closes, end.name == tag.name else { return nil }
    }
    return Outline.Node(range: tag.range.lowerBound..<index, contents: contents)
  }

  private mutating func readElements(depth: Int) -> [Outline.Node]? {
    var elements: [Outline.Node] = []
    while let tag = readTag() {
      if tag.kind == .closes { return tag.name == "array" ? elements : nil }
      guard let element = readValue(tag, depth: depth + 1) else { return nil }
      elements.append(element)
    }
    return nil
  }

  private mutating func readMembers(depth: Int) -> [Outline.Member]? {
    var members: [Outline.Member] = []
    while let tag = readTag() {
      if tag.kind == .closes { return tag.name == "dict" ? members : nil }
      guard tag.name == "key" else { return nil }
      var text = index..<index
      if tag.kind == .opens {
        guard let end = readTag(), end.kind == .closes, end.name == "key" else { return nil }
        text = tag.range.upperBound..<end.range.lowerBound
      }
      let key = tag.range.lowerBound..<index
      guard let name = name(text), let next = readTag(),
        let value = readValue(next, depth: depth + 1)
      else { return nil }
      members.append(Outline.Member(name: name, key: key, value: value))
    }
    return nil
  }

  private func name(_ range: Range<Int>) -> Key? {
    let text =
      Array("<plist version=\"1.0\"><string>".utf8) + bytes[range]
      + Array("</string></plist>".utf8)
    return (try? Document.read(text).value)?.string.map { Key($0) }
  }
}
