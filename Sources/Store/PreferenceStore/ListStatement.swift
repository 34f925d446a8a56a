import SystemCalls

/// What the owner that wrote a list says of it: which changes of which owners it contains.
///
/// A home may be on several machines, or in several containers. Each has an owner, and their locks
/// may not reach each other; a view of a file may be as old as the caches of its file system. The
/// owners meet in the lists. In each list, an owner has a name, a random number, and numbers its
/// rewrites upwards. The statement has, of the owner that wrote the list and of every other, the
/// number of the last rewrite whose changes the list contains (a version vector).
///
/// It stands in the list itself, so that both are always of one moment: there is no second file
/// that is renamed, cached, restored or removed without the list. It is a comment,
/// `<!-- prefsfs SUM OWNER NUMBER OWNER NUMBER... -->`, of hexadecimal numbers; the writer comes
/// first. In an XML list it is behind the last tag; in a binary list behind the last object, before
/// the table of offsets, where nothing refers to. Readers of property lists skip both. Lists in
/// other formats have none, nor has a list in a home that nobody else uses.
///
/// Half-broken states: a program that writes the list anew drops the statement. SUM is the CRC-32C
/// of everything before the comment, combined with that of the file's name: in a list that another
/// program has changed around it, and in a copy of a different domain's list, it counts as none. A
/// list that is put back has a statement that every owner knows already (`ListOwners.news`).
struct ListStatement: Equatable, Sendable {
  /// The owner that wrote the list.
  let owner: UInt64
  /// Of each owner, the last rewrite whose changes the list contains.
  let contains: [UInt64: UInt64]

  /// The number of the rewrite.
  var number: UInt64 { contains[owner] ?? 0 }

  private static let start = Array("<!-- prefsfs ".utf8)
  private static let end = Array("-->".utf8)
  /// Bytes of the longest statement.
  static let mostBytes = 4096
  /// Owners in a statement; those with the highest numbers, which were there last.
  private static let mostOwners = 100

  init(owner: UInt64, contains: [UInt64: UInt64]) {
    (self.owner, self.contains) = (owner, contains)
  }

  /// Reads the statement of a list; nil where there is none. Cost: O(1) where there is none; else a
  /// checksum of the list.
  /// - Parameter name: the name of the list's file.
  init?(in list: [UInt8], of name: String) {
    guard let place = Self.place(in: list) else { return nil }
    let text = list[place].dropFirst(Self.start.count).dropLast(Self.end.count)
    let words = String(decoding: text, as: UTF8.self).split(separator: " ")
    let numbers = words.compactMap { UInt64($0, radix: 16) }
    guard numbers.count == words.count, numbers.count >= 3, numbers.count % 2 == 1,
      numbers[0] == UInt64(Self.sum(list[..<place.lowerBound], name))
    else { return nil }
    owner = numbers[1]
    let pairs = stride(from: 1, to: numbers.count, by: 2).map { (numbers[$0], numbers[$0 + 1]) }
    contains = Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  /// Returns the list, as our writers make them, with this statement, instead of the one that an XML
  /// list may have.
  /// - Parameter name: the name of the list's file.
  func added(to list: [UInt8], of name: String) -> [UInt8] {
    guard let table = Self.offsetTable(of: list) else {
      let plain = Self.removed(from: list)
      return plain + comment(Self.sum(plain[...], name)) + Array("\n".utf8)
    }
    var result = Array(list[..<table]) + comment(Self.sum(list[..<table], name))
    let (moved, trailer) = (UInt64(result.count), list.count - 32)
    // Foundation refuses offsets that could not reach the table.
    let oldSize = max(1, Int(list[trailer + 6]))
    let size = [1, 2, 4, 8].first { $0 >= oldSize && moved >> ($0 * 8) == 0 } ?? oldSize
    for start in stride(from: table, through: trailer - oldSize, by: oldSize) {
      result += Array(repeating: 0, count: size - oldSize)
      result += list[start..<start + oldSize]
    }
    result += list[trailer..<trailer + 24]
    result[result.count - 18] = UInt8(size)
    for byte in 0..<8 { result.append(UInt8(truncatingIfNeeded: moved >> (56 - 8 * byte))) }
    return result
  }

  /// Returns an XML list without its statement.
  static func removed(from list: [UInt8]) -> [UInt8] {
    guard offsetTable(of: list) == nil, let place = place(in: list) else { return list }
    return Array(list[..<place.lowerBound])
  }

  private static func sum(_ list: ArraySlice<UInt8>, _ name: String) -> UInt32 {
    Checksum.crc32c(list) ^ Checksum.crc32c(Array(name.utf8)[...])
  }

  private func comment(_ sum: UInt32) -> [UInt8] {
    let others = contains.filter { $0.key != owner }.sorted { $0.value > $1.value }
    var numbers = [UInt64(sum), owner, number]
    for other in others.prefix(Self.mostOwners - 1) { numbers += [other.key, other.value] }
    let text = numbers.map { String($0, radix: 16) }.joined(separator: " ")
    return Self.start + Array("\(text) ".utf8) + Self.end
  }

  /// Where the comment is; nil where there is none.
  private static func place(in list: [UInt8]) -> Range<Int>? {
    var limit = list.count
    if let table = offsetTable(of: list) {
      limit = table
    } else {
      while limit > 0, list[limit - 1] <= 0x20 { limit -= 1 }
    }
    guard list[..<limit].suffix(end.count).elementsEqual(end) else { return nil }
    let tail = max(0, limit - mostBytes)..<limit
    guard let first = tail.last(where: { list[$0..<limit].starts(with: start) }) else { return nil }
    return first..<limit
  }

  /// Where the table of offsets of a binary list begins; nil for other lists.
  private static func offsetTable(of list: [UInt8]) -> Int? {
    guard list.starts(with: "bplist0".utf8), list.count > 40 else { return nil }
    let table = list.suffix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return (8...UInt64(list.count - 32)).contains(table) ? Int(table) : nil
  }
}
