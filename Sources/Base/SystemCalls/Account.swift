import Glibc

/// The account of a user, as the system knows it.
///
/// It is looked up without getpwuid(3), because programs that are linked statically cannot load the
/// system's name services: first in /etc/passwd, then, for accounts of LDAP, systemd-homed and so
/// on, with getent(1).
public struct Account: Equatable, Sendable {
  /// The user's name.
  public let name: String
  /// The user's home directory.
  public let home: String
  /// The user's number, and that of the user's first group.
  public let user, group: uid_t

  /// The numbers of all groups that the user is in. Cost: a program runs, 5 s at most; where it does
  /// not answer, only the first group is known.
  public var groups: [gid_t] {
    let output = try? Child.output("/usr/bin/getent", ["initgroups", name], milliseconds: 5000)
    let line = String(decoding: output ?? [], as: UTF8.self).split(separator: "\n").first ?? ""
    // The name stands before the groups.
    let others = line.dropFirst(name.count).split(separator: " ").compactMap { gid_t($0) }
    return Array(Set(others + [group])).sorted()
  }

  /// The account of the effective user of this process; nil where the system knows none. Cost: a
  /// small file is read once; for accounts that are not in it, a program runs once, 5 s at most.
  public static let own: Account? = present

  /// The same, asked anew.
  public static var present: Account? { numbered(geteuid()) }

  /// The account of a user by its number; nil where the system knows none. Cost: as of `named`.
  public static func numbered(_ user: uid_t) -> Account? { of(.number(user)) }

  /// The account of a user by its name; nil where the system knows none. Cost: as of `own`, at each
  /// call.
  public static func named(_ name: String) -> Account? {
    // getent would read a number as one, and an option as one.
    guard uid_t(name) == nil, !name.hasPrefix("-"), !name.isEmpty else { return nil }
    return of(.name(name))
  }

  /// Those of the names that users of passwd(5) have. Cost: a small file is read.
  public static func local(among names: Set<String>) -> Set<String> {
    names.intersection(Self.names(in: (try? Files.contents("/etc/passwd", limit: 1 << 24)) ?? []))
  }

  /// Those of the names that users have whom the system's name service knows; nil where it does not
  /// answer. Cost: a small file is read; where users may be in another source than passwd(5), a
  /// program runs for every 1000 names, 5 s at most.
  public static func served(among names: Set<String>) -> Set<String>? {
    let sources = (try? Files.contents("/etc/nsswitch.conf", limit: 1 << 20)) ?? []
    if isFileAlone(sources) { return local(among: names) }
    // getent would read a number as one, and an option as one.
    let asked = names.filter { uid_t($0) == nil && !$0.hasPrefix("-") && !$0.isEmpty }.sorted()
    var served: Set<String> = []
    for start in stride(from: 0, to: asked.count, by: 1000) {
      let words = ["passwd"] + asked[start..<min(start + 1000, asked.count)]
      guard let found = try? Child.output("/usr/bin/getent", words, milliseconds: 5000) else {
        return nil
      }
      served.formUnion(Self.names(in: found))
    }
    return names.intersection(served)
  }

  /// Whether lines of nsswitch.conf(5) name passwd(5) as the only source of users.
  static func isFileAlone(_ bytes: [UInt8]) -> Bool {
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("passwd:") }) else { return false }
    let sources = line.dropFirst("passwd:".count).prefix { $0 != "#" }
    return sources.split { $0 == " " || $0 == "\t" } == ["files"]
  }

  /// The names of users in lines of passwd(5).
  static func names(in bytes: [UInt8]) -> Set<String> {
    Set(
      bytes.split(separator: UInt8(ascii: "\n")).compactMap { line -> String? in
        let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        return fields.count >= 6 ? String(decoding: fields[0], as: UTF8.self) : nil
      })
  }

  /// What a user is looked up by.
  enum Identifier {
    case number(uid_t)
    case name(String)

    fileprivate var word: String {
      switch self {
      case .number(let number): "\(number)"
      case .name(let name): name
      }
    }

    fileprivate func fits(_ fields: [ArraySlice<UInt8>]) -> Bool {
      switch self {
      case .number(let number): uid_t(String(decoding: fields[2], as: UTF8.self)) == number
      case .name(let name): fields[0].elementsEqual(name.utf8)
      }
    }
  }

  private static func of(_ user: Identifier) -> Account? {
    let file = (try? Files.contents("/etc/passwd", limit: 1 << 24)) ?? []
    if let account = find(user, in: file) { return account }
    let found = try? Child.output("/usr/bin/getent", ["passwd", user.word], milliseconds: 5000)
    guard let found else { return nil }
    return find(user, in: found) ?? only(in: found)
  }

  /// The account of the only line. A name service that knows names without regard to case, as that of
  /// a Windows domain does, answers with the name as it writes it.
  static func only(in bytes: [UInt8]) -> Account? {
    let lines = bytes.split(separator: UInt8(ascii: "\n"))
    guard lines.count == 1 else { return nil }
    let fields = lines[0].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    return fields.count >= 6 ? account(fields) : nil
  }

  /// Finds a user in lines of passwd(5).
  static func find(_ user: Identifier, in bytes: [UInt8]) -> Account? {
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard fields.count >= 6, user.fits(fields) else { continue }
      return account(fields)
    }
    return nil
  }

  /// The account of a line of passwd(5); nil where its numbers are none.
  private static func account(_ fields: [ArraySlice<UInt8>]) -> Account? {
    guard let user = uid_t(String(decoding: fields[2], as: UTF8.self)),
      let group = gid_t(String(decoding: fields[3], as: UTF8.self))
    else { return nil }
    return Account(
      name: String(decoding: fields[0], as: UTF8.self),
      home: String(decoding: fields[5], as: UTF8.self), user: user, group: group)
  }
}
