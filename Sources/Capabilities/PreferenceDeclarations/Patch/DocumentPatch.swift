import PropertyList

/// Changes a document where its values change, and nowhere else: the order of keys, indentation,
/// comments and the spelling of the other values stay as their author has them.
package struct DocumentPatch {
  private let bytes: [UInt8]
  private let outline: Outline

  /// Returns the document with the new values. Nil where that cannot be done: the text is neither
  /// JSON nor XML in UTF-8, a key occurs twice, or the format cannot hold a new value. `null` of
  /// JSON is `Declaration.absent`. Cost: O(size).
  /// - Parameters:
  ///   - bytes: the document, which has been read.
  ///   - old: its values.
  package static func apply(
    to bytes: [UInt8], _ format: Format, from old: ValueDictionary, to new: ValueDictionary
  ) -> [UInt8]? {
    guard let outline = Outline(bytes, format) else { return nil }
    let patch = DocumentPatch(bytes: bytes, outline: outline)
    let root = outline.root
    guard let text = patch.text(of: root, from: .dictionary(old), to: .dictionary(new)) else {
      return nil
    }
    let result = bytes[..<root.range.lowerBound] + text + bytes[root.range.upperBound...]
    var limits = Limits.list
    limits.null = Declaration.absent
    let read = try? Document.read(Array(result), limits: limits).value
    return read == .dictionary(new) ? Array(result) : nil
  }

  private func text(of node: Outline.Node, from old: Value, to new: Value) -> [UInt8]? {
    if old == new { return Array(bytes[node.range]) }
    switch (node.contents, old, new) {
    case (.dictionary(let members), .dictionary(let old), .dictionary(let new)):
      return dictionary(node, members, from: old, to: new)
    case (.array(let elements), .array(let old), .array(let new)):
      return array(node, elements, from: old, to: new)
    default: return render(new)
    }
  }

  // MARK: - Containers

  /// What is in a container afterwards.
  private enum Item {
    /// The item that has this number now, with its text.
    case known(Int, [UInt8])
    case added([UInt8])
  }

  private func dictionary(
    _ node: Outline.Node, _ members: [Outline.Member], from old: ValueDictionary,
    to new: ValueDictionary
  ) -> [UInt8]? {
    // An instruction is written anew, so that `null` does not become a member.
    if .dictionary(new) == Declaration.absent { return render(.dictionary(new)) }
    guard Set(members.map(\.name)).count == members.count, members.count == old.count else {
      return nil
    }
    var items: [Item] = []
    for (index, member) in members.enumerated() {
      guard let known = old[member.name] else { return nil }
      guard let goal = new[member.name] else { continue }
      guard let value = text(of: member.value, from: known, to: goal) else { return nil }
      let head = bytes[member.key.lowerBound..<member.value.range.lowerBound]
      items.append(.known(index, head + value))
    }
    for (key, value) in new.sorted(by: { $0.key < $1.key }) where old[key] == nil {
      guard let pair = pair(key, value, like: members.first) else { return nil }
      items.append(.added(pair))
    }
    let places = members.map { $0.key.lowerBound..<$0.value.range.upperBound }
    return assemble(items, places, node) ?? render(.dictionary(new))
  }

  private func array(
    _ node: Outline.Node, _ elements: [Outline.Node], from old: [Value], to new: [Value]
  ) -> [UInt8]? {
    guard elements.count == old.count else { return nil }
    let isSameCount = old.count == new.count
    let first = isSameCount ? old.count : zip(old, new).prefix { $0 == $1 }.count
    let rest = zip(old.dropFirst(first).reversed(), new.dropFirst(first).reversed())
    let last = rest.prefix { $0 == $1 }.count
    var items: [Item] = []
    for index in 0..<first {
      guard let text = text(of: elements[index], from: old[index], to: new[index]) else {
        return nil
      }
      items.append(.known(index, text))
    }
    for value in new[first..<(new.count - last)] {
      guard let text = render(value) else { return nil }
      items.append(.added(text))
    }
    for index in (old.count - last)..<old.count {
      items.append(.known(index, Array(bytes[elements[index].range])))
    }
    return assemble(items, elements.map(\.range), node) ?? render(.array(new))
  }

  /// Puts items between what stands around them now; nil if nothing stands there, or nothing would.
  private func assemble(
    _ items: [Item], _ places: [Range<Int>], _ node: Outline.Node
  ) -> [UInt8]? {
    guard let first = places.first, let last = places.last, !items.isEmpty else { return nil }
    let head = Array(bytes[node.range.lowerBound..<first.lowerBound])
    let separator = separator(places, head)
    var result = head
    for (number, item) in items.enumerated() {
      switch item {
      case .known(let index, let text):
        if number > 0, index > 0 {
          result += bytes[places[index - 1].upperBound..<places[index].lowerBound]
        }
        result += text
      case .added(let text): result += (number > 0 ? separator : []) + text
      }
    }
    return result + bytes[last.upperBound..<node.range.upperBound]
  }

  /// What stands between two items, without comments.
  private func separator(_ places: [Range<Int>], _ head: [UInt8]) -> [UInt8] {
    let comma: [UInt8] = outline.format == .json ? [UInt8(ascii: ",")] : []
    if places.count > 1 {
      let between = Array(bytes[places[0].upperBound..<places[1].lowerBound])
      if between.filter({ !$0.isSpace }) == comma { return between }
    }
    let blanks = Array(head.reversed().prefix(while: \.isSpace).reversed())
    if blanks.contains(0x0A) { return comma + blanks }
    return outline.format == .json ? comma + [0x20] : []
  }

  // MARK: - New values

  private func pair(_ key: Key, _ value: Value, like member: Outline.Member?) -> [UInt8]? {
    guard let value = render(value) else { return nil }
    let gap = member.map { Array(bytes[$0.key.upperBound..<$0.value.range.lowerBound]) }
    guard outline.format == .xml else {
      let known = gap?.filter { !$0.isSpace } == [UInt8(ascii: ":")] ? gap : nil
      guard let name = render(.string(key.string)) else { return nil }
      return name + (known ?? Array(": ".utf8)) + value
    }
    guard let name = render(.string(key.string)) else { return nil }
    // <string>name</string>, or <string/> for an empty one.
    let text = name.starts(with: "<string>".utf8) ? Array(name.dropFirst(8).dropLast(9)) : []
    let known = gap?.allSatisfy(\.isSpace) == true ? gap : nil
    return Array("<key>".utf8) + text + Array("</key>".utf8) + (known ?? []) + value
  }

  /// The text of a value, in one line if it has none in its strings. Cost: O(size).
  private func render(_ value: Value) -> [UInt8]? {
    let isXML = outline.format == .xml
    switch value {
    case Declaration.absent where !isXML: return Array("null".utf8)
    case .array(let elements):
      var texts: [[UInt8]] = []
      for element in elements {
        guard let text = render(element) else { return nil }
        texts.append(text)
      }
      return isXML
        ? Array("<array>".utf8) + texts.joined() + Array("</array>".utf8)
        : [0x5B] + texts.joined(separator: ", ".utf8) + [0x5D]
    case .dictionary(let members):
      var texts: [[UInt8]] = []
      for (key, value) in members.sorted(by: { $0.key < $1.key }) {
        guard let text = pair(key, value, like: nil) else { return nil }
        texts.append(text)
      }
      return isXML
        ? Array("<dict>".utf8) + texts.joined() + Array("</dict>".utf8)
        : [0x7B] + texts.joined(separator: ", ".utf8) + [0x7D]
    default: return scalar(value)
    }
  }

  private func scalar(_ value: Value) -> [UInt8]? {
    let list = Value.array([value])
    guard let written = try? Document.write(list, as: outline.format) else { return nil }
    var text = written[...]
    if outline.format == .json {
      guard let end = written.lastIndex(of: UInt8(ascii: "]")) else { return nil }
      text = written[1..<end]
    } else {
      guard let start = written.firstRange(of: Array("<array>".utf8))?.upperBound,
        let end = written.firstRange(of: Array("</array>".utf8))?.lowerBound
      else { return nil }
      text = written[start..<end]
    }
    return Array(text.drop(while: \.isSpace).reversed().drop(while: \.isSpace).reversed())
  }
}

extension UInt8 {
  fileprivate var isSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}
