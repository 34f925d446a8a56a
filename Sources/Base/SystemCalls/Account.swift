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
    (servedNumbers ?? [group]).sorted()
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
    canBeAsked(name) ? of(.name(name)) : nil
  }

  /// Those of the names that users of passwd(5) have. Cost: a small file is read.
  public static func local(among names: Set<String>) -> Set<String> {
    names.intersection(Self.names(in: (try? Files.contents("/etc/passwd", limit: 1 << 24)) ?? []))
  }

  /// Those of the names that users have whom the system's name service knows; nil where it does not
  /// answer. Cost: a small file is read; where users may be in another source than passwd(5), a
  /// program runs for every 1000 names, 5 s at most.
  public static func served(among names: Set<String>) -> Set<String>? {
    if isFileAlone(sources) { return local(among: names) }
    let asked = names.filter(canBeAsked).sorted()
    var served: Set<String> = []
    for start in stride(from: 0, to: asked.count, by: 1000) {
      let next = asked.dropFirst(start).prefix(1000)
      guard let found = getent("passwd", Array(next)) else { return nil }
      served.formUnion(Self.names(in: found))
    }
    return names.intersection(served)
  }

  /// Whether lines of nsswitch.conf(5) name passwd(5) as the only source of users.
  static func isFileAlone(_ bytes: [UInt8]) -> Bool {
    sources(of: "passwd", in: bytes) == ["files"]
  }

  /// The lines of nsswitch.conf(5).
  static var sources: [UInt8] {
    (try? Files.contents("/etc/nsswitch.conf", limit: 1 << 20)) ?? []
  }

  /// The sources that lines of nsswitch.conf(5) name for a database; nil where none is about it.
  static func sources(of database: String, in bytes: [UInt8]) -> [Substring]? {
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix(database + ":") }.map { line in
      line.dropFirst(database.count + 1).prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
    }
  }

  /// What the system's name service has of these names in a database; nil where it does not answer.
  static func getent(_ database: String, _ names: [String]) -> [UInt8]? {
    try? Child.output("/usr/bin/getent", [database] + names, milliseconds: 5000)
  }

  /// Whether getent(1) would read the name as one, and not as a number or an option.
  static func canBeAsked(_ name: String) -> Bool {
    uid_t(name) == nil && !name.hasPrefix("-") && !name.isEmpty
  }

  /// The fields of the lines of a file such as passwd(5). Lines with fewer are left out.
  static func lines(
    _ bytes: [UInt8], fields: Int
  ) -> some Collection<[ArraySlice<UInt8>]> {
    bytes.split(separator: UInt8(ascii: "\n")).lazy.map { line in
      line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    }.filter { $0.count >= fields }
  }

  /// The names of users in lines of passwd(5).
  static func names(in bytes: [UInt8]) -> Set<String> {
    Set(lines(bytes, fields: 6).map { String(decoding: $0[0], as: UTF8.self) })
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
    guard let found = getent("passwd", [user.word]) else { return nil }
    return find(user, in: found) ?? only(in: found)
  }

  /// The account of the only line. A name service that knows names without regard to case, as that of
  /// a Windows domain does, answers with the name as it writes it.
  static func only(in bytes: [UInt8]) -> Account? {
    let lines = lines(bytes, fields: 6)
    return lines.count == 1 ? lines.first.flatMap(account) : nil
  }

  /// Finds a user in lines of passwd(5).
  static func find(_ user: Identifier, in bytes: [UInt8]) -> Account? {
    lines(bytes, fields: 6).first(where: user.fits).flatMap(account)
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
