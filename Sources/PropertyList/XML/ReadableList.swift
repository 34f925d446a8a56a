/// A list of which values cannot be read, neither here nor by Foundation, and the others can.
///
/// Each key of the root dictionary stands for itself: one whose value cannot be read, or has such a
/// value inside, is hidden. What the file has for it stays as it is when the list is changed
/// (`XMLPatch`) or written anew (`writing`).
public struct ReadableList {
  /// The values that can be read.
  public private(set) var values: ValueDictionary = [:]
  /// The hidden keys, and why they are: "line 12: the text of <integer> is not valid".
  public private(set) var hidden: [Key: String] = [:]
  /// The pairs in their order, with the bytes of the list from the key to the end of the value.
  private(set) var pairs: [(key: Key, place: XMLSkeleton.Pair, isHidden: Bool)] = []
  /// The end of the tag that opens the dictionary.
  private(set) var start = 0
  /// The list in UTF-8, apart from what is hidden.
  private let bytes: [UInt8]

  /// Nil for a list that is not XML, of which everything or nothing can be read, or that is no
  /// dictionary up to its end. Cost: O(bytes).
  public init?(_ bytes: [UInt8]) {
    let recoded = RecodedText.recode(bytes)
    guard recoded != nil || RecodedText.declaresUTF8(bytes) else { return nil }
    let text = recoded ?? bytes
    self.bytes = text
    guard text.withUnsafeBufferPointer({ read($0) }), !hidden.isEmpty else { return nil }
  }

  private mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let skeleton = XMLSkeleton(bytes) else { return false }
    start = skeleton.start
    var (line, counted) = (1, 0)
    var items: [(key: Key, value: Value)] = []
    for place in skeleton.pairs {
      let spelled = UnsafeBufferPointer(rebasing: bytes[place.key])
      guard case .string(let name)? = try? Self.parse(spelled) else { return false }
      let key = Key(name)
      do throws(FormatError) {
        items.append((key, try Self.parse(UnsafeBufferPointer(rebasing: bytes[place.value]))))
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
    values = ValueDictionary(items)
    for key in hidden.keys { values[key] = nil }
    return true
  }

  private static func parse(
    _ element: UnsafeBufferPointer<UInt8>
  ) throws(FormatError) -> Value {
    var parser = XMLParser(limits: .list, size: element.count, isLenient: true)
    return try parser.read(element)
  }

  /// Returns an XML list with these values, and with what this one has for hidden keys that are not
  /// among them; nil where there is none of those.
  public func writing(_ values: ValueDictionary) -> [UInt8]? {
    let kept = pairs.filter { $0.isHidden && values[$0.key] == nil }
    let written = Document.anyXML(.dictionary(values))
    let (empty, end) = (Array("<dict/>\n</plist>\n".utf8), Array("</dict>\n</plist>\n".utf8))
    let isEmpty = values.isEmpty && written.suffix(empty.count).elementsEqual(empty)
    guard !kept.isEmpty, isEmpty || written.suffix(end.count).elementsEqual(end) else { return nil }
    var list = Array(written.dropLast(isEmpty ? empty.count : end.count))
    if isEmpty { list += Array("<dict>\n".utf8) }
    for pair in kept {
      for element in [pair.place.key, pair.place.value] {
        list.append(UInt8(ascii: "\t"))
        list += bytes[element]
        list.append(UInt8(ascii: "\n"))
      }
    }
    return list + end
  }
}
