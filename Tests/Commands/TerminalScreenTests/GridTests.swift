import Testing

@testable import TerminalScreen

@Suite("Grids") struct GridTests {
  static let texts: [(name: String, text: String, columns: Int, shown: String)] = [
    ("a text that fits", "abc", 10, "abc"),
    ("one that is cut", "abcdef", 4, "abc~"),
    ("one that fills its columns", "abcd", 4, "abcd"),
    ("wide characters", "日本語", 10, "日本語"),
    ("a wide character is not halved", "日本語", 4, "日 ~"),
    ("a mark joins the character before it", "e\u{301}a", 10, "e\u{301}a"),
    ("a mark at the beginning has a circle", "\u{301}a", 10, "\u{25CC}a"),
    ("Escape", "a\u{1B}[31m", 20, "a\\u{1B}[31m"),
    ("a newline", "a\nb", 20, "a\\u{A}b"),
    ("a control of C1", "\u{9B}31m", 20, "\\u{9B}31m"),
    ("formats are left out", "a\u{200B}\u{202E}b", 20, "ab"),
    ("Hangul of parts", "\u{1112}\u{1161}\u{11AB}", 20, "\u{1112}\u{1161}\u{11AB}"),
  ]

  @Test("what a text looks like", arguments: texts.indices)
  func text(_ index: Int) {
    let (name, text, columns, shown) = Self.texts[index]
    var grid = Grid(Grid.Size(rows: 1, columns: 20))
    grid.put(text, row: 0, column: 0, columns: columns)
    #expect(grid.text == shown, "\(name)")
  }

  @Test("without UTF-8 there is nothing but ASCII")
  func ascii() {
    var grid = Grid(Grid.Size(rows: 1, columns: 20), isASCII: true)
    grid.put("é日", row: 0, column: 0)
    #expect(grid.text == "\\u{E9}\\u{65E5}")
  }

  @Test("a text over half of a wide character leaves no half")
  func over() {
    var grid = Grid(Grid.Size(rows: 1, columns: 8))
    grid.put("日本", row: 0, column: 0)
    grid.put("x", row: 0, column: 1)
    #expect(grid.text == " x本")
    grid.put("y", row: 0, column: 2)
    #expect(grid.text == " xy")
  }

  @Test("texts beyond the edges are cut, and rows that are not there ignored")
  func edges() {
    var grid = Grid(Grid.Size(rows: 1, columns: 3))
    grid.put("abcdef", row: 0, column: 1)
    grid.put("abc", row: 1, column: 0)
    grid.put("abc", row: 0, column: 3)
    grid.put("abc", row: -1, column: 0)
    #expect(grid.text == " a~")
  }

  @Test("a terminal shows what the differences say, and gets no control of a value")
  func walk() {
    let size = Grid.Size(rows: 5, columns: 17)
    let words = ["abc", "日本", "e\u{301}", "\u{1B}[2J", "שלום", "👩‍👩‍👧", "\u{7}", "", "xy z", "\u{85}"]
    let styles = [Style.plain, .bold, .reversed, Style(.red)]
    var numbers = Numbers(state: 1)
    var terminal = Emulator(size)
    var old: Grid?
    for _ in 0..<2000 {
      var grid = Bool.random(using: &numbers) ? old ?? Grid(size) : Grid(size)
      for _ in 0..<Int.random(in: 0..<4, using: &numbers) {
        let text = (0..<3).map { _ in words.randomElement(using: &numbers) ?? "" }.joined()
        grid.put(
          text, row: .random(in: 0..<5, using: &numbers),
          column: .random(in: 0..<17, using: &numbers),
          style: styles.randomElement(using: &numbers) ?? .plain)
      }
      terminal.receive(grid.difference(from: old, isColored: true))
      #expect(terminal.text == grid.text && terminal.unknown.isEmpty)
      old = grid
    }
  }

  @Test("nothing is sent where nothing changes; one character costs some bytes")
  func cost() {
    let size = Grid.Size(rows: 24, columns: 80)
    var grid = Grid(size)
    for row in 0..<24 { grid.put("a row of text", row: row, column: 0) }
    #expect(grid.difference(from: grid, isColored: true) == [])
    var new = grid
    new.put("A", row: 7, column: 0)
    let text = String(decoding: new.difference(from: grid, isColored: false), as: UTF8.self)
    #expect(text == "\u{1B}[8;1H\u{1B}[0mA\u{1B}[?25l")
  }

  @Test("colours are left out where they are not wanted; other styles stay")
  func colors() {
    let style = Style(.red, isBold: true)
    #expect(style.sequence(isColored: true) == "\u{1B}[0;1;31m")
    #expect(style.sequence(isColored: false) == "\u{1B}[0;1m")
  }
}
