import PropertyList

/// What `${home}` and the like stand for in the strings of a document. `$${` stands for `${`.
package struct Variables: Equatable, Sendable {
  /// A variable.
  package enum Name: String, CaseIterable, Sendable {
    /// The user's home.
    case home
    /// The user's name.
    case user
    /// The machine's name.
    case host
    /// The identifier of the machine, as the names of the host's lists have it.
    case machine

    /// Whether it is different on another machine.
    var isOfHost: Bool { self == .host || self == .machine }
  }

  /// What each stands for.
  package private(set) var values: [Name: String]

  package init(home: String, user: String, host: String, machine: String) {
    values = [.home: home, .user: user, .host: host, .machine: machine]
  }

  /// A variable that is not known, or a brace that is not closed.
  struct Unknown: Error, Equatable {
    let text: String
  }

  /// Returns the text with what the variables stand for, and notes which are used. Cost: O(text).
  func expand(_ text: String, _ used: inout Set<Name>) throws(Unknown) -> String {
    guard text.utf8.contains(0x24) else { return text }
    var (result, rest) = ("", text[...])
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...]
      if rest.hasPrefix("$${") {
        result += "${"
        rest = rest.dropFirst(3)
      } else if rest.hasPrefix("${") {
        guard let end = rest.firstIndex(of: "}"),
          let name = Name(rawValue: String(rest[..<end].dropFirst(2))), let value = values[name]
        else { throw Unknown(text: String(rest.prefix { $0 != "}" }.prefix(40)) + "}") }
        used.insert(name)
        result += value
        rest = rest[rest.index(after: end)...]
      } else {
        result += "$"
        rest = rest.dropFirst()
      }
    }
    return result + rest
  }

  /// Returns the value with what the variables in its strings stand for.
  func expand(_ value: Value, _ used: inout Set<Name>) throws(Unknown) -> Value {
    switch value {
    case .string(let text): return .string(try expand(text, &used))
    case .array(let elements):
      var result: [Value] = []
      for element in elements { result.append(try expand(element, &used)) }
      return .array(result)
    case .dictionary(let members):
      var result = members
      for (key, value) in members { result[key] = try expand(value, &used) }
      return .dictionary(result)
    default: return value
    }
  }

  /// Those of the names alone.
  func limited(to names: Set<Name>) -> Variables {
    var limited = self
    limited.values = values.filter { names.contains($0.key) }
    return limited
  }

  /// Reads what a ledger has of a document.
  init?(_ value: Value?) {
    guard case .dictionary(let members)? = value else { return nil }
    values = [:]
    for case (let key, .string(let text)) in members {
      if let name = Name(rawValue: key.string) { values[name] = text }
    }
  }

  /// What a ledger has of a document.
  var value: Value {
    .dictionary(
      ValueDictionary(values.map { (key: Key($0.key.rawValue), value: .string($0.value)) }))
  }
}

extension Value {
  /// Whether a string in it has `${`.
  var hasVariables: Bool {
    switch self {
    case .string(let text): text.contains("${")
    case .array(let elements): elements.contains { $0.hasVariables }
    case .dictionary(let members): members.contains { $0.value.hasVariables }
    default: false
    }
  }
}
