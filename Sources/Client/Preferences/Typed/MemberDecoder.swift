import Foundation
internal import PropertyList

/// Reads a Codable value from a property list, member by member, by the rules of typed keys: a
/// string that is the text of a number is that number.
///
/// What a member lacks comes from `other`. A dictionary asks for the keys that it finds, and a type
/// for the members that it has, so only a type's members are filled in. An optional member that is
/// absent is nil, because nothing else stands for nil.
///
/// Without `ignored` a member that cannot be read is an error; with it, the member is as if it were
/// absent, and its name is noted.
struct MemberDecoder: Decoder {
  /// The members that were ignored, because they cannot be read.
  final class Ignored {
    var names: [String] = []
  }

  let list: Value
  /// Where members that the list lacks come from; nil if there is nothing.
  var other: Value?
  var ignored: Ignored?
  var codingPath: [any CodingKey] = []
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ list: Value, filledFrom other: Value? = nil, ignored: Ignored? = nil) {
    (self.list, self.other, self.ignored) = (list, other, ignored)
  }

  /// Returns the value of the type that the list stands for.
  func read<Whole: Decodable>(_ type: Whole.Type) throws -> Whole {
    if let scalar = type as? any ScalarMember.Type { return try read(scalar, as: type) }
    if list.isScalar, type == URL.self {
      guard let url = Self.url(list) as? Whole else { throw mismatch(type) }
      return url
    }
    if list.isScalar, let plain = type as? any PlainMember.Type { return try read(plain, as: type) }
    do {
      return try Whole(from: self)
    } catch {
      guard other == nil, let record = type as? any PreferenceRecord.Type,
        let standard = try? record.init().propertyList()
      else { throw error }
      var filled = self
      filled.other = standard
      return try Whole(from: filled)
    }
  }

  private func read<Known: PreferenceValue, Whole>(
    _ known: Known.Type, as type: Whole.Type
  ) throws -> Whole {
    guard let value = Known.value(from: list) as? Whole else { throw mismatch(type) }
    return value
  }

  /// A person who writes a URL into a member means the URL; a text without a scheme is a path.
  private static func url(_ list: Value) -> URL? {
    if case .string(let text) = list, let url = URL(string: text), url.scheme != nil { return url }
    return Conversions.url(list)
  }

  func part(_ key: any CodingKey, _ list: Value, filledFrom other: Value? = nil) -> MemberDecoder {
    var part = MemberDecoder(list, filledFrom: other, ignored: ignored)
    part.codingPath = codingPath + [key]
    return part
  }

  func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard let members = list.dictionary else { throw mismatch([String: String].self) }
    return KeyedDecodingContainer(Members<Key>(self, members))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let elements) = list else { throw mismatch([String].self) }
    return Elements(self, elements)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(decoder: self) }

  func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(
      type, .init(codingPath: codingPath, debugDescription: "\(list.kind.noun) is found"))
  }
}

/// A type whose values are one scalar of a property list each.
private protocol ScalarMember: PreferenceValue {}

extension Bool: ScalarMember {}
extension Int: ScalarMember {}
extension Int8: ScalarMember {}
extension Int16: ScalarMember {}
extension Int32: ScalarMember {}
extension Int64: ScalarMember {}
extension UInt: ScalarMember {}
extension UInt8: ScalarMember {}
extension UInt16: ScalarMember {}
extension UInt32: ScalarMember {}
extension UInt64: ScalarMember {}
extension Double: ScalarMember {}
extension Float: ScalarMember {}
extension String: ScalarMember {}
extension Date: ScalarMember {}
extension Data: ScalarMember {}

/// A type whose encoding is a container, though a person writes its values as scalars.
private protocol PlainMember: PreferenceValue {}

extension Decimal: PlainMember {}
extension Duration: PlainMember {}

extension Value {
  /// Whether it is no container.
  fileprivate var isScalar: Bool { kind != .array && kind != .dictionary }

  /// Whether it is what Foundation's encoder writes for nil.
  fileprivate var isNull: Bool { self == "$null" }
}

// MARK: - Containers

private struct Single: SingleValueDecodingContainer {
  let decoder: MemberDecoder
  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool { decoder.list.isNull }

  func decode<Whole: Decodable>(_ type: Whole.Type) throws -> Whole { try decoder.read(type) }
}

/// The elements of an array. An element that cannot be read is an error of the array.
private struct Elements: UnkeyedDecodingContainer {
  /// The number of an element.
  private struct Index: CodingKey {
    let number: Int
    var intValue: Int? { number }
    var stringValue: String { String(number) }

    init(_ number: Int) { self.number = number }
    init?(intValue: Int) { self.init(intValue) }
    init?(stringValue: String) { return nil }
  }

  private let decoder: MemberDecoder
  private let elements: [Value]
  private(set) var currentIndex = 0
  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  init(_ decoder: MemberDecoder, _ elements: [Value]) {
    (self.decoder, self.elements) = (decoder, elements)
  }

  /// Returns the decoder of the next element.
  private func next() throws -> MemberDecoder {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        Value.self, .init(codingPath: codingPath, debugDescription: "no element follows"))
    }
    return decoder.part(Index(currentIndex), elements[currentIndex])
  }

  mutating func decodeNil() throws -> Bool {
    let isNull = try next().list.isNull
    if isNull { currentIndex += 1 }
    return isNull
  }

  mutating func decode<Element: Decodable>(_ type: Element.Type) throws -> Element {
    let element = try next().read(type)
    currentIndex += 1
    return element
  }

  mutating func nestedContainer<Key>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> {
    let container = try next().container(keyedBy: type)
    currentIndex += 1
    return container
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try next().unkeyedContainer()
    currentIndex += 1
    return container
  }

  mutating func superDecoder() throws -> any Decoder {
    let element = try next()
    currentIndex += 1
    return element
  }
}

/// The members of a dictionary.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  /// The key under which Foundation's encoder writes what a class inherits.
  private struct Super: CodingKey {
    var intValue: Int? { nil }
    var stringValue: String { "super" }

    init() {}
    init?(intValue: Int) { return nil }
    init?(stringValue: String) { return nil }
  }

  private let decoder: MemberDecoder
  private let members: ValueDictionary
  private let others: ValueDictionary
  var codingPath: [any CodingKey] { decoder.codingPath }
  var allKeys: [Key] { members.compactMap { Key(stringValue: $0.key.string) } }

  init(_ decoder: MemberDecoder, _ members: ValueDictionary) {
    (self.decoder, self.members) = (decoder, members)
    others = decoder.other?.dictionary ?? [:]
  }

  private func stored(_ key: any CodingKey) -> Value? { members[PropertyList.Key(key.stringValue)] }

  private func other(_ key: any CodingKey) -> Value? { others[PropertyList.Key(key.stringValue)] }

  func contains(_ key: Key) -> Bool { stored(key) != nil }

  func decodeNil(forKey key: Key) throws -> Bool { stored(key)?.isNull ?? true }

  func decode<Member: Decodable>(_ type: Member.Type, forKey key: Key) throws -> Member {
    guard stored(key) != nil else { return try part(key).read(type) }
    do {
      return try part(key).read(type)
    } catch {
      guard let other = other(key), ignore(key) else { throw error }
      return try decoder.part(key, other).read(type)
    }
  }

  /// Returns the member; nil if it is absent, or cannot be read and `other` lacks it.
  private func optional<Member: Decodable>(_ type: Member.Type, _ key: Key) throws -> Member? {
    guard let list = stored(key), !list.isNull else { return nil }
    do {
      return try part(key).read(type)
    } catch {
      guard ignore(key) else { throw error }
      return try other(key).map { try decoder.part(key, $0).read(type) }
    }
  }

  /// Notes that a member cannot be read. Returns false if that is an error.
  private func ignore(_ key: Key) -> Bool {
    guard let ignored = decoder.ignored else { return false }
    let path = (codingPath + [key]).map(\.stringValue)
    ignored.names.append(path.joined(separator: "."))
    return true
  }

  /// Returns the decoder of a member: of the stored one, or else of the other.
  private func part(_ key: any CodingKey) throws -> MemberDecoder {
    if let list = stored(key) { return decoder.part(key, list, filledFrom: other(key)) }
    if let list = other(key) { return decoder.part(key, list) }
    throw DecodingError.keyNotFound(
      key, .init(codingPath: codingPath, debugDescription: "the member is not stored"))
  }

  func nestedContainer<Nested>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> { try part(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try part(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try part(Super()) }

  func superDecoder(forKey key: Key) throws -> any Decoder { try part(key) }
}

// The compiler would take the protocol's own method for each of these types, which does not know
// what is ignored.
extension Members {
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
    try optional(type, key)
  }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
    try optional(type, key)
  }
  func decodeIfPresent<Member: Decodable>(
    _ type: Member.Type, forKey key: Key
  ) throws -> Member? { try optional(type, key) }
}
