import Glibc

/// The key of a dictionary or of a preference: a string. Two keys are equal if their UTF-8 bytes
/// are.
///
/// Swift's `String` compares by canonical equivalence, so a composed and a decomposed "é" would be
/// one key. In property lists and as file names they are two.
///
/// A key knows its hash, so a table never computes it and tells most different keys apart without
/// looking at their bytes.
public struct Key: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
  private enum Storage {
    /// A contiguous string, as all are on Linux.
    case string(String)
    /// A range of the bytes in a document's block of keys.
    case block(KeyBlock, start: UInt32, count: UInt32)
  }

  private let storage: Storage

  /// The hash of the UTF-8 bytes that the tables of this process use: `KeyHash.of`.
  package let hash: UInt32

  /// Creates a key from any text, which may be empty. Cost: a hash, O(bytes).
  public init(_ string: String) {
    var string = string
    string.makeContiguousUTF8()
    self.init(string, hash: string.withBytes { KeyHash.of($0) })
  }

  /// Creates a key from a literal.
  public init(stringLiteral value: String) { self.init(value) }

  /// Creates a key whose hash is known.
  init(_ string: String, hash: UInt32) { (storage, self.hash) = (.string(string), hash) }

  /// Creates a key whose UTF-8 bytes are the `count` bytes of the block from `start` on.
  init(_ block: KeyBlock, _ start: Int, _ count: Int, hash: UInt32) {
    storage = .block(block, start: UInt32(start), count: UInt32(count))
    self.hash = hash
  }

  /// The key as text. Cost: a key that was read from a document and has more than 15 bytes is
  /// copied.
  public var string: String {
    switch storage {
    case .string(let string): string
    case .block(let block, let start, let count):
      withExtendedLifetime(block) { String(valid: block.bytes(start, count)) }
    }
  }

  /// Calls the body with the UTF-8 bytes, which are valid during the call. Cost: no copy.
  @inline(__always)
  package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    switch storage {
    case .string(let string): string.withBytes(body)
    case .block(let block, let start, let count):
      withExtendedLifetime(block) { body(block.bytes(start, count)) }
    }
  }

  /// Whether the bytes are a `String`'s.
  var isString: Bool { if case .string = storage { true } else { false } }

  /// The number of UTF-8 bytes.
  public var utf8Count: Int {
    switch storage {
    case .string(let string): string.utf8.count
    case .block(_, _, let count): Int(count)
    }
  }

  public static func == (left: Key, right: Key) -> Bool {
    guard left.hash == right.hash else { return false }
    return left.isIdentical(to: right) || left.withBytes { right.holds($0) }
  }

  /// Whether these are the UTF-8 bytes of the key. Inlined, for searches: as far as the compiler
  /// knows, a function that is called, such as memcmp(3), may release the key, so it would be
  /// retained for the call. That takes longer than to compare the bytes.
  @inline(__always)
  func holds(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    switch storage {
    case .string(let string):
      string.utf8.withContiguousStorageIfAvailable { $0.hasSameWords(as: bytes) } ?? false
    case .block(let block, let start, let count): block.bytes(start, count).hasSameWords(as: bytes)
    }
  }

  /// Whether the memory of both keys is the same, word by word, as in two copies of a key or two
  /// short strings with the same bytes. Such keys are equal; keys with different words may be too.
  @inline(__always)
  private func isIdentical(to other: Key) -> Bool {
    typealias Words = (UInt64, UInt64, UInt8)
    return unsafeBitCast(storage, to: Words.self) == unsafeBitCast(other.storage, to: Words.self)
  }

  /// Compares the UTF-8 bytes, like memcmp(3). A key sorts before the keys that it is a prefix of.
  public static func < (left: Key, right: Key) -> Bool {
    left.withBytes { left in right.withBytes { left.isLess(than: $0) } }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// The hash that the standard library's tables of keys use, in place of `hash(into:)`; the name
  /// is that of a requirement of `Hashable`. The hash of a key has a secret seed already, so
  /// `Hasher` would add nothing but time.
  // swift-format-ignore: NoLeadingUnderscores
  public func _rawHashValue(seed: Int) -> Int {
    Int(truncatingIfNeeded: KeyHash.mixed(UInt64(hash) ^ UInt64(bitPattern: Int64(seed))))
  }
}

extension Key: CustomStringConvertible {
  /// The key itself.
  public var description: String { string }
}

extension String {
  /// Calls the body with the UTF-8 bytes. Native strings are not copied; on Linux, all strings are
  /// native.
  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
    return Array(utf8).withUnsafeBufferPointer(body)
  }

  /// Whether both strings have the same UTF-8 bytes.
  @inline(never)
  func hasSameBytes(as other: String) -> Bool {
    withBytes { left in other.withBytes { left.isEqual(to: $0) } }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether both hold the same bytes.
  @inline(__always)
  func isEqual(to other: Self) -> Bool {
    guard count == other.count else { return false }
    guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
    return memcmp(base, otherBase, count) == 0
  }

  /// Whether both hold the same bytes: `isEqual` for a few bytes, without a call.
  @inline(__always)
  func hasSameWords(as other: Self) -> Bool {
    guard count == other.count else { return false }
    guard count >= 8 else {
      for index in 0..<count where self[index] != other[index] { return false }
      return true
    }
    var index = 0
    while index < count &- 8 {
      if eight(at: index) != other.eight(at: index) { return false }
      index &+= 8
    }
    return eight(at: count &- 8) == other.eight(at: count &- 8)
  }

  /// Compares the bytes, like memcmp(3). A prefix sorts before the longer sequence.
  @inline(__always)
  func isLess(than other: Self) -> Bool {
    guard let base = baseAddress, let otherBase = other.baseAddress else {
      return count < other.count
    }
    let order = memcmp(base, otherBase, Swift.min(count, other.count))
    return order != 0 ? order < 0 : count < other.count
  }
}
