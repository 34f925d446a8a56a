import PropertyList

/// A place inside of a value: `Key:Sub:0`, as PlistBuddy writes it. Entries are keys of dictionaries and
/// indexes of arrays, from 0; `\:` is a colon, `\\` a backslash.
struct ValuePath {
  /// The preference's key.
  let key: Key
  let entries: ArraySlice<String>
  let text: String

  /// - Parameter isPath: else the text is the key.
  init(_ text: String, isPath: Bool) {
    self.text = text
    var all = isPath ? Self.split(text) : [text]
    if isPath, all.count > 1, all[0].isEmpty { all.removeFirst() }
    key = Key(all[0])
    entries = all.dropFirst()
  }

  /// Entries of the longest path that leads to where something can be set.
  private static let deepest = 400

  private static func split(_ text: String) -> [String] {
    var entries = [""]
    var isEscaped = false
    for character in text {
      switch character {
      case "\\" where !isEscaped: isEscaped = true
      case ":" where !isEscaped: entries.append("")
      default:
        entries[entries.count - 1].append(character)
        isEscaped = false
      }
    }
    return entries
  }

  /// What stands there.
  func find(in value: Value) -> Value? {
    entries.reduce(Optional(value)) { value, entry in value?[entry] }
  }

  /// The value with another one there: dictionaries are made on the way, an array grows by one at its end.
  /// - Parameter new: nil: what is there goes.
  func changed(_ value: Value?, to new: Value?) throws(Refusal) -> Value? {
    guard entries.count <= Self.deepest else {
      throw Refusal(
        "A value is at most \(Self.deepest) deep; the path has \(entries.count) entries")
    }
    return try Self.changed(value, entries, to: new)
  }

  private static func changed(
    _ value: Value?, _ entries: ArraySlice<String>, to new: Value?
  ) throws(Refusal) -> Value? {
    guard let entry = entries.first else { return new }
    let inner = try changed(value?[entry], entries.dropFirst(), to: new)
    switch value {
    case .dictionary(var pairs):
      pairs[Key(entry)] = inner
      return .dictionary(pairs)
    case .array(var elements):
      guard let index = Int(entry), (0...elements.count).contains(index) else {
        throw Refusal("There is no element \(entry) in an array of \(elements.count)")
      }
      elements.replaceSubrange(
        index..<min(index + 1, elements.count), with: inner.map { [$0] } ?? [])
      return .array(elements)
    case nil: return inner.map { .dictionary([Key(entry): $0]) }
    default: throw Refusal("There is nothing below a \(value?.kind.rawValue ?? "value"): \(entry)")
    }
  }
}

extension Value {
  /// An entry of a dictionary, or an element of an array.
  fileprivate subscript(entry: String) -> Value? {
    switch self {
    case .dictionary(let pairs): pairs[Key(entry)]
    case .array(let elements):
      Int(entry).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
    default: nil
    }
  }
}
