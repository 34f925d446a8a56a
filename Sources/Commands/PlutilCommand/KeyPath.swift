import PropertyList

/// A path into a value: names of keys and numbers of elements, separated by dots. A dot with a
/// backslash before it is part of a name.
struct KeyPath {
  /// How a value is added at a path.
  enum Mode {
    /// Adds the value; a dictionary must not have the key.
    case insert
    /// Adds the value at the end of the array at the path.
    case append
    /// Replaces the value at the path. In an array, inserts before it.
    case replace
  }

  private let text: String
  private let parts: [String]

  init(_ text: String) {
    self.text = text
    var parts = [""]
    var rest = text[...]
    while let character = rest.popFirst() {
      if character == "\\", rest.first == "." {
        rest.removeFirst()
        parts[parts.count - 1].append(".")
      } else if character == "." {
        parts.append("")
      } else {
        parts[parts.count - 1].append(character)
      }
    }
    self.parts = parts
  }

  // MARK: - Finding

  /// Returns the value at the path; throws if there is none.
  func find(in root: Value) throws(Refusal) -> Value {
    var value = root
    for part in parts {
      guard !part.isEmpty, let next = value.part(named: part) else {
        throw Refusal(
          "Could not extract value, error: No value at that key path or invalid key path: \(text)")
      }
      value = next
    }
    return value
  }

  // MARK: - Changing

  /// Returns `root` with `value` added at the path.
  func inserting(_ value: Value, into root: Value, _ mode: Mode) throws(Refusal) -> Value {
    try inserting(value, into: root, parts[...], mode)
  }

  private func inserting(
    _ value: Value, into container: Value, _ rest: ArraySlice<String>, _ mode: Mode
  ) throws(Refusal) -> Value {
    guard let part = rest.first else { return value }
    let isLast = rest.count == 1
    switch container {
    case .dictionary(var pairs):
      let key = Key(part)
      if isLast {
        pairs[key] = try put(value, over: pairs[key], mode)
      } else {
        guard let next = pairs[key] else { throw Refusal("Key path not found \(text)") }
        pairs[key] = try inserting(value, into: next, rest.dropFirst(), mode)
      }
      return .dictionary(pairs)
    case .array(var items):
      guard let index = Int(part) else {
        throw Refusal("Unable to index into array with key path \(text)")
      }
      guard items.indices.contains(index) || (isLast && mode != .append && index == items.count)
      else { throw Refusal("Index \(index) out of bounds in array at key path \(text)") }
      if !isLast {
        items[index] = try inserting(value, into: items[index], rest.dropFirst(), mode)
      } else if mode == .append {
        guard case .array(let elements) = items[index] else {
          throw Refusal("Attempt to append value to non-array at key path \(text)")
        }
        items[index] = .array(elements + [value])
      } else {
        // The command of macOS inserts even if it is asked to replace an element.
        items.insert(value, at: index)
      }
      return .array(items)
    default: throw Refusal("Unable to insert value at key path \(text)")
    }
  }

  /// Returns the new value of a key of a dictionary whose value was `old`.
  private func put(_ value: Value, over old: Value?, _ mode: Mode) throws(Refusal) -> Value {
    guard let old, mode != .replace else { return value }
    guard mode == .append else { throw Refusal("Value already exists at key path \(text)") }
    guard case .array(let items) = old else {
      throw Refusal("Appending to a non-array at key path \(text)")
    }
    return .array(items + [value])
  }

  /// Returns `root` without the value at the path; throws if there is none.
  func removing(from root: Value) throws(Refusal) -> Value { try removing(from: root, parts[...]) }

  private func removing(
    from container: Value, _ rest: ArraySlice<String>
  ) throws(Refusal) -> Value {
    let missing = Refusal("No value to remove at key path \(text)")
    guard let part = rest.first, !part.isEmpty, let next = container.part(named: part) else {
      throw missing
    }
    let changed = rest.count == 1 ? nil : try removing(from: next, rest.dropFirst())
    switch container {
    case .dictionary(var pairs):
      pairs[Key(part)] = changed
      return .dictionary(pairs)
    case .array(var items):
      guard let index = Int(part) else { throw missing }
      if let changed { items[index] = changed } else { items.remove(at: index) }
      return .array(items)
    default: throw missing
    }
  }
}
