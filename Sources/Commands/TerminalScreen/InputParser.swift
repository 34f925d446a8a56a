/// Makes inputs out of the bytes of a terminal, in whatever pieces they come.
///
/// An input that it does not know is left out, and never becomes text: a sequence of a terminal
/// that it does not understand types nothing.
package struct InputParser: Sendable {
  private var waiting: [UInt8] = []
  /// What was pasted so far; nil if nothing is being pasted.
  private var pasted: [UInt8]?
  /// Whether the rest of a sequence that is too long is left out.
  private var isSkipping = false

  /// The most bytes of a paste that are kept.
  package static let mostPasted = 1 << 20
  /// The most bytes of a sequence.
  private static let longest = 64
  private static let escape: UInt8 = 0x1B
  private static let pasteEnd = Array("\u{1B}[201~".utf8)

  package init() {}

  /// Whether an Escape has come that may be the key, or the beginning of a sequence. After 50 ms
  /// without another byte it is the key: call `endWait`.
  package var isWaiting: Bool { pasted == nil && !waiting.isEmpty }

  /// Takes the bytes that wait for more as they are.
  package mutating func endWait() -> [Input] {
    guard isWaiting else { return [] }
    defer { (waiting, isSkipping) = ([], false) }
    return waiting.first == Self.escape && waiting.count == 1 ? [.key(.escape)] : []
  }

  /// Takes bytes. Cost: O(bytes).
  package mutating func feed(_ bytes: [UInt8]) -> [Input] {
    var inputs: [Input] = []
    for byte in bytes {
      if pasted != nil { addPasted(byte, &inputs) } else { add(byte, &inputs) }
    }
    return inputs
  }

  private mutating func addPasted(_ byte: UInt8, _ inputs: inout [Input]) {
    waiting.append(byte)
    if waiting.elementsEqual(Self.pasteEnd) {
      // An end inside of a character leaves its first bytes out.
      let text = String(decoding: pasted ?? [], as: UTF8.self)
      inputs.append(.paste(text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")))
      (pasted, waiting) = (nil, [])
    } else if !Self.pasteEnd.starts(with: waiting) {
      let isNew = byte == Self.escape
      let known = isNew ? waiting.dropLast() : waiting[...]
      let room = max(Self.mostPasted - (pasted?.count ?? 0), 0)
      pasted?.append(contentsOf: known.prefix(room))
      waiting = isNew ? [byte] : []
    }
  }

  private mutating func add(_ byte: UInt8, _ inputs: inout [Input]) {
    if isSkipping {
      if (0x40...0x7E).contains(byte) { isSkipping = false }
      return
    }
    waiting.append(byte)
    guard let first = waiting.first else { return }
    switch first {
    case Self.escape: addToSequence(byte, &inputs)
    case 0..<0x20, 0x7F: end(with: Self.control(first), &inputs)
    case 0x20..<0x7F: end(with: .text(String(Unicode.Scalar(first))), &inputs)
    default: addToCharacter(byte, &inputs)
    }
  }

  private mutating func end(with input: Input?, _ inputs: inout [Input]) {
    if let input { inputs.append(input) }
    waiting = []
  }

  private static func control(_ byte: UInt8) -> Input? {
    switch byte {
    case 0x0D, 0x0A: .key(.enter)
    case 0x09: .key(.tab)
    case 0x7F, 0x08: .key(.backspace)
    case 0x1...0x1A: .control(Character(Unicode.Scalar(byte + 0x60)))
    default: nil
    }
  }

  /// A character of several bytes. One that is not valid is left out.
  private mutating func addToCharacter(_ byte: UInt8, _ inputs: inout [Input]) {
    guard let first = waiting.first, (0xC2..<0xF5).contains(first) else { return waiting = [] }
    if waiting.count > 1, !(0x80..<0xC0).contains(byte) {
      waiting = []
      return add(byte, &inputs)
    }
    let count = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
    guard waiting.count == count else { return }
    let text = String(validating: waiting, as: UTF8.self)
    // A control of C1 is no text.
    let isControl = text?.unicodeScalars.first.map { $0.value < 0xA0 } ?? true
    end(with: isControl ? nil : text.map { .text($0) }, &inputs)
  }

  private mutating func addToSequence(_ byte: UInt8, _ inputs: inout [Input]) {
    if waiting.count == 1 { return }
    let kind = waiting[1]
    if kind == Self.escape {
      inputs.append(.key(.escape))
      waiting = [Self.escape]
      return
    }
    guard kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else {
      let input: Input? =
        (0x20..<0x7F).contains(kind)
        ? .alt(Character(Unicode.Scalar(kind)))
        : kind == 0x7F || kind == 0x08 ? .alt("\u{8}") : Self.control(kind)
      return end(with: input, &inputs)
    }
    if waiting.count == 2 { return }
    // F1 to F5 of the console of Linux: ESC [ [ A.
    if waiting.count == 3, kind == UInt8(ascii: "["), byte == kind { return }
    guard (0x40...0x7E).contains(byte) else {
      if !(0x20..<0x40).contains(byte) { return waiting = [] }
      if waiting.count >= Self.longest { (isSkipping, waiting) = (true, []) }
      return
    }
    if waiting.elementsEqual("\u{1B}[200~".utf8) {
      (pasted, waiting) = ([], [])
      return
    }
    end(with: Self.sequence(waiting.dropFirst(2)), &inputs)
  }

  /// The input of what follows `ESC [` or `ESC O`. Numbers for Shift, Alt and Ctrl are ignored.
  private static func sequence(_ body: ArraySlice<UInt8>) -> Input? {
    let text = String(decoding: body, as: UTF8.self)
    if text.hasPrefix("<") { return wheel(text.dropFirst()) }
    guard let last = text.last else { return nil }
    if last == "~" {
      let number = text.dropLast().split(separator: ";").first.map(String.init) ?? ""
      return keysByNumber[number].map { .key($0) }
    }
    if text == "[A" { return .key(.help) }
    return keysByLetter[last].map { .key($0) }
  }

  /// A report of the mouse: `64;COLUMN;ROW`, with further bits for Shift, Alt and Ctrl.
  private static func wheel(_ report: Substring) -> Input? {
    guard report.last == "M", let code = report.split(separator: ";").first.flatMap({ Int($0) })
    else { return nil }
    switch code & ~0x1C {
    case 64: return .wheel(isUp: true)
    case 65: return .wheel(isUp: false)
    default: return nil
    }
  }

  private static let keysByLetter: [Character: Input.Name] = [
    "A": .up, "B": .down, "C": .right, "D": .left, "H": .home, "F": .end, "Z": .backTab, "P": .help,
    "M": .enter,
  ]

  private static let keysByNumber: [String: Input.Name] = [
    "1": .home, "2": .insert, "3": .delete, "4": .end, "5": .pageUp, "6": .pageDown, "7": .home,
    "8": .end, "11": .help,
  ]
}
