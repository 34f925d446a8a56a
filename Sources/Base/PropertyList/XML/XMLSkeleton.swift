/// Where the pairs of the root dictionary of an XML list are, by its tags alone: what stands between
/// the tags of a value need not be valid.
///
/// There is no skeleton of a list that ends too early, so one that is just being written is never
/// taken for whole.
struct XMLSkeleton {
  /// The end of the tag that opens the dictionary.
  private(set) var start = 0
  private(set) var pairs: [PairPlace] = []
  private var tags: XMLTags
  private var index: Int { tags.index }

  /// The most elements that may be inside of each other, as `Limits.standard` has it.
  private static let depth = 512

  /// Nil where the tags are not those of a dictionary. Use it while the bytes are there. Cost:
  /// O(bytes).
  init?(_ bytes: UnsafeBufferPointer<UInt8>) {
    tags = XMLTags(bytes)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { tags.index = 3 }
    guard readList() else { return nil }
  }

  private mutating func readList() -> Bool {
    guard tags.skipBetween(), var tag = tags.readTag() else { return false }
    let hasPlist = tag.isNamed("plist") && tag.kind == .opens
    if hasPlist {
      guard tags.skipBetween(), let next = tags.readTag() else { return false }
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
    guard tags.skipBetween() else { return nil }
    let first = index
    guard let opening = tags.readTag() else { return nil }
    if opening.kind == .closes { return opening.isNamed("dict") ? true : nil }
    guard opening.isNamed("key"), skipElement(opening) else { return nil }
    let key = first..<index
    guard tags.skipBetween() else { return nil }
    let second = index
    guard let element = tags.readTag(), element.kind != .closes, skipElement(element) else {
      return nil
    }
    pairs.append(PairPlace(key: key, value: second..<index))
    return false
  }

  private mutating func endsPlist() -> Bool {
    guard tags.skipBetween(), let tag = tags.readTag() else { return false }
    return tag.isNamed("plist") && tag.kind == .closes
  }

  /// Skips the rest of an element whose first tag was read.
  private mutating func skipElement(_ tag: XMLTags.Tag) -> Bool {
    if tag.kind == .isEmpty { return true }
    var open = [tag.name]
    while let name = open.last {
      guard let tag = tags.next() else { return false }
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
}
