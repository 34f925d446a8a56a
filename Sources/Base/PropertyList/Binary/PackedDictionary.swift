/// A large dictionary, kept as the bytes of a binary list: a look-up decodes one value.
///
/// It holds what `Document.read` makes of the same bytes. Scalars, short texts and data, and small
/// containers of them are decoded anew at each look-up. The other values are decoded once and kept,
/// so that no look-up decodes a large one.
///
/// Cost: making one takes less time than `Document.read`. Memory: that of the list, an index
/// of a few bytes for each key, and that of the values that are kept. A `ValueDictionary` takes
/// several times as much for a usual list.
///
/// Threads: any; it does not change.
public struct PackedDictionary: Sendable {
  /// What `PackedDictionary` has, in one object, so that a copy is a reference.
  private final class Contents: Sendable {
    let bytes: [UInt8]
    let layout: BinaryList.Layout
    let table: Table

    init(_ bytes: [UInt8], _ layout: BinaryList.Layout, _ table: Table) {
      (self.bytes, self.layout, self.table) = (bytes, layout, table)
    }
  }

  /// Where the keys and values of the dictionary are.
  fileprivate struct Table {
    /// The offset of the references to the keys; those to the values follow.
    var references: Int
    var count: Int
    var index: KeyIndex
    /// The values that are costly to decode, by position.
    var kept: [Int: Value] = [:]
  }

  /// The smallest number of keys for which this is worth it: a smaller list is decoded quickly.
  public static let least = 4096

  private let contents: Contents

  /// Reads a binary list as far as it takes to know that `Document.read` reads it. Throws where
  /// that throws.
  ///
  /// Returns nil where this would gain nothing: for other formats, for lists whose root is not a
  /// dictionary of at least `least` keys, and where a key occurs twice or most values would be
  /// kept.
  public init?(
    _ bytes: [UInt8], limits: Limits = .standard, least: Int = least
  ) throws(FormatError) {
    guard bytes.starts(with: "bplist0".utf8), bytes.count <= limits.size else { return nil }
    let parts = try bytes.withUnsafeBufferPointer { bytes throws(FormatError) in
      var reader = try BinaryReader(UnsafeRawBufferPointer(bytes), limits: limits)
      return try reader.table(least: max(least, 1)).map { (reader.list.layout, $0) }
    }
    guard let (layout, table) = parts else { return nil }
    contents = Contents(bytes, layout, table)
  }

  /// Packs a dictionary. Returns nil where this would gain nothing: see `init(_:limits:least:)`.
  /// Cost: that of writing a binary list, and of reading it.
  public init?(_ dictionary: ValueDictionary) {
    guard dictionary.count >= Self.least,
      let packed = try? PackedDictionary(Document.binary(.dictionary(dictionary)), limits: .message)
    else { return nil }
    self = packed
  }

  /// The list that it was read from, or that was written to make it.
  public var bytes: [UInt8] { contents.bytes }

  /// The number of keys.
  public var count: Int { contents.table.count }

  /// The key's value; nil if the dictionary does not have the key.
  public subscript(key: Key) -> Value? {
    withList { list, table in
      key.withBytes { bytes in
        let probe = table.index.probe(KeyHash.of(bytes)) {
          list.hasKey(bytes, at: $0, of: table.references)
        }
        guard case .found(let position) = probe else { return nil }
        return list.value(at: position, table)
      }
    }
  }

  /// The keys, in the order of the list. Cost: O(keys).
  public var keys: [Key] {
    withList { list, table in
      var maker = KeyMaker()
      return (0..<table.count).compactMap { list.key(at: $0, of: table.references, &maker) }
    }
  }

  /// The same dictionary with all values decoded. Cost: that of `Document.read`.
  public var unpacked: ValueDictionary {
    let document = try? Document.read(contents.bytes, limits: .message)
    guard case .dictionary(let dictionary)? = document?.value else { return [:] }
    return dictionary
  }

  private func withList<Result>(_ body: (BinaryList, Table) -> Result) -> Result {
    contents.bytes.withUnsafeBytes { body(BinaryList($0, contents.layout), contents.table) }
  }
}

// MARK: - Looking up

// The objects were read once, so none of these fails.
extension BinaryList {
  fileprivate typealias Table = PackedDictionary.Table

  @inline(__always)
  private func offset(
    ofKey position: Int, of references: Int
  ) throws(FormatError) -> Int {
    try offset(of: reference(at: references + position * layout.referenceSize))
  }

  /// Whether the key at the position has these bytes.
  @inline(__always)
  fileprivate func hasKey(
    _ bytes: UnsafeBufferPointer<UInt8>, at position: Int, of references: Int
  ) -> Bool {
    guard let offset = try? offset(ofKey: position, of: references) else { return false }
    if self.bytes[offset] & 0xF0 == 0x50, let text = try? ascii(at: offset) {
      return text.isEqual(to: bytes)
    }
    guard case .string(let text)? = try? decode(at: offset).value else { return false }
    return text.withBytes { $0.isEqual(to: bytes) }
  }

  /// Whether the keys at both positions are equal.
  fileprivate func haveSameKey(_ position: Int, _ other: Int, of references: Int) -> Bool {
    var maker = KeyMaker()
    return key(at: position, of: references, &maker) == key(at: other, of: references, &maker)
  }

  fileprivate func key(at position: Int, of references: Int, _ maker: inout KeyMaker) -> Key? {
    guard let offset = try? offset(ofKey: position, of: references) else { return nil }
    if bytes[offset] & 0xF0 == 0x50, let text = try? ascii(at: offset) {
      return maker.key(text)
    }
    guard case .string(let text)? = try? decode(at: offset).value else { return nil }
    return Key(text)
  }

  fileprivate func value(at position: Int, _ table: Table) -> Value? {
    if let kept = table.kept[position] { return kept }
    let reference = try? reference(
      at: table.references + (table.count + position) * layout.referenceSize)
    guard let reference, let offset = try? offset(of: reference) else { return nil }
    return try? light(at: offset)
  }
}

// MARK: - Making one

extension BinaryReader {
  /// Reads the root's keys and values; nil if it is not worth packing.
  fileprivate mutating func table(least: Int) throws(FormatError) -> PackedDictionary.Table? {
    let top = try list.offset(of: list.layout.top)
    guard list.bytes[top] >> 4 == 0xD else { return nil }
    let size = list.layout.referenceSize
    let (start, count) = try list.extent(at: top, unit: 2 * size)
    guard count >= least else { return nil }
    try open(2 * count, at: top)
    try beginRoot()
    var kept: [Int: Value] = [:]
    let most = max(count / 2, 1)
    let hashes = try [UInt32](capacity: count) { hashes throws(FormatError) in
      for position in 0..<count {
        hashes.append(try keyHash(list.reference(at: start + position * size)))
        let reference = try list.reference(at: start + (count + position) * size)
        // Past the most, the list is not worth packing, and its values are not looked at.
        guard kept.count <= most, try !skip(reference) else { continue }
        kept[position] = try object(reference, depth: 1)
      }
    }
    guard kept.count <= most else { return nil }
    let index = KeyIndex(
      count: count, hash: { hashes[$0] }, isSame: { list.haveSameKey($0, $1, of: start) })
    return index.map {
      PackedDictionary.Table(references: start, count: count, index: $0, kept: kept)
    }
  }

  /// Reads a key and returns its hash.
  private mutating func keyHash(_ reference: Int) throws(FormatError) -> UInt32 {
    let offset = try list.offset(of: reference)
    guard list.bytes[offset] & 0xF0 == 0x50, let text = try list.ascii(at: offset) else {
      guard case .string(let text) = try object(reference, depth: 1) else {
        throw list.failure(offset, "a key that is not a string")
      }
      return text.withBytes { KeyHash.of($0) }
    }
    try self.count(1 + text.count / 64, at: offset)
    return KeyHash.of(text)
  }

  /// Reads the object, if it is quick to decode.
  /// - Returns: false: it is not.
  private mutating func skip(_ reference: Int) throws(FormatError) -> Bool {
    let offset = try list.offset(of: reference)
    // What the limits might refuse is read as a whole.
    guard limits.depth > 1, let weight = try list.lightWeight(at: offset) else { return false }
    try count(weight, at: offset)
    return true
  }
}
