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
  public static let own: Account? = of(geteuid())

  /// The account of a user.
  static func of(_ user: uid_t) -> Account? {
    let file = (try? Files.contents("/etc/passwd", limit: 1 << 24)) ?? []
    if let account = find(user, in: file) { return account }
    let found = try? Child.output(
      "/usr/bin/getent", ["passwd", "\(user)"], milliseconds: 5000)
    return found.flatMap { find(user, in: $0) }
  }

  /// Finds a user in lines of passwd(5).
  static func find(_ user: uid_t, in bytes: [UInt8]) -> Account? {
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard fields.count >= 6, uid_t(String(decoding: fields[2], as: UTF8.self)) == user else {
        continue
      }
      return Account(
        name: String(decoding: fields[0], as: UTF8.self),
        home: String(decoding: fields[5], as: UTF8.self))
    }
    return nil
  }
}
