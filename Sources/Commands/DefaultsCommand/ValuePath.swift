import PropertyList

/// The path of a value inside of a preference: `Key:Sub:0`, as PlistBuddy writes it. The first
/// entry is the key of the preference; the others are keys of dictionaries and indexes of arrays,
/// from 0. `\:` is a colon and `\\` is a backslash in an entry.
struct ValuePath {
  /// The key of the preference.
  let key: Key
  /// The entries behind the key.
  let entries: ArraySlice<String>
  /// The path as the command line has it.
  let text: String

  /// Creates a path.
  /// - Parameter isPath: whether the text is a path; if not, all of it is the key.
  init(_ text: String, isPath: Bool) {
    self.text = text
    var all = isPath ? Self.split(text) : [text]
    if isPath, all.count > 1, all[0].isEmpty { all.removeFirst() }
    key = Key(all[0])
    entries = all.dropFirst()
  }

  /// How many entries behind the key a path may have at most in a change.
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

  /// Returns the value at the path; nil if there is none.
  func find(in value: Value) -> Value? {
    entries.reduce(Optional(value)) { value, entry in value?.part(named: entry) }
  }

  /// Returns the value with the part at the path replaced. Missing dictionaries are made, and the
  /// index right behind an array appends an element.
  /// - Parameter new: the new value at the path; nil removes the present one.
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
    let inner = try changed(value?.part(named: entry), entries.dropFirst(), to: new)
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
    default: throw Refusal("There is no \(entry) inside of a \(value?.kind.rawValue ?? "value")")
    }
  }
}
