/// Changes an XML list where its values change, and nowhere else: comments, the order of keys,
/// indentation, and the spelling of the other values stay as their author has them. So a list in a
/// repository differs in the lines that changed. Nor does it change what the list has for a key that
/// cannot be read (`ReadableList`), unless the key is set.
public enum XMLPatch {
  /// Returns the list with the new values. Returns nil where that cannot be done: the root is no
  /// dictionary with pairs, a key occurs twice, the text is not UTF-8, or a new value cannot be
  /// written. The caller then writes the list anew. Cost: O(size).
  /// - Parameters:
  ///   - list: the bytes of a list.
  ///   - old: its values that can be read.
  public static func apply(
    to list: [UInt8], from old: ValueDictionary, to new: ValueDictionary
  ) -> [UInt8]? {
    // XML has one size of reals.
    let (old, new) = (old.mapValues(\.withoutSingles), new.mapValues(\.withoutSingles))
    let pairs = list.withUnsafeBufferPointer { XMLOutline($0)?.pairs } ?? []
    let known = Set(pairs.map(\.key))
    guard let first = pairs.first, known.count == pairs.count, RecodedText.recode(list) == nil
    else { return nil }
    // A comment before the first key stays with it.
    let blank = Array(
      list[first.start..<first.place.key.lowerBound].reversed().prefix(while: \.isBlank).reversed())
    var added = new.keys.filter { !known.contains($0) }.sorted()[...]
    let isSorted = zip(pairs, pairs.dropFirst()).allSatisfy { $0.key < $1.key }
    var result = Array(list[..<first.start])
    for pair in pairs {
      while isSorted, let key = added.first, key < pair.key, let value = new[key] {
        guard let text = text(key, value, blank) else { return nil }
        result += text
        added = added.dropFirst()
      }
      guard let value = new[pair.key] else {
        // What cannot be read stays.
        if old[pair.key] == nil { result += list[pair.start..<pair.place.value.upperBound] }
        continue
      }
      if value == old[pair.key] {
        result += list[pair.start..<pair.place.value.upperBound]
      } else {
        guard let written = try? XMLWriter.write(value, depth: 1) else { return nil }
        result += list[pair.start..<pair.place.value.lowerBound] + written
      }
    }
    for key in added {
      guard let value = new[key], let text = text(key, value, blank) else { return nil }
      result += text
    }
    result += list[(pairs.last?.place.value.upperBound ?? first.start)...]
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

/// The pairs of an XML list's root dictionary, and where they are.
private struct XMLOutline {
  struct Pair {
    var key: Key
    /// The end of what comes before the pair: blanks and comments in between belong to it.
    var start: Int
    var place: PairPlace
  }

  private(set) var pairs: [Pair] = []

  /// Nil where the tags are not those of a dictionary, or a key cannot be read.
  init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let skeleton = XMLSkeleton(bytes) else { return nil }
    var end = skeleton.start
    for place in skeleton.pairs {
      var parser = XMLParser(limits: .list, size: place.key.count, isLenient: true)
      let text = UnsafeBufferPointer(rebasing: bytes[place.key])
      guard case .string(let name)? = try? parser.read(text) else { return nil }
      pairs.append(Pair(key: Key(name), start: end, place: place))
      end = place.value.upperBound
    }
  }
}
