import CLinux
import PropertyList

/// What the line of the filter asks for: words in any order, and narrowings such as `@modified`.
struct Query: Equatable, Sendable {
  /// The words, in small letters.
  private(set) var words: [[UInt8]] = []
  /// What must be true of a key.
  private(set) var needed: Entry.Marks = []
  /// The only domains: those whose names have one of these.
  private(set) var domain: [UInt8]?

  /// The narrowings, and what each means for people.
  static let narrowings: [(word: String, mark: Entry.Marks, meaning: String)] = [
    ("@modified", .modified, "that you have set, and not to their defaults"),
    ("@changed", .changed, "that have changed since the browser was opened"),
    ("@forced", .forced, "that an administrator has set"),
    ("@declared", .declared, "that a declaration sets"),
    ("@drifted", .drifted, "that are not as declared"),
    ("@schema", .known, "that a schema describes"),
  ]
  private static let domainWord = "@domain:"

  /// Reads a line. A narrowing that is not complete yet asks for nothing.
  init(_ line: String) {
    for word in line.split(whereSeparator: \.isWhitespace).map({ $0.lowercased() }) {
      if let known = Self.narrowings.first(where: { $0.word == word }) {
        needed.insert(known.mark)
      } else if word.hasPrefix(Self.domainWord) {
        let name = Array(word.utf8.dropFirst(Self.domainWord.utf8.count))
        domain = name.isEmpty ? nil : name
      } else if !Self.isBeginning(word) {
        words.append(Array(word.utf8))
      }
    }
  }

  private static func isBeginning(_ word: String) -> Bool {
    domainWord.hasPrefix(word) || narrowings.contains { $0.word.hasPrefix(word) }
  }

  /// Whether it asks for nothing.
  var isEmpty: Bool { self == Query("") }

  /// How well a row fits, the best one with the smallest number; nil if it does not. Cost: O(its
  /// texts).
  /// - Parameter texts: those of the table that has the row.
  func rank(_ marks: Entry.Marks, _ text: Entry.Text, _ texts: UnsafeRawBufferPointer) -> Int? {
    guard marks.isSuperset(of: needed) else { return nil }
    let own = UnsafeRawBufferPointer(rebasing: texts[text.start..<text.start + Int(text.count)])
    if let domain {
      let name = UnsafeRawBufferPointer(rebasing: own[Int(text.key)..<Int(text.domain)])
      if Self.find(domain, in: name) == nil { return nil }
    }
    var sum = 0
    for word in words {
      guard let found = Self.find(word, in: own) else { return nil }
      sum += Self.rank(Int32(found), word.count, text)
    }
    return min(sum, Self.ranks - 1)
  }

  private static func find(_ word: [UInt8], in text: UnsafeRawBufferPointer) -> Int? {
    let found = prefsfs_find_bytes(text.baseAddress, text.count, word, word.count)
    return found < 0 ? nil : found
  }

  /// 0 for the key's whole name, 1 for its beginning, 2 for a part of it, 3 in the domain's name, 4 in
  /// the texts, 5 in the value.
  private static func rank(_ found: Int32, _ count: Int, _ text: Entry.Text) -> Int {
    if found >= text.key { return found < text.domain ? 3 : found < text.about ? 4 : 5 }
    if found > 0 { return 2 }
    return count == text.key ? 0 : 1
  }

  /// The number of ranks.
  static let ranks = 32

  /// Whether whatever fits this one fits the other too, whose line is the beginning of this one's.
  func narrows(_ other: Query) -> Bool {
    needed.isSuperset(of: other.needed) && words.count >= other.words.count
      && zip(words, other.words).allSatisfy { $0.starts(with: $1) }
      && other.domain.map { domain?.starts(with: $0) == true } ?? true
  }
}
