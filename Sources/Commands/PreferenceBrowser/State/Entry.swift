import CLinux
import PreferenceModel
import PropertyList

/// A key of a domain: what a row of the list is about.
struct EntryID: Hashable, Comparable, Sendable {
  let domain: DomainName
  let key: Key

  init(_ domain: DomainName, _ key: Key) { (self.domain, self.key) = (domain, key) }

  static func < (left: EntryID, right: EntryID) -> Bool {
    left.domain == right.domain ? left.key < right.key : left.domain < right.domain
  }
}

/// A row of the list: a key as programs read it, in short texts. A row of 100,000 takes some hundred
/// bytes, so a value is not kept, but the beginning of its text.
struct Entry: Equatable, Sendable {
  /// What is true of a key.
  struct Marks: OptionSet, Hashable, Sendable {
    let rawValue: UInt16

    static let forced = Marks(rawValue: 1)
    /// The user has set it, and not to its default.
    static let modified = Marks(rawValue: 2)
    /// A schema has it.
    static let known = Marks(rawValue: 4)
    static let declared = Marks(rawValue: 8)
    /// It is declared, and is not as declared.
    static let drifted = Marks(rawValue: 16)
    static let secret = Marks(rawValue: 32)
    /// It has a value.
    static let set = Marks(rawValue: 64)
    /// Its program needs it.
    static let required = Marks(rawValue: 128)
  }

  let id: EntryID
  /// The value on one line, cut; of a secret a mask; empty if there is none.
  let value: String
  /// Where the value is from, e.g. `user`; `schema` if only a schema has the key.
  let source: String
  /// What may stand there, e.g. `1 to 16`; may be empty.
  let note: String
  /// The name for people; may be empty.
  let title: String
  var marks: Marks
  /// What the filter searches: key, domain, texts and value in small letters, with a 0 behind each.
  private let searched: [UInt8]
  /// Where the first three of these end.
  private let ends: [Int32]

  /// - Parameters:
  ///   - texts: what is searched beside names and value.
  ///   - value: as it is searched, unless it is a secret.
  init(
    _ id: EntryID, value: String, source: String, note: String = "", title: String = "",
    texts: String = "", marks: Marks
  ) {
    (self.id, self.value, self.source, self.note) = (id, value, source, note)
    (self.title, self.marks) = (title, marks)
    var (bytes, ends): ([UInt8], [Int32]) = ([], [])
    let value = marks.contains(.secret) ? "" : value
    for text in [id.key.string, id.domain.string, title.isEmpty ? texts : "\(title) \(texts)"] {
      bytes += text.lowercased().utf8
      ends.append(Int32(clamping: bytes.count))
      bytes.append(0)
    }
    searched = bytes + value.lowercased().utf8
    self.ends = ends
  }

  /// How well a word fits: 0 for the key's whole name, 1 for its beginning, 2 for a part of it, 3 in
  /// the domain's name, 4 in the texts, 5 in the value; nil: it is nowhere. Cost: O(the texts).
  func rank(of word: [UInt8]) -> Int? {
    let found = searched.withUnsafeBytes {
      prefsfs_find_bytes($0.baseAddress, $0.count, word, word.count)
    }
    if found < 0 { return nil }
    if found >= ends[0] { return found < ends[1] ? 3 : found < ends[2] ? 4 : 5 }
    if found > 0 { return 2 }
    return word.count == ends[0] ? 0 : 1
  }

  /// The same row with a mark that is set or taken away.
  mutating func set(_ mark: Marks, _ isSet: Bool) {
    if isSet { marks.insert(mark) } else { marks.remove(mark) }
  }
}
