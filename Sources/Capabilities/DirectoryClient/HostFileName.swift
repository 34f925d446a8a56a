/// The name of a host's file in the directory, e.g. "vm-43c626cd.prefscloud", or of the copy that
/// Syncthing makes of one where two machines have written to it.
struct HostFileName: Hashable, Comparable, Sendable {
  /// The name of the file.
  let name: String
  /// The host, for which its frames are sealed.
  let host: String
  /// Whether it is a copy.
  var isCopy: Bool { name != Self.name(of: host) }

  private static let end = ".prefscloud"
  private static let copy = ".sync-conflict-"

  /// The name of a host's own file.
  static func name(of host: String) -> String { host + end }

  /// Reads a name in the directory; nil for those of other programs.
  init?(_ name: String) {
    guard name.hasSuffix(Self.end), !name.hasPrefix(".") else { return nil }
    let stem = name.dropLast(Self.end.count)
    let parts = stem.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let isCopy = parts.count == 2 && ".\(parts[1])".hasPrefix(Self.copy)
    guard let host = parts.first.map(String.init), isCopy || parts.count == 1,
      host == Self.host(host)
    else { return nil }
    (self.name, self.host) = (name, host)
  }

  /// The text with only those letters that the name of a host may have here.
  static func host(_ text: String) -> String {
    let allowed = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        byte
      default: UInt8(ascii: "-")
      }
    }
    return String(decoding: allowed.suffix(80), as: UTF8.self)
  }

  static func < (left: HostFileName, right: HostFileName) -> Bool { left.name < right.name }
}
