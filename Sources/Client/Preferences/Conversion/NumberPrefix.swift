/// The decimal number at the beginning of a text, as NSString's integerValue and doubleValue read
/// it: blanks, a sign, digits, and for a double a fraction and an exponent. Foundation's own code
/// on Linux is not used: it ends the program if the text begins with a character beyond U+FFFF, and
/// rounds 0.3 wrongly.
struct NumberPrefix {
  private var rest: Substring.UTF8View
  /// The characters of the number that have been read.
  private var text = ""

  init(_ string: String) {
    rest = Substring(string).utf8.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
    if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { consume() }
    consumeDigits()
  }

  /// The integer; the nearest that fits if it is too large, 0 if there is none.
  var integer: Int {
    if let number = Int(text) { return number }
    guard text.utf8.contains(where: isDigit) else { return 0 }
    return text.hasPrefix("-") ? .min : .max
  }

  /// The number, correctly rounded; 0 if there is none.
  var double: Double {
    var prefix = self
    if prefix.rest.first == UInt8(ascii: ".") {
      prefix.consume()
      prefix.consumeDigits()
    }
    guard prefix.text.utf8.contains(where: isDigit) else { return 0 }
    return prefix.withExponent ?? Double(prefix.text) ?? 0
  }

  /// The number with its exponent; nil if no complete exponent follows.
  private var withExponent: Double? {
    var prefix = self
    guard let sign = prefix.rest.first, sign | 0x20 == UInt8(ascii: "e") else { return nil }
    prefix.consume()
    if let sign = prefix.rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
      prefix.consume()
    }
    prefix.consumeDigits()
    return Double(prefix.text)
  }

  /// Moves one byte from the rest to the number's text.
  private mutating func consume() {
    if let byte = rest.popFirst() { text.unicodeScalars.append(Unicode.Scalar(byte)) }
  }

  private mutating func consumeDigits() {
    while let byte = rest.first, isDigit(byte) { consume() }
  }

  private func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
