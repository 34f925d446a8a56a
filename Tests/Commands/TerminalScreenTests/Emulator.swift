@testable import TerminalScreen

/// A terminal that knows the sequences which `Grid.difference` sends, and no others.
struct Emulator {
  private(set) var rows: [[String]]
  private(set) var isCursorShown = true
  private(set) var row = 0
  private(set) var column = 0
  /// What came that is no text and no sequence that it knows.
  private(set) var unknown: [String] = []

  init(_ size: Grid.Size) {
    rows = Array(
      repeating: Array(repeating: " ", count: size.columns), count: size.rows)
  }

  mutating func receive(_ bytes: [UInt8]) {
    var rest = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)[...]
    while let scalar = rest.popFirst() {
      if scalar == "\u{1B}" { obey(&rest) } else { put(scalar) }
    }
  }

  private mutating func put(_ scalar: Unicode.Scalar) {
    switch Width.role(of: scalar) {
    case .base where scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value):
      unknown.append("\(scalar.value)")
    case .base(let width):
      guard column + width <= rows[row].count else { return unknown.append("beyond the edge") }
      rows[row][column] = String(scalar)
      if width == 2 { rows[row][column + 1] = "" }
      column += width
    case .mark: rows[row][max(column - 1, 0)].unicodeScalars.append(scalar)
    case .invisible: unknown.append("\(scalar.value)")
    }
  }

  private mutating func obey(_ rest: inout ArraySlice<Unicode.Scalar>) {
    guard rest.popFirst() == "[" else { return unknown.append("no CSI") }
    var body = ""
    while let scalar = rest.popFirst() {
      body.unicodeScalars.append(scalar)
      if ("@"..."~").contains(scalar) { break }
    }
    let numbers = body.dropLast().split(separator: ";").compactMap { Int($0) }
    switch body.last {
    case "H": (row, column) = (numbers[0] - 1, numbers[1] - 1)
    case "K": for column in column..<rows[row].count { rows[row][column] = " " }
    case "J": for row in rows.indices { rows[row] = rows[row].map { _ in " " } }
    case "m": break
    case "h", "l": isCursorShown = body.last == "h"
    default: unknown.append(body)
    }
  }

  var text: String {
    rows.map { row in
      String(row.joined().reversed().drop { $0 == " " }.reversed())
    }.joined(separator: "\n")
  }
}

/// Random numbers that are the same at each run.
struct Numbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ (state >> 29)
  }
}
