import PropertyList

/// A small reader of XML, as GLib's GMarkup reads it: elements, attributes, text and the five
/// entities; comments, instructions and the document type are passed over. It is for schemas of
/// GSettings, which need no more.
struct Markup {
  final class Element {
    let name: String
    let attributes: [String: String]
    fileprivate(set) var children: [Element] = []
    /// The text in it, without that of its children.
    fileprivate(set) var text = ""

    fileprivate init(_ name: String, _ attributes: [String: String]) {
      (self.name, self.attributes) = (name, attributes)
    }

    func all(_ name: String) -> [Element] { children.filter { $0.name == name } }

    /// The text of the first child with that name, without blanks around it and with one blank for
    /// several; nil if there is none.
    func text(of name: String) -> String? {
      all(name).first.map { $0.text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
    }
  }

  private var rest: Substring
  private static let deepest = 100

  /// Reads a document.
  /// - Returns: its element.
  static func read(_ text: String) throws(Malformed) -> Element {
    var markup = Markup(rest: text[...])
    let root = Element("", [:])
    try markup.readContents(of: root, depth: 0)
    guard root.children.count == 1, let first = root.children.first else {
      throw Malformed("it must have exactly one element that holds all others")
    }
    return first
  }

  private mutating func readContents(of parent: Element, depth: Int) throws(Malformed) {
    guard depth < Self.deepest else { throw Malformed("it is nested too deeply") }
    while !rest.isEmpty {
      if skip("<!--", to: "-->") || skip("<?", to: "?>") || skip("<!DOCTYPE", to: ">") { continue }
      if rest.hasPrefix("<![CDATA["), let end = rest.firstRange(of: "]]>") {
        parent.text += rest[rest.index(rest.startIndex, offsetBy: 9)..<end.lowerBound]
        rest = rest[end.upperBound...]
      } else if rest.hasPrefix("</") {
        guard let end = rest.firstIndex(of: ">") else {
          throw Malformed("it ends in a tag")
        }
        let name = rest[rest.index(rest.startIndex, offsetBy: 2)..<end]
        guard name.trimmed == parent.name else {
          throw Malformed("</\(name.trimmed)> ends <\(parent.name)>")
        }
        rest = rest[rest.index(after: end)...]
        return
      } else if rest.hasPrefix("<") {
        try readElement(in: parent, depth: depth)
      } else {
        let end = rest.firstIndex(of: "<") ?? rest.endIndex
        parent.text += try Self.unescaped(rest[..<end])
        rest = rest[end...]
      }
    }
    if depth > 0 { throw Malformed("<\(parent.name)> has no end") }
  }

  private mutating func skip(_ start: String, to end: String) -> Bool {
    guard rest.hasPrefix(start) else { return false }
    rest = rest.firstRange(of: end).map { rest[$0.upperBound...] } ?? rest[rest.endIndex...]
    return true
  }

  private mutating func readElement(in parent: Element, depth: Int) throws(Malformed) {
    rest.removeFirst()
    let name = word()
    guard !name.isEmpty else { throw Malformed("a tag has no name") }
    var attributes: [String: String] = [:]
    while true {
      rest = rest.drop(while: \.isWhitespace)
      if rest.hasPrefix("/>") {
        rest.removeFirst(2)
        parent.children.append(Element(name, attributes))
        return
      }
      if rest.hasPrefix(">") {
        rest.removeFirst()
        let element = Element(name, attributes)
        parent.children.append(element)
        return try readContents(of: element, depth: depth + 1)
      }
      let (key, value) = try attribute(of: name)
      guard attributes.updateValue(value, forKey: key) == nil else {
        throw Malformed("<\(name)> has \(key) twice")
      }
    }
  }

  private mutating func word() -> String {
    let end = rest.firstIndex { $0.isWhitespace || "=/<>\"'".contains($0) } ?? rest.endIndex
    defer { rest = rest[end...] }
    return String(rest[..<end])
  }

  private mutating func attribute(of element: String) throws(Malformed) -> (String, String) {
    let key = word()
    rest = rest.drop(while: \.isWhitespace)
    guard !key.isEmpty, rest.popFirst() == "=" else {
      throw Malformed("<\(element)> has an attribute without a value")
    }
    rest = rest.drop(while: \.isWhitespace)
    guard let quote = rest.popFirst(), "\"'".contains(quote), let end = rest.firstIndex(of: quote)
    else { throw Malformed("<\(element)>: the value of \(key) has no quotes") }
    defer { rest = rest[rest.index(after: end)...] }
    return (key, try Self.unescaped(rest[..<end]))
  }

  private static func unescaped(_ text: Substring) throws(Malformed) -> String {
    var (result, rest) = ("", text)
    while let start = rest.firstIndex(of: "&") {
      result += rest[..<start]
      guard let end = rest[start...].firstIndex(of: ";") else {
        throw Malformed("an entity has no end")
      }
      let name = rest[rest.index(after: start)..<end]
      guard let known = entity(name) else { throw Malformed("&\(name); is not known") }
      result += known
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private static func entity(_ name: Substring) -> String? {
    switch name {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      guard name.hasPrefix("#") else { return nil }
      let digits = name.dropFirst()
      let number = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
      return number.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }
  }
}

extension Substring {
  fileprivate var trimmed: String {
    String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
  }
}
