import PreferenceModel
import PropertyList
import SystemCalls

/// A rewrite of a list: who made it, and which one it is.
///
/// Of two changes of one key that do not know each other, the one in the larger rewrite counts, on
/// every machine.
struct Rewrite: Hashable, Comparable, Sendable {
  /// The owner's name.
  let owner: UInt64
  /// Its number among those of the owner, who counts upwards from the time.
  let number: UInt64

  static func < (first: Rewrite, second: Rewrite) -> Bool {
    (first.number, first.owner) < (second.number, second.owner)
  }
}

/// What the owner that wrote a list says of it: which changes of which owners it contains.
///
/// A home may be on several machines, or in several containers. Each has an owner, and their locks
/// may not reach each other; a view of a file may be as old as the caches of its file system. The
/// owners meet in the lists. In each list, an owner has a name, a random number, and numbers its
/// rewrites upwards. The statement has, of the owner that wrote the list and of every other, the
/// number of the last rewrite whose changes the list contains (a version vector); and, of each key
/// that was changed, the rewrite that did it (its dot).
///
/// It stands in the list itself, so that both are always of one moment: there is no second file
/// that is renamed, cached, restored or removed without the list. It is a comment,
/// `<!-- prefsfs SUM STATEMENT -->`, where STATEMENT is a binary list in base64. In an XML list it is
/// behind the last tag; in a binary list behind the last object, before the table of offsets, where
/// nothing refers to. Readers of property lists skip both. Lists in other formats have none, nor has
/// a list in a home that nobody else uses.
///
/// Half-broken states: a program that writes the list anew drops the statement. SUM is the CRC-32C
/// of everything before the comment, combined with that of the file's name: in a list that another
/// program has changed around it, and in a copy of a different domain's list, it counts as none. A
/// list that is put back has a statement that every owner knows already (`ListOwners.news`).
struct ListStatement: Equatable, Sendable {
  /// The owner that wrote the list; 0 if it has no name yet.
  var owner: UInt64 = 0
  /// Of each owner, the last rewrite whose changes the list contains.
  var contains: [UInt64: UInt64] = [:]
  /// Of each key that was changed, or removed, the rewrite that did it. A key is left out once every
  /// owner has seen that rewrite.
  var changes: [Key: Rewrite] = [:]
  /// The names of the owners' machines.
  var hosts: [UInt64: String] = [:]

  /// The number of the rewrite.
  var number: UInt64 { contains[owner] ?? 0 }

  /// Whether the list was made with knowledge of the rewrite's changes.
  func knows(_ rewrite: Rewrite) -> Bool { contains[rewrite.owner] ?? 0 >= rewrite.number }

  private static let start = Array("<!-- prefsfs ".utf8)
  private static let end = Array(" -->".utf8)
  /// Bytes of the longest statement.
  static let mostBytes = 4 << 20
  /// Owners in a statement; those with the highest numbers, which were there last.
  private static let mostOwners = 100
}

// MARK: - The form

extension ListStatement {
  /// The form in lists and metadata files.
  var value: ValueDictionary {
    let others = contains.filter { $0.key != owner }.sorted { $0.value > $1.value }
    let owners = [(owner, number)] + others.prefix(Self.mostOwners - 1).map { ($0.key, $0.value) }
    let changed = changes.sorted { $0.value < $1.value }
    return [
      "owners": .array(owners.map { Self.value($0.0) }),
      "numbers": .array(owners.map { Self.value($0.1) }),
      "hosts": .array(owners.map { .string(hosts[$0.0] ?? "") }),
      "keys": .array(changed.map { .string($0.key.string) }),
      "by": .array(changed.map { Self.value($0.value.owner) }),
      "in": .array(changed.map { Self.value($0.value.number) }),
    ]
  }

  /// Reads the form; nil if it is none.
  init?(_ root: ValueDictionary) {
    guard case .array(let owners)? = root["owners"], case .array(let numbers)? = root["numbers"],
      case .array(let hosts)? = root["hosts"], case .array(let keys)? = root["keys"],
      case .array(let authors)? = root["by"], case .array(let rewrites)? = root["in"],
      let owner = Self.number(owners.first)
    else { return nil }
    self.owner = owner
    for (index, (name, last)) in zip(owners, numbers).enumerated() {
      guard let name = Self.number(name), let last = Self.number(last) else { return nil }
      contains[name] = last
      if case .string(let host)? = hosts.dropFirst(index).first, !host.isEmpty {
        self.hosts[name] = host
      }
    }
    for (key, (author, number)) in zip(keys, zip(authors, rewrites)) {
      guard case .string(let key) = key, let author = Self.number(author),
        let number = Self.number(number)
      else { return nil }
      changes[Key(key)] = Rewrite(owner: author, number: number)
    }
  }

  static func value(_ number: UInt64) -> Value { .integer(WideInteger(number)) }

  static func number(_ value: Value?) -> UInt64? {
    guard case .integer(let number)? = value else { return nil }
    return number.unsigned
  }
}

// MARK: - In a list

extension ListStatement {
  /// Reads the statement of a list; nil where there is none. Cost: O(1) where there is none; else a
  /// checksum of the list, and O(statement).
  /// - Parameter name: the name of the list's file.
  init?(in list: [UInt8], of name: String) {
    guard let place = Self.place(in: list) else { return nil }
    let words = list[place].dropFirst(Self.start.count).dropLast(Self.end.count).split(
      separator: UInt8(ascii: " "))
    guard words.count == 2, let sum = words.first, let form = words.last,
      UInt32(String(decoding: sum, as: UTF8.self), radix: 16)
        == Self.sum(list[..<place.lowerBound], name),
      let bytes = Base64.decode(Array(form)),
      case .dictionary(let root)? = try? Document.read(bytes).value
    else { return nil }
    self.init(root)
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
    let form = Base64.encode(Document.binary(.dictionary(value)))
    return Self.start + Array("\(String(sum, radix: 16)) \(form)".utf8) + Self.end
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
    // Base64 has no such character.
    let tail = max(0, limit - mostBytes)..<limit
    guard let first = tail.last(where: { list[$0] == UInt8(ascii: "<") }),
      list[first..<limit].starts(with: start)
    else { return nil }
    return first..<limit
  }

  /// Where the table of offsets of a binary list begins; nil for other lists.
  private static func offsetTable(of list: [UInt8]) -> Int? {
    guard list.starts(with: "bplist0".utf8), list.count > 40 else { return nil }
    let table = list.suffix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return (8...UInt64(list.count - 32)).contains(table) ? Int(table) : nil
  }
}
