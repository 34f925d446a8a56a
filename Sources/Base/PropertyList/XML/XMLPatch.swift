/// Changes an XML list where its values change, and nowhere else: comments, the order of keys,
/// indentation, and the spelling of the other values stay as their author has them. So a list in a
/// repository differs in the lines that changed. Nor does it change what the list has for a key that
/// cannot be read (`ReadableList`), unless the key is set.
public enum XMLPatch {
  /// Returns the list with the new values. Returns nil where that cannot be done: the root is no
  /// dictionary with pairs, a key occurs twice, the text is not UTF-8, or a new value cannot be
  /// written. The caller then writes the list anew. Cost: O(size).
  /// - Parameters:
  ///   - list: the bytes of a list that can be read.
  ///   - old: its values.
  public static func apply(
    to list: [UInt8], from old: ValueDictionary, to new: ValueDictionary
  ) -> [UInt8]? {
    // XML has one size of reals.
    let (old, new) = (old.mapValues(\.withoutSingles), new.mapValues(\.withoutSingles))
    guard let outline = XMLOutline(list), let first = outline.pairs.first else { return nil }
    let known = Set(outline.pairs.map(\.key))
    guard known.count == outline.pairs.count else { return nil }
    // A comment before the first key stays with it.
    let blank = Array(
      list[first.start..<first.keyStart].reversed().prefix(while: \.isBlank).reversed())
    var added = new.keys.filter { !known.contains($0) }.sorted()[...]
    let isSorted = zip(outline.pairs, outline.pairs.dropFirst()).allSatisfy { $0.key < $1.key }
    var result = Array(list[..<first.start])
    for pair in outline.pairs {
      while isSorted, let key = added.first, key < pair.key, let value = new[key] {
        guard let text = text(key, value, blank) else { return nil }
        result += text
        added = added.dropFirst()
      }
      guard let value = new[pair.key] else {
        if pair.isHidden { result += list[pair.start..<pair.end] }
        continue
      }
      if value == old[pair.key] {
        result += list[pair.start..<pair.end]
      } else {
        guard let written = try? XMLWriter.write(value, depth: 1) else { return nil }
        result += list[pair.start..<pair.valueStart] + written
      }
    }
    for key in added {
      guard let value = new[key], let text = text(key, value, blank) else { return nil }
      result += text
    }
    result += list[(outline.pairs.last?.end ?? first.start)...]
    return values(of: result) == new ? result : nil
  }

  private static func values(of list: [UInt8]) -> ValueDictionary? {
    guard let value = try? Document.read(list).value else { return ReadableList(list)?.values }
    return value.dictionary
  }

  /// The text of a new pair.
  /// - Parameter blank: what stands before the pair.
  private static func text(_ key: Key, _ value: Value, _ blank: some Sequence<UInt8>) -> [UInt8]? {
    guard let written = try? XMLWriter.write(value, depth: 1),
      let name = XMLWriter.element(of: key)
    else { return nil }
    let indent = Array(Array(blank).reversed().prefix { $0 == 0x20 || $0 == 0x09 }.reversed())
    let line: [UInt8] = blank.contains(0x0D) ? [0x0D, 0x0A] : [0x0A]
    return Array(blank) + name
      + (blank.contains(0x0A) ? line + indent : []) + written
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
    /// Where its value begins.
    var valueStart: Int
    var end: Int
    /// Whether the value cannot be read.
    var isHidden = false
  }

  private(set) var pairs: [Pair] = []

  /// Nil where the text is no XML list in UTF-8.
  init?(_ bytes: [UInt8]) {
    // A byte order mark may come first.
    guard let first = bytes.firstIndex(of: UInt8(ascii: "<")) else { return nil }
    // The parser takes for granted that a whole text is UTF-8.
    var utf8 = UTF8Validator()
    let isUTF8 = bytes.withUnsafeBufferPointer { utf8.feed($0) } && utf8.isComplete
    if isUTF8, bytes.withUnsafeBufferPointer({ read($0, from: first) }) { return }
    guard RecodedText.recode(bytes) == nil, let list = ReadableList(bytes), list.format == .xml
    else { return nil }
    pairs = []
    var end = list.start
    for (key, place, isHidden) in list.pairs {
      pairs.append(
        Pair(
          key: key, start: end, keyStart: place.key.lowerBound, valueStart: place.value.lowerBound,
          end: place.value.upperBound, isHidden: isHidden))
      end = place.value.upperBound
    }
  }

  /// Has the parser read the list, and notes where it is when a key or a value of the root ends.
  private mutating func read(_ bytes: UnsafeBufferPointer<UInt8>, from first: Int) -> Bool {
    var parser = XMLParser(size: bytes.count, isLenient: true)
    var (index, tag, lastEnd) = (first, first, first)
    var key: (start: Int, name: Key)?
    var container: Int?
    while index < bytes.count {
      if parser.state == .content, bytes[index] == UInt8(ascii: "<") { tag = index }
      let depth = parser.builder.depth
      guard let next = try? parser.step(bytes, at: index) else { return false }
      index = next
      if depth == 1, parser.builder.depth == 2 { container = tag }
      guard parser.state == .content, parser.builder.depth == 1 else { continue }
      if depth == 0 {
        lastEnd = index
      } else if let name = parser.builder.key {
        if key == nil { key = (tag, name) }
      } else if let (start, name) = key {
        let value = container ?? tag
        pairs.append(
          Pair(key: name, start: lastEnd, keyStart: start, valueStart: value, end: index))
        (lastEnd, key, container) = (index, nil, nil)
      }
    }
    return true
  }
}
