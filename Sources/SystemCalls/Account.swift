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

  /// Those of the names that users have whom the system's name service knows; none where it does
  /// not answer. Cost: a program runs for every 1000 names, 5 s at most.
  public static func served(among names: Set<String>) -> Set<String> {
    // getent would read a number as one, and an option as one.
    let asked = names.filter { uid_t($0) == nil && !$0.hasPrefix("-") && !$0.isEmpty }.sorted()
    var served: Set<String> = []
    for start in stride(from: 0, to: asked.count, by: 1000) {
      let words = ["passwd"] + asked[start..<min(start + 1000, asked.count)]
      guard let found = try? Child.output("/usr/bin/getent", words, milliseconds: 5000) else {
        break
      }
      served.formUnion(Self.names(in: found))
    }
    return names.intersection(served)
  }

  /// The names of users in lines of passwd(5).
  static func names(in bytes: [UInt8]) -> Set<String> {
    Set(
      bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
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
    return found.flatMap { find(user, in: $0) }
  }

  /// Finds a user in lines of passwd(5).
  static func find(_ user: Identifier, in bytes: [UInt8]) -> Account? {
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard fields.count >= 6, user.fits(fields) else { continue }
      return Account(
        name: String(decoding: fields[0], as: UTF8.self),
        home: String(decoding: fields[5], as: UTF8.self))
    }
    return nil
  }
}
