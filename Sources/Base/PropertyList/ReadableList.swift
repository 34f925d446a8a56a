/// A list of which values cannot be read, neither here nor by Foundation, and the others can.
///
/// Each key of the root dictionary stands for itself: one whose value cannot be read, or has such a
/// value inside, is hidden. What the file has for it stays as it is when the list is changed
/// (`XMLPatch`) or written anew (`writing`).
///
/// Where a pair ends must be certain: by the tags in XML (`XMLSkeleton`), by the punctuation in JSON
/// and old-style text (`TextSkeleton`), by the references in a binary list. A text of which a key
/// cannot be read is not read at all. In a binary list, such a key is hidden, too, under a name in
/// parentheses: Foundation reads keys that are numbers.
public struct ReadableList {
  /// The values that can be read.
  public private(set) var values: ValueDictionary = [:]
  /// The hidden keys, and why they are: "line 12: the text of <integer> is not valid".
  public private(set) var hidden: [Key: String] = [:]
  /// The format of the list.
  public private(set) var format = Format.xml
  /// The pairs of a text in their order, and whether they are hidden.
  private var pairs: [(key: Key, place: PairPlace, isHidden: Bool)] = []
  /// The hidden pairs of a binary list: the numbers of their objects; nil means out of range.
  private var objects: [(name: Key, key: Int?, value: Int?)] = []
  /// The list; a text in UTF-8, apart from what is hidden.
  private let bytes: [UInt8]

  /// Nil for a list of which everything can be read, or nothing is certain. Cost: O(bytes).
  public init?(_ bytes: [UInt8]) {
    if bytes.starts(with: "bplist0".utf8) {
      (self.bytes, format) = (bytes, .binary)
      guard bytes.withUnsafeBytes({ readBinary($0) }) else { return nil }
      return
    }
    let recoded = RecodedText.recode(bytes)
    guard recoded != nil || RecodedText.declaresUTF8(bytes) else { return nil }
    let text = recoded ?? bytes
    self.bytes = text
    guard text.withUnsafeBufferPointer({ readText($0) }), pairs.contains(where: \.isHidden) else {
      return nil
    }
  }
}

/// The bytes of a pair in a text.
struct PairPlace {
  var key: Range<Int>
  var value: Range<Int>
}

// MARK: - Reading

extension ReadableList {
  private mutating func readText(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    let places: [PairPlace]
    if let xml = XMLSkeleton(bytes) {
      places = xml.pairs
    } else if let json = TextSkeleton(bytes, .json) {
      (format, places) = (.json, json.pairs)
    } else if let openStep = TextSkeleton(bytes, .openStep) {
      (format, places) = (.openStep, openStep.pairs)
    } else {
      return false
    }
    var (line, counted) = (1, 0)
    var items: [(key: Key, value: Value)] = []
    for place in places {
      guard case .string(let name)? = try? parse(bytes, place.key) else { return false }
      let key = Key(name)
      do throws(FormatError) {
        items.append((key, try parse(bytes, place.value)))
        hidden[key] = nil
        pairs.append((key, place, false))
      } catch {
        line += UnsafeBufferPointer(rebasing: bytes[counted..<place.value.lowerBound])
          .newlines(before: place.value.lowerBound - counted)
        counted = place.value.lowerBound
        hidden[key] = "line \(line + (error.line ?? 1) - 1): \(error.reason)"
        pairs.append((key, place, true))
      }
    }
    setValues(ValueDictionary(items))
    return true
  }

  private mutating func setValues(_ items: ValueDictionary) {
    values = items
    for key in hidden.keys { values[key] = nil }
  }

  private func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, _ place: Range<Int>
  ) throws(FormatError) -> Value {
    let text = UnsafeBufferPointer(rebasing: bytes[place])
    switch format {
    case .json:
      var parser = JSONParser(limits: .list, size: text.count)
      return try parser.read(text)
    case .openStep:
      var parser = OpenStepParser(limits: .list, size: text.count, isLenient: true)
      return try parser.read(text)
    case .xml, .binary:
      var parser = XMLParser(limits: .list, size: text.count, isLenient: true)
      return try parser.read(text)
    }
  }

  /// Of a key that occurs twice, the first value counts, also if it cannot be read.
  private mutating func readBinary(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard var reader = try? BinaryReader(bytes, limits: .standard),
      let root = try? reader.readRoot()
    else { return false }
    var items: [(key: Key, value: Value)] = []
    var known: Set<Key> = []
    var isOdd = false
    for position in 0..<root.count {
      var name: Key?
      do throws(FormatError) {
        let pair = try reader.readPair(position, of: root, &name)
        if known.insert(pair.key).inserted { items.append(pair) }
      } catch {
        isOdd = true
        let key = name ?? Key("(key \(position + 1))")
        guard known.insert(key).inserted else { continue }
        hidden[key] = "offset \(error.offset ?? 0): \(error.reason)"
        let (first, second) = reader.list.references(position, of: root)
        objects.append((key, first, second))
      }
    }
    setValues(ValueDictionary(items))
    return isOdd && KeptObjects(reader.list, objects.map { ($0.key, $0.value) }) != nil
  }
}

// MARK: - Writing

extension ReadableList {
  /// Returns a list with these values, and with what this one has for hidden keys that are not among
  /// them; nil where there is none of those. Cost: O(size of both).
  ///
  /// XML and JSON have the text that they had, and a binary list has the objects (`KeptObjects`). An
  /// old-style list becomes XML, and so does JSON that cannot hold the values: it has the text in an
  /// element `<old-style>` or `<json>`, which no reader knows, so that the key stays hidden.
  public func writing(_ values: ValueDictionary) -> (bytes: [UInt8], format: Format)? {
    if format == .binary { return binary(values).map { ($0, .binary) } }
    let kept = pairs.filter {
      $0.isHidden && hidden[$0.key] != nil && values[$0.key] == nil
    }
    guard !kept.isEmpty else { return nil }
    if format == .json, let list = json(values, kept.map(\.place)) { return (list, .json) }
    return xml(values, kept.map { ($0.key, $0.place) }).map { ($0, .xml) }
  }

  private func binary(_ values: ValueDictionary) -> [UInt8]? {
    let kept = objects.filter { values[$0.name] == nil }.map { ($0.key, $0.value) }
    guard !kept.isEmpty else { return nil }
    return bytes.withUnsafeBytes { buffer in
      guard let list = try? BinaryList(buffer), let objects = KeptObjects(list, kept) else {
        return nil
      }
      return BinaryWriter.write(values, keeping: BinaryList.oddStrings(in: bytes), objects)
    }
  }

  private func json(_ values: ValueDictionary, _ kept: [PairPlace]) -> [UInt8]? {
    guard let written = try? JSONWriter.write(.dictionary(values)) else { return nil }
    // {}, or the last pair and a new line before the brace.
    var list = Array(written.dropLast(values.isEmpty ? 2 : 3))
    for (index, place) in kept.enumerated() {
      list += Array(index == 0 && values.isEmpty ? "\n  ".utf8 : ",\n  ".utf8)
      list += bytes[place.key] + Array(": ".utf8) + bytes[place.value]
    }
    return list + Array("\n}\n".utf8)
  }

  private func xml(_ values: ValueDictionary, _ kept: [(Key, PairPlace)]) -> [UInt8]? {
    let written = Document.anyXML(.dictionary(values))
    let (empty, end) = (Array("<dict/>\n</plist>\n".utf8), Array("</dict>\n</plist>\n".utf8))
    let isEmpty = values.isEmpty && written.suffix(empty.count).elementsEqual(empty)
    guard isEmpty || written.suffix(end.count).elementsEqual(end) else { return nil }
    var list = Array(written.dropLast(isEmpty ? empty.count : end.count))
    if isEmpty { list += Array("<dict>\n".utf8) }
    for (key, place) in kept {
      var elements = [Array(bytes[place.key]), Array(bytes[place.value])]
      if format != .xml {
        guard let name = XMLWriter.element(of: key, .any) else { return nil }
        elements = [name, wrapped(place.value)]
      }
      for element in elements {
        list.append(UInt8(ascii: "\t"))
        list += element
        list.append(UInt8(ascii: "\n"))
      }
    }
    return list + end
  }

  /// The text of another format as an element.
  private func wrapped(_ place: Range<Int>) -> [UInt8] {
    var text: [UInt8] = []
    for byte in bytes[place] {
      // ]]> would end the section.
      if byte == UInt8(ascii: ">"), text.suffix(2).elementsEqual("]]".utf8) {
        text += Array("]]><![CDATA[".utf8)
      }
      text.append(byte)
    }
    let name = format.rawValue
    return Array("<\(name)><![CDATA[".utf8) + text + Array("]]></\(name)>".utf8)
  }
}
