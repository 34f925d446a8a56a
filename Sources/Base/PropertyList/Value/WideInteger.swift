/// An integer of a property list, from -2^63 to 2^64-1: the range of CFNumber and binary lists.
public struct WideInteger: Hashable, Sendable {
  /// The value in two's complement; `isNegative` tells whether it is signed or unsigned.
  private let bits: UInt64
  private let isNegative: Bool

  /// Creates an integer from any signed number.
  public init(_ value: Int64) {
    bits = UInt64(bitPattern: value)
    isNegative = value < 0
  }

  /// Creates an integer from any unsigned number.
  public init(_ value: UInt64) {
    bits = value
    isNegative = false
  }

  /// Creates an integer from its sign and magnitude; nil below -2^63.
  public init?(negative: Bool, magnitude: UInt64) {
    if !negative || magnitude == 0 {
      self.init(magnitude)
    } else if magnitude <= 1 << 63 {
      self.init(Int64(truncatingIfNeeded: 0 &- magnitude))
    } else {
      return nil
    }
  }

  /// The integer as a signed number; nil above 2^63-1.
  public var signed: Int64? {
    isNegative || bits >> 63 == 0 ? Int64(bitPattern: bits) : nil
  }

  /// The integer as an unsigned number; nil below 0.
  public var unsigned: UInt64? { isNegative ? nil : bits }

  /// The nearest double.
  public var double: Double { isNegative ? Double(Int64(bitPattern: bits)) : Double(bits) }
}

extension WideInteger: CustomStringConvertible, ExpressibleByIntegerLiteral {
  /// The integer in decimal.
  public var description: String { isNegative ? "\(Int64(bitPattern: bits))" : "\(bits)" }

  /// Creates an integer from a literal.
  public init(integerLiteral value: Int64) { self.init(value) }
}

extension UInt64 {
  /// Returns ten times this number plus the digit; nil if the byte is not a decimal digit or the
  /// result does not fit.
  func appending(digit byte: UInt8) -> UInt64? {
    let digit = byte &- UInt8(ascii: "0")
    guard digit < 10 else { return nil }
    let (tenfold, overflow) = multipliedReportingOverflow(by: 10)
    let (sum, carry) = tenfold.addingReportingOverflow(UInt64(digit))
    return overflow || carry ? nil : sum
  }
}

extension WideInteger: Comparable {
  /// Compares the numbers that two integers stand for.
  public static func < (left: WideInteger, right: WideInteger) -> Bool {
    if left.isNegative != right.isNegative { return left.isNegative }
    // In two's complement the order of two negative numbers is that of their bits, too.
    return left.bits < right.bits
  }
}
