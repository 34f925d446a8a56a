import Foundation
internal import PropertyList

/// Converts values to the types of Swift and Foundation that the untyped API uses, and back.
enum Objects {
  /// Returns a value as the untyped getters give it.
  static func object(_ value: Value) -> Any {
    switch value {
    case .string(let text): text
    case .integer(let number):
      number.signed.map { Int($0) as Any } ?? (number.unsigned ?? 0)
    case .real(let number): number
    // Casts to Float and to Double succeed, as on Apple's systems.
    case .single(let number): NSNumber(value: number)
    case .boolean(let flag): flag
    case .date(let time): Date(timeIntervalSinceReferenceDate: time.seconds)
    case .data(let data): Data(data)
    // XML lists write a UID in this form.
    case .uid(let number): ["CF$UID": Int(clamping: number)] as [String: Any]
    case .array(let elements): elements.map(object)
    case .dictionary(let pairs): dictionary(pairs)
    }
  }

  /// Returns a dictionary as the untyped getters give it.
  static func dictionary(_ pairs: ValueDictionary) -> [String: Any] {
    Dictionary(pairs.map { ($0.key.string, object($0.value)) }) { $1 }
  }

  /// Returns the value of an object; nil if the object is not a property list.
  static func value(_ object: Any) -> Value? {
    // Foundation's classes come first: casts bridge, so that an NSNumber 1 would pass as a Bool.
    if type(of: object) is AnyClass { return referenced(object) }
    return switch object {
    case let text as String: .string(text)
    case let flag as Bool: .boolean(flag)
    case let number as any BinaryInteger: integer(number)
    case let number as Float: .single(number)
    case let number as any BinaryFloatingPoint: .real(Double(number))
    case let date as Date: .date(AbsoluteTime(seconds: date.timeIntervalSinceReferenceDate))
    case let data as Data: .data([UInt8](data))
    case let url as URL: ArchivedURL.value(url)
    case let elements as [Any]: array(elements)
    case let pairs as [String: Any]: values(pairs).map { .dictionary($0) }
    default: nil
    }
  }

  /// Returns a dictionary's values without those that are not property lists, and the names of
  /// these.
  static func valuesAndOthers(_ pairs: [String: Any]) -> (ValueDictionary, others: [String]) {
    var (result, others): (ValueDictionary, [String]) = ([:], [])
    for (key, object) in pairs {
      if let value = value(object) { result[Key(key)] = value } else { others.append(key) }
    }
    return (result, others.sorted())
  }

  /// Returns a dictionary's values; nil if one of them is not a property list.
  static func values(_ pairs: [String: Any]) -> ValueDictionary? {
    let (values, others) = valuesAndOthers(pairs)
    return others.isEmpty ? values : nil
  }

  private static func array(_ elements: [Any]) -> Value? {
    let values = elements.compactMap(value)
    return values.count == elements.count ? .array(values) : nil
  }

  private static func integer(_ number: some BinaryInteger) -> Value? {
    if let number = Int64(exactly: number) { return .integer(WideInteger(number)) }
    return UInt64(exactly: number).map { .integer(WideInteger($0)) }
  }

  /// Returns the value of an object of one of Foundation's classes.
  private static func referenced(_ object: Any) -> Value? {
    switch object {
    case let text as NSString: .string(text as String)
    case let number as NSNumber: self.number(number)
    case let date as NSDate: .date(AbsoluteTime(seconds: date.timeIntervalSinceReferenceDate))
    case let data as NSData: .data([UInt8](Data(referencing: data)))
    case let url as NSURL: ArchivedURL.value(url as URL)
    case let elements as NSArray: array(elements.map { $0 })
    case let pairs as NSDictionary:
      (pairs as? [String: Any]).flatMap(values).map { .dictionary($0) }
    default: nil
    }
  }

  private static func number(_ number: NSNumber) -> Value {
    switch String(cString: number.objCType) {
    // The booleans are two fixed objects, and no other number is one of them.
    case "c" where number === (number.boolValue as NSNumber): .boolean(number.boolValue)
    case "f": .single(number.floatValue)
    case "d": .real(number.doubleValue)
    case "Q": .integer(WideInteger(number.uint64Value))
    default: .integer(WideInteger(number.int64Value))
    }
  }
}
