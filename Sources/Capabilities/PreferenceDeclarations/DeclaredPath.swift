import PreferenceModel
import PropertyList

/// What a declaration can name: a key of a domain; with members a part of a dictionary; with an
/// element, that an array has it.
package struct DeclaredPath: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// An element of an array, which is a set as far as declarations are concerned: an element is
  /// what its value is, wherever it stands.
  package struct Element: Hashable, Sendable {
    package let value: Value

    package init(_ value: Value) { self.value = value }

    package func hash(into hasher: inout Hasher) { value.hashAsElement(into: &hasher) }
  }

  package let domain: DomainName
  package let key: Key
  /// The keys that lead from the key's value to the part; empty means the whole value.
  package let members: [Key]
  /// The element of the array that the members lead to; nil means what they lead to, as a whole.
  package let element: Element?

  package init(
    _ domain: DomainName, _ key: Key, _ members: [Key] = [], element: Value? = nil
  ) {
    (self.domain, self.key, self.members) = (domain, key, members)
    self.element = element.map { Element($0) }
  }

  /// Whether the path is a key, and no part of its value.
  package var isWhole: Bool { members.isEmpty && element == nil }

  /// The path of the array that the element is of.
  var array: DeclaredPath { DeclaredPath(domain, key, members) }

  /// Returns what the key has if the path leads to the value and the key has nothing else.
  func wrapping(_ value: Value) -> Value {
    members.reversed().reduce(element == nil ? value : .array([value])) { .dictionary([$1: $0]) }
  }

  /// The path of what the first members lead to.
  func prefix(_ count: Int) -> DeclaredPath {
    DeclaredPath(domain, key, Array(members.prefix(count)))
  }

  /// Whether this is a part of the other.
  func isPart(of other: DeclaredPath) -> Bool {
    other.element == nil && domain == other.domain && key == other.key
      && (members.count > other.members.count || element != nil)
      && members.starts(with: other.members)
  }

  /// Whether one is a part of the other, and not the same; or one takes for an array what the other
  /// takes for a dictionary.
  func overlaps(_ other: DeclaredPath) -> Bool {
    isPart(of: other) || other.isPart(of: self) || isArray(over: other) || other.isArray(over: self)
  }

  private func isArray(over other: DeclaredPath) -> Bool {
    element != nil && domain == other.domain && key == other.key
      && other.members.count > members.count && other.members.starts(with: members)
  }

  /// By domain, key and members; of the same ones, the path without an element first.
  package static func < (one: DeclaredPath, other: DeclaredPath) -> Bool {
    if one.domain != other.domain { return one.domain < other.domain }
    if one.key != other.key { return one.key < other.key }
    if one.members != other.members { return one.members.lexicographicallyPrecedes(other.members) }
    guard let second = other.element else { return false }
    guard let first = one.element else { return true }
    return ValueDescription.line(of: first.value, false)
      < ValueDescription.line(of: second.value, false)
  }

  /// The domain, and the key with its members; `[]` behind it for an element.
  package var description: String {
    "\(domain) " + ([key] + members).map(\.string).joined(separator: ".")
      + (element == nil ? "" : "[]")
  }
}

extension Value {
  /// The elements; nil if it is not an array.
  var elements: [Value]? { if case .array(let elements) = self { elements } else { nil } }

  /// Feeds what equal values have in common, in whatever order members are.
  fileprivate func hashAsElement(into hasher: inout Hasher) {
    hasher.combine(kind)
    switch self {
    case .string(let text): hasher.combine(text)
    case .integer(let number): hasher.combine(number)
    case .boolean(let flag): hasher.combine(flag)
    case .data(let bytes): hasher.combine(bytes)
    case .date(let date): hasher.combine(date)
    case .array(let elements): for element in elements { element.hashAsElement(into: &hasher) }
    case .dictionary(let members):
      for (key, value) in members.sorted(by: { $0.key < $1.key }) {
        hasher.combine(key)
        value.hashAsElement(into: &hasher)
      }
    case .real, .single, .uid: break
    }
  }

  /// Whether what the path names can be in it: see `canHave(_:)` of members; an element can be in
  /// an array.
  func canHave(_ path: DeclaredPath) -> Bool {
    canHave(path.members) && (path.element == nil || part(path.members)?.elements != nil)
  }

  /// The part of the value that a path names; nil if it is not there.
  package func part(_ path: DeclaredPath) -> Value? {
    guard let element = path.element else { return part(path.members) }
    return part(path.members)?.elements?.first { $0 == element.value }
  }

  /// Whether members can be in it: it is a dictionary, and so is each of them but the last.
  package func canHave(_ members: some Collection<Key>) -> Bool {
    guard let first = members.first else { return true }
    guard case .dictionary(let values) = self else { return false }
    return values[first].map { $0.canHave(members.dropFirst()) } ?? true
  }

  /// The part of the value that members lead to; nil if there is none.
  package func part(_ members: some Collection<Key>) -> Value? {
    guard let first = members.first else { return self }
    guard case .dictionary(let values) = self else { return nil }
    return values[first]?.part(members.dropFirst())
  }
}

extension Value? {
  /// Gives the value another part, or takes it away (nil). A value on the way that is not a
  /// dictionary becomes one. A dictionary that had only this part goes with it, unless
  /// `keepsEmpty`. Cost: O(members), if nothing else holds the value.
  package mutating func replace(
    _ members: some Collection<Key>, with part: Value?, keepsEmpty: Bool = false
  ) {
    guard let first = members.first else {
      self = part
      return
    }
    var values = self?.dictionary ?? [:]
    // Nothing but `values` may hold the dictionary while it changes: that would copy it.
    self = nil
    // Nor may anything but `inner` hold the inner dictionary: a boolean stands in its place.
    var inner = values.updateValue(.boolean(false), forKey: first)
    inner.replace(members.dropFirst(), with: part, keepsEmpty: keepsEmpty)
    values[first] = inner
    if !values.isEmpty || part != nil || keepsEmpty { self = .dictionary(values) }
  }

  /// Gives the value what a path names, or takes it away (nil). An element comes last, as often as
  /// declared, if it is not there; where there is no array, it comes into a new one. An array stays
  /// when its last element goes. Cost: that of `replace` with members; of an element, O(elements).
  mutating func replace(
    _ path: DeclaredPath, with part: Value?, times: Int = 1, keepsEmpty: Bool = false
  ) {
    guard let element = path.element else {
      replace(path.members, with: part, keepsEmpty: keepsEmpty)
      return
    }
    var elements = self?.part(path.members)?.elements ?? []
    if part == nil {
      elements.removeAll { $0 == element.value }
    } else if !elements.contains(element.value) {
      elements += Array(repeating: element.value, count: times)
    }
    replace(path.members, with: .array(elements), keepsEmpty: keepsEmpty)
  }
}

extension [Value] {
  /// Whether both have the same elements equally often. Cost: O(elements).
  func isSame(as other: [Value]) -> Bool {
    guard count == other.count else { return false }
    var counts: [DeclaredPath.Element: Int] = [:]
    for value in self { counts[DeclaredPath.Element(value), default: 0] += 1 }
    for value in other { counts[DeclaredPath.Element(value), default: 0] -= 1 }
    return counts.allSatisfy { $0.value == 0 }
  }
}
