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
    /// It has changed since the browser was opened.
    static let changed = Marks(rawValue: 256)
  }

  let id: EntryID
  /// The value on one line, cut; of a secret a mask; empty if there is none.
  let value: String
  /// The hash of the whole value, also of a secret.
  let hash: UInt64
  /// Where the value is from, e.g. `user`; `schema` if only a schema has the key.
  let source: String
  /// What may stand there, e.g. `1 to 16`; may be empty.
  let note: String
  var marks: Marks
  /// What the filter searches: key, domain, texts and value in small letters, with a 0 behind each.
  /// Empty once the row is in a table, which keeps these texts of all rows together.
  private(set) var searched: [UInt8] = []
  /// Where the table has them, and where the parts end there.
  private(set) var text: Text

  /// A place in the texts of a table.
  struct Text: Equatable, Sendable {
    var start = 0
    /// Where key, domain and texts end, from the start on.
    var key: Int32 = 0
    var domain: Int32 = 0
    var about: Int32 = 0
    var count: Int32 = 0
  }

  /// - Parameters:
  ///   - texts: what is searched beside names and value.
  ///   - value: as it is searched, unless it is a secret.
  ///   - whole: the value itself; nil if the text of it is all.
  init(
    _ id: EntryID, value: String, whole: Value? = nil, source: String, note: String = "",
    texts: String = "", marks: Marks
  ) {
    hash = ValueLine.hash(of: whole ?? .string(value))
    (self.id, self.value, self.source, self.note) = (id, value, source, note)
    self.marks = marks
    var (bytes, ends): ([UInt8], [Int32]) = ([], [])
    let value = marks.contains(.secret) ? "" : value
    for text in [id.key.string, id.domain.string, texts, value] {
      bytes += text.lowercased().utf8
      ends.append(Int32(clamping: bytes.count))
      bytes.append(0)
    }
    searched = bytes
    text = Text(
      key: ends[0], domain: ends[1], about: ends[2], count: Int32(clamping: bytes.count))
  }

  /// Moves what is searched to the end of the texts of a table.
  mutating func moveText(to texts: inout [UInt8]) {
    text.start = texts.count
    texts += searched
    searched = []
  }

  /// Moves it to the texts of another table.
  mutating func copyText(from old: [UInt8], to texts: inout [UInt8]) {
    searched = Array(old[text.start..<text.start + Int(text.count)])
    moveText(to: &texts)
  }

  /// The same row with a mark that is set or taken away.
  mutating func set(_ mark: Marks, _ isSet: Bool) {
    if isSet { marks.insert(mark) } else { marks.remove(mark) }
  }
}
