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
    ("@modified", .modified, "you have set it, and not to its default"),
    ("@forced", .forced, "an administrator has set it"),
    ("@declared", .declared, "a declaration sets it"),
    ("@drifted", .drifted, "it is not as declared"),
    ("@schema", .known, "a schema describes it"),
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

  /// How well a row fits, the best one with the smallest number; nil: it does not.
  func rank(of entry: Entry) -> Int? {
    guard entry.marks.isSuperset(of: needed) else { return nil }
    if let domain {
      let name = entry.id.domain.string.lowercased().utf8
      guard name.elementsEqual(domain) || Array(name).firstRange(of: domain) != nil else {
        return nil
      }
    }
    var sum = 0
    for word in words {
      guard let rank = entry.rank(of: word) else { return nil }
      sum += rank
    }
    return min(sum, Self.ranks - 1)
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
