/// An integer of a property list: -2^63 to 2^64-1, as CFNumber and binary lists have it.
public struct WideInteger: Hashable, Sendable {
  /// The value as two's complement; `isNegative` tells which half it is from.
  private let bits: UInt64
  private let isNegative: Bool

  /// Any signed number.
  public init(_ value: Int64) {
    bits = UInt64(bitPattern: value)
    isNegative = value < 0
  }

  /// Any unsigned number.
  public init(_ value: UInt64) {
    bits = value
    isNegative = false
  }

  /// A number by sign and magnitude; nil below -2^63.
  public init?(negative: Bool, magnitude: UInt64) {
    if !negative || magnitude == 0 {
      self.init(magnitude)
    } else if magnitude <= 1 << 63 {
      self.init(Int64(truncatingIfNeeded: 0 &- magnitude))
    } else {
      return nil
    }
  }

  /// Decimal digits with an optional sign; nil for anything else and for what is out of range.
  public init?(decimal text: some Sequence<UInt8>) {
    var magnitude: UInt64 = 0
    var negative = false
    var digits = 0
    for (index, byte) in text.enumerated() {
      if index == 0, byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") {
        negative = byte == UInt8(ascii: "-")
        continue
      }
      guard let next = magnitude.appending(digit: byte) else { return nil }
      magnitude = next
      digits += 1
    }
    guard digits > 0 else { return nil }
    self.init(negative: negative, magnitude: magnitude)
  }

  /// As a signed number; nil above 2^63-1.
  public var signed: Int64? {
    isNegative || bits >> 63 == 0 ? Int64(bitPattern: bits) : nil
  }

  /// As an unsigned number; nil below 0.
  public var unsigned: UInt64? { isNegative ? nil : bits }

  /// As the nearest double.
  public var double: Double { isNegative ? Double(Int64(bitPattern: bits)) : Double(bits) }
}

extension WideInteger: CustomStringConvertible, ExpressibleByIntegerLiteral {
  /// Decimal.
  public var description: String { isNegative ? "\(Int64(bitPattern: bits))" : "\(bits)" }

  /// A number in source code.
  public init(integerLiteral value: Int64) { self.init(value) }
}

extension UInt64 {
  /// Ten times this number and the digit; nil where the byte is none or the result too large.
  func appending(digit byte: UInt8) -> UInt64? {
    let digit = byte &- UInt8(ascii: "0")
    guard digit < 10 else { return nil }
    let (tenfold, overflow) = multipliedReportingOverflow(by: 10)
    let (sum, carry) = tenfold.addingReportingOverflow(UInt64(digit))
    return overflow || carry ? nil : sum
  }
}
