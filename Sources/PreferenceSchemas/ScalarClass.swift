/// A set of characters in a regular expression.
struct ScalarClass: Sendable {
  private var ranges: [ClosedRange<UInt32>] = []
  /// The general categories of which a character has one.
  private var categories: Set<Unicode.GeneralCategory> = []
  private var isNegated = false
  /// The one character that the class was made from.
  private(set) var single: Unicode.Scalar?
  /// Classes that are negated inside of this one.
  private var others: [ScalarClass] = []

  /// Groups of Unicode's general categories, by the names of properties.
  private static let groups: [String: Set<Unicode.GeneralCategory>] = [
    "L": [.uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter],
    "Lu": [.uppercaseLetter],
    "Ll": [.lowercaseLetter],
    "N": [.decimalNumber, .letterNumber, .otherNumber],
    "Nd": [.decimalNumber],
    "P": [
      .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation,
      .initialPunctuation, .finalPunctuation, .otherPunctuation,
    ],
    "S": [.mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol],
    "Z": [.spaceSeparator, .lineSeparator, .paragraphSeparator],
  ]

  static let digit = ScalarClass("0"..."9")
  static let word: ScalarClass = {
    var all = ScalarClass("a"..."z")
    all.formUnion(ScalarClass("A"..."Z"))
    all.formUnion(digit)
    all.formUnion(ScalarClass("_"))
    return all
  }()
  static let blank: ScalarClass = {
    var all = ScalarClass(" ")
    all.formUnion(ScalarClass("\t"..."\r"))
    return all
  }()
  static let anyButNewline = ScalarClass("\n").negated

  init() {}

  init(_ scalar: Unicode.Scalar, ignoresCase: Bool = false) {
    self.init(scalar...scalar, ignoresCase: ignoresCase)
    single = scalar
  }

  init(_ range: ClosedRange<Unicode.Scalar>, ignoresCase: Bool = false) {
    ranges = [range.lowerBound.value...range.upperBound.value]
    // Of longer ranges the letters of ASCII alone have another case.
    guard ignoresCase else { return }
    if range.lowerBound == range.upperBound {
      for text in [
        range.lowerBound.properties.uppercaseMapping,
        range.lowerBound.properties.lowercaseMapping,
      ] {
        guard let other = text.unicodeScalars.first, text.unicodeScalars.count == 1 else {
          continue
        }
        ranges.append(other.value...other.value)
      }
    } else {
      for (letters, distance) in [(97...122, -32), (65...90, 32)] as [(ClosedRange<Int>, Int)] {
        let own = Int(range.lowerBound.value)...Int(range.upperBound.value)
        guard letters.overlaps(own) else { continue }
        let both = letters.clamped(to: own)
        ranges.append(UInt32(both.lowerBound + distance)...UInt32(both.upperBound + distance))
      }
    }
  }

  /// Creates the class of a Unicode property; nil if it is not one of those that are known.
  init?(property name: String) {
    guard let known = Self.groups[name] else { return nil }
    categories = known
  }

  var negated: ScalarClass {
    var other = self
    other.isNegated.toggle()
    other.single = nil
    return other
  }

  /// How many ranges are asked for a character; its category counts as one.
  var size: Int {
    others.reduce(ranges.count + (categories.isEmpty ? 0 : 1)) { $0 + $1.size }
  }

  mutating func formUnion(_ other: ScalarClass) {
    single = nil
    if other.isNegated {
      others.append(other)
    } else {
      ranges += other.ranges
      categories.formUnion(other.categories)
      others += other.others
    }
  }

  func contains(_ scalar: Unicode.Scalar?) -> Bool {
    guard let scalar else { return false }
    let value = scalar.value
    let isIn =
      ranges.contains { $0.contains(value) }
      || !categories.isEmpty && categories.contains(scalar.properties.generalCategory)
      || others.contains { $0.contains(scalar) }
    return isIn != isNegated
  }
}
