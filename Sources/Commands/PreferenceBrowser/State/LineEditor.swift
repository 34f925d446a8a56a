import TerminalScreen

/// A line of text with a cursor, and the keys of readline(3).
struct LineEditor: Equatable, Sendable {
  private(set) var characters: [Character]
  /// Before which character the cursor is.
  private(set) var cursor: Int
  /// What was cut last.
  private var cut: [Character] = []

  /// The most characters of a line. What is longer goes into an editor of its own.
  static let longest = 8192

  /// A line with the cursor at its end.
  init(_ text: String = "") {
    characters = Array(text.prefix(Self.longest))
    cursor = characters.count
  }

  var text: String { String(characters) }
  var isEmpty: Bool { characters.isEmpty }

  /// Carries a key out.
  /// - Returns: whether it is one of a line.
  mutating func handle(_ input: Input) -> Bool {
    switch input {
    case .text(let text), .paste(let text): insert(Array(text))
    case .key(.left), .control("b"): cursor = max(cursor - 1, 0)
    case .key(.right), .control("f"): cursor = min(cursor + 1, characters.count)
    case .key(.home), .control("a"): cursor = 0
    case .key(.end), .control("e"): cursor = characters.count
    case .key(.backspace): remove(max(cursor - 1, 0)..<cursor, isCut: false)
    case .key(.delete), .control("d"):
      remove(cursor..<min(cursor + 1, characters.count), isCut: false)
    case .control("u"): remove(0..<cursor)
    case .control("k"): remove(cursor..<characters.count)
    case .control("w"): remove(start { !$0.isWhitespace }..<cursor)
    case .alt("\u{8}"): remove(start(of: Self.isOfWord)..<cursor)
    case .alt("d"): remove(cursor..<end(of: Self.isOfWord))
    case .alt("b"): cursor = start(of: Self.isOfWord)
    case .alt("f"): cursor = end(of: Self.isOfWord)
    case .control("y"): insert(cut)
    default: return false
    }
    return true
  }

  private mutating func insert(_ new: [Character]) {
    let room = max(Self.longest - characters.count, 0)
    // A mark joins the character before it, so the line is made of its text again.
    let head = Array(String(characters[..<cursor] + new.prefix(room)))
    characters = Array(String(head + characters[cursor...]))
    cursor = min(head.count, characters.count)
  }

  private mutating func remove(_ range: Range<Int>, isCut: Bool = true) {
    if isCut, !range.isEmpty { cut = Array(characters[range]) }
    characters.removeSubrange(range)
    cursor = range.lowerBound
  }

  private static func isOfWord(_ character: Character) -> Bool {
    character.isLetter || character.isNumber
  }

  /// Where the word before the cursor begins, as the body says what a word has.
  private func start(of isOfWord: (Character) -> Bool) -> Int {
    var index = cursor
    while index > 0, !isOfWord(characters[index - 1]) { index -= 1 }
    while index > 0, isOfWord(characters[index - 1]) { index -= 1 }
    return index
  }

  private func end(of isOfWord: (Character) -> Bool) -> Int {
    var index = cursor
    while index < characters.count, !isOfWord(characters[index]) { index += 1 }
    while index < characters.count, isOfWord(characters[index]) { index += 1 }
    return index
  }
}
