/// Changes an XML list where its values change, and nowhere else: comments, the order of keys,
/// indentation, and the spelling of the other values stay as their author has them. So a list in a
/// repository differs in the lines that changed.
public enum XMLPatch {
  /// Returns the list with the new values. Returns nil where that cannot be done: the root is no
  /// dictionary with pairs, a key occurs twice, the text is not UTF-8 or has a DTD of its own, or a
  /// new value cannot be written. The caller then writes the list anew. Cost: O(size).
  /// - Parameters:
  ///   - list: the bytes of a list that can be read.
  ///   - old: its values.
  public static func apply(
    to list: [UInt8], from old: ValueDictionary, to new: ValueDictionary
  ) -> [UInt8]? {
    guard let outline = XMLOutline(list), let first = outline.pairs.first,
      Set(outline.pairs.map(\.key)).count == outline.pairs.count
    else { return nil }
    // A comment before the first key stays with it.
    let blank = Array(
      list[first.start..<first.keyStart].reversed().prefix(while: \.isBlank).reversed())
    var added = new.keys.filter { old[$0] == nil }.sorted()[...]
    let isSorted = zip(outline.pairs, outline.pairs.dropFirst()).allSatisfy { $0.key < $1.key }
    var result = Array(list[..<first.start])
    for pair in outline.pairs {
      while isSorted, let key = added.first, key < pair.key, let value = new[key] {
        guard let text = text(key, value, blank) else { return nil }
        result += text
        added = added.dropFirst()
      }
      guard let value = new[pair.key] else { continue }
      if value == old[pair.key] {
        result += list[pair.start..<pair.end]
      } else {
        guard let text = text(pair.key, value, list[pair.start..<pair.keyStart]) else { return nil }
        result += text
      }
    }
    for key in added {
      guard let value = new[key], let text = text(key, value, blank) else { return nil }
      result += text
    }
    result += list[(outline.pairs.last?.end ?? first.start)...]
    guard case .dictionary(new)? = try? Document.read(result).value else { return nil }
    return result
  }

  /// The text of a pair.
  /// - Parameter blank: what stands before the pair.
  private static func text(_ key: Key, _ value: Value, _ blank: some Sequence<UInt8>) -> [UInt8]? {
    guard let written = try? XMLWriter.write(value, depth: 1),
      let name = try? XMLWriter.write(.string(key.string), depth: 0)
    else { return nil }
    // <string>KEY</string>
    let text = name.dropFirst("<string>".utf8.count).dropLast("</string>".utf8.count)
    let indent = Array(Array(blank).reversed().prefix { $0 == 0x20 || $0 == 0x09 }.reversed())
    let hasLines = blank.contains(0x0A)
    return Array(blank) + Array("<key>".utf8) + text + Array("</key>".utf8)
      + (hasLines ? [0x0A] + indent : []) + written
  }
}

/// Where the pairs of an XML list's root dictionary are.
private struct XMLOutline {
  struct Pair {
    var key: Key
    /// The end of what comes before the pair: blanks and comments in between belong to it.
    var start: Int
    /// Where its `<key>` begins.
    var keyStart: Int
    var end: Int
  }

  private(set) var pairs: [Pair] = []
  private let bytes: [UInt8]
  private var index = 0
  /// How many containers are open.
  private var depth = 0
  private var lastEnd = 0
  private var key: (start: Int, name: Key)?

  /// Nil where the text has something that this does not know, or its root is no dictionary.
  init?(_ bytes: [UInt8]) {
    self.bytes = bytes
    while true {
      guard let start = bytes[index...].firstIndex(of: UInt8(ascii: "<")) else { return nil }
      index = start
      guard let isDone = skipDeclaration() ? false : readTag(at: start) else { return nil }
      if isDone { return }
    }
  }

  /// Skips a comment, an instruction or a document type.
  private mutating func skipDeclaration() -> Bool {
    let ends: [(String, String)] = [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")]
    for (begin, end) in ends where bytes[index...].starts(with: begin.utf8) {
      index = self.end(of: end) ?? bytes.count
      return true
    }
    guard bytes[index...].starts(with: "<!".utf8) else { return false }
    // A DTD of its own has brackets.
    guard let end = self.end(of: ">"), !bytes[index..<end].contains(UInt8(ascii: "[")) else {
      index = bytes.count
      return true
    }
    index = end
    return true
  }

  /// The index behind the next occurrence of the text.
  private func end(of text: String) -> Int? {
    let text = Array(text.utf8)
    var start = index
    while let found = bytes[start...].firstIndex(of: text[0]) {
      if bytes[found...].starts(with: text) { return found + text.count }
      start = found + 1
    }
    return nil
  }

  /// Reads the tag at the index, and what is in it if that is no container.
  /// - Returns: whether the root has ended; nil: this is no list with a dictionary.
  private mutating func readTag(at start: Int) -> Bool? {
    guard let end = end(of: ">") else { return nil }
    index = end
    let closes = bytes[start + 1] == UInt8(ascii: "/")
    let isEmpty = bytes[end - 2] == UInt8(ascii: "/")
    let name = String(
      decoding: bytes[(start + (closes ? 2 : 1))..<end].prefix {
        $0 != 0x3E && $0 != 0x2F && !$0.isBlank
      },
      as: UTF8.self)
    switch name {
    case "plist": return false
    case "dict" where depth == 0 && !closes && !isEmpty:
      (depth, lastEnd) = (1, end)
      return false
    case _ where depth == 0: return nil
    case "dict", "array": return readContainer(closes: closes, isEmpty: isEmpty, end)
    case "key" where depth == 1: return readKey(at: start, content: end, isEmpty: isEmpty)
    default:
      if !isEmpty, !closes {
        guard let close = self.end(of: "</\(name)") else { return nil }
        index = close
        guard let end = self.end(of: ">") else { return nil }
        index = end
      }
      return endValue()
    }
  }

  private mutating func readContainer(closes: Bool, isEmpty: Bool, _ end: Int) -> Bool? {
    if isEmpty { return endValue() }
    depth += closes ? -1 : 1
    if depth == 0 { return true }
    return closes ? endValue() : false
  }

  private mutating func readKey(at start: Int, content: Int, isEmpty: Bool) -> Bool? {
    guard !isEmpty else {
      key = (start, "")
      return false
    }
    guard let end = end(of: "</key>") else { return nil }
    let raw = Array("<string>".utf8) + bytes[content..<end - "</key>".utf8.count]
    guard case .string(let name)? = try? Document.read(raw + Array("</string>".utf8)).value else {
      return nil
    }
    (index, key) = (end, (start, Key(name)))
    return false
  }

  /// Ends a value. One of the root ends its pair.
  private mutating func endValue() -> Bool? {
    guard depth == 1 else { return false }
    guard let key else { return nil }
    pairs.append(Pair(key: key.name, start: lastEnd, keyStart: key.start, end: index))
    (lastEnd, self.key) = (index, nil)
    return false
  }
}
