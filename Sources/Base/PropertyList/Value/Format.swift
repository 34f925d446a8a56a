/// A file format of property lists.
public enum Format: String, Sendable, CaseIterable {
  /// Apple's binary format, `bplist00`.
  case binary
  /// Apple's XML property list 1.0.
  case xml
  /// The text format of OpenStep and GNUstep. It can be read but not written.
  case openStep = "old-style"
  /// JSON, which does not hold dates, data, UIDs, infinities or NaN.
  case json
}

/// The reason why bytes are not a property list, or why a format cannot hold a value.
public struct FormatError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The format that was read or written.
  public let format: Format
  /// The offset of the error in bytes, from 0; nil if a value could not be written.
  public let offset: Int?
  /// The line of the error, from 1; nil in binary lists and if a value could not be written.
  public let line: Int?
  /// What was expected or found there.
  public let reason: String

  init(_ format: Format, offset: Int? = nil, line: Int? = nil, _ reason: String) {
    self.format = format
    self.offset = offset
    self.line = line
    self.reason = reason
  }

  /// A sentence for people, e.g. "xml property list, line 12: expected </dict>".
  public var description: String {
    let place = line.map { ", line \($0)" } ?? offset.map { ", offset \($0)" } ?? ""
    return "\(format.rawValue) property list\(place): \(reason)"
  }
}

/// The largest document that a reader accepts, so that no document can exhaust stack or memory.
public struct Limits: Sendable {
  /// How deep arrays and dictionaries may be nested.
  public var depth = 512
  /// How many values there may be. In a binary list, a value that is referred to several times
  /// counts each time.
  public var count = 50_000_000
  /// How large the document may be, in bytes.
  public var size = 1 << 30
  /// What `null` of JSON stands for, which property lists do not have; nil if it is refused.
  public var null: Value?

  /// The defaults of the properties: a depth of 512, 50 million values and 1 GiB.
  public static let standard = Limits()

  /// The limits of a list whose values become preferences. They are lower than `standard`, so that
  /// the domain's list, which nests the values deeper, can be read with `standard`.
  public static let list = Limits(depth: 501)

  /// The limits of a list that one of our programs sends to another. It was checked when it was
  /// read, and may be larger as a binary list than in its own format.
  public static let message = Limits(count: .max, size: .max)

  /// The limits of the text of one value. They are lower than `standard`, so that the list that
  /// holds the value can be read with `standard`.
  public static let text = Limits(depth: 500, count: 5_000_000, size: 16 << 20)
}
