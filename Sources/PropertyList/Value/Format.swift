/// The formats of a property list.
public enum Format: String, Sendable, CaseIterable {
  /// `bplist00`.
  case binary
  /// Apple's XML property list 1.0.
  case xml
  /// OpenStep and GNUstep text; read only.
  case openStep = "old-style"
  /// JSON; holds no dates, data, UIDs, infinities and NaNs.
  case json
}

/// Why bytes are no property list, or why a value cannot be written in a format.
public struct FormatError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The format that was read or written.
  public let format: Format
  /// Where: the offset of the byte, from 0; nil when a value could not be written.
  public let offset: Int?
  /// The line, from 1, in formats that have lines.
  public let line: Int?
  /// What was expected or found there.
  public let reason: String

  init(_ format: Format, offset: Int? = nil, line: Int? = nil, _ reason: String) {
    self.format = format
    self.offset = offset
    self.line = line
    self.reason = reason
  }

  /// e.g. "xml property list, line 12: expected </dict>".
  public var description: String {
    let place = line.map { ", line \($0)" } ?? offset.map { ", offset \($0)" } ?? ""
    return "\(format.rawValue) property list\(place): \(reason)"
  }
}

/// What a reader takes at most, so that no document can exhaust stack or memory.
public struct Limits: Sendable {
  /// Arrays and dictionaries inside each other.
  public var depth = 512
  /// Values in all, those that are referred to several times counted each time.
  public var count = 50_000_000
  /// Bytes of the document.
  public var size = 1 << 30

  /// The limits above.
  public static let standard = Limits()

  /// For a list whose values become preferences: a domain's list with them stays within `standard`.
  public static let list = Limits(depth: 501)

  /// For the text of one value: a list that holds the value must stay within `standard`.
  public static let text = Limits(depth: 500, count: 5_000_000, size: 16 << 20)
}
