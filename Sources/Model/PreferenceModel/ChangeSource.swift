/// By whom a change was made: what the history says of it.
///
/// It helps people to remember. It is no evidence: a program of the same user can say what it
/// likes.
public struct ChangeSource: Hashable, Sendable {
  /// The way a change came.
  public enum Via: UInt8, CaseIterable, Sendable {
    /// The owner that made it was killed before it could note this.
    case unknown
    /// A file of a mount.
    case mount
    /// The command `defaults`.
    case command
    /// A program with the library.
    case library
    /// Another program changed the list itself.
    case list
    /// A configuration profile.
    case profile
    /// A value that a configuration profile sets once.
    case once
    /// The cloud.
    case cloud
    /// `prefs undo`.
    case undo
    /// A declaration: `prefs apply --as`.
    case declaration
  }

  /// The way.
  public var via: Via
  /// The user of the process.
  public var user: UInt32 = 0
  /// The number of the process, as this machine's processes see it; 0 if it is not known.
  public var process: Int32 = 0
  /// The path of its program; empty if it is not known, because the process had ended.
  public var program = ""
  /// The last part of its control group, such as the service or the application's scope that it
  /// belongs to, or of a program that `prefs record` runs, `record-` and the number of that; empty
  /// if it is not known.
  public var unit = ""
  /// Why the change was made, as the one who asked for it says: `--because`; empty if nothing was
  /// said. It is no part of the source's bytes: what has it says so beside them.
  public var because = ""

  /// The longest reason, in bytes of UTF-8.
  public static let longestReason = 256

  /// A change that came by that way, without more.
  public init(_ via: Via) { self.via = via }
}

extension ByteWriter {
  /// Appends a source, of which the kind is a byte.
  package mutating func append(_ source: ChangeSource) {
    append(source.via.rawValue)
    append(source.user)
    append(source.process)
    append(counted: source.program.utf8)
    append(counted: source.unit.utf8)
  }
}

extension ByteReader {
  /// Reads a source. A way that a later version has added is `unknown`.
  package mutating func changeSource() throws -> ChangeSource {
    var source = ChangeSource(ChangeSource.Via(rawValue: try number()) ?? .unknown)
    source.user = try number()
    source.process = try number()
    source.program = String(decoding: try counted(), as: UTF8.self)
    source.unit = String(decoding: try counted(), as: UTF8.self)
    return source
  }
}
