import CLinux
import Glibc

/// With whose rights a thread accesses files (setfsuid(2)).
///
/// Threads: what a thread sets is its own, and that of the threads that it starts afterwards.
public enum FileRights {
  /// Has this thread, and the threads that it starts from now on, access files with the rights of a
  /// user and of the user's groups: what the user cannot read, they cannot. To other processes, this
  /// one stays who it is. Throws EPERM unless this is root. Cost: a program runs once.
  public static func take(of account: Account) throws(SystemError) {
    let groups = account.groups
    let status = prefsfs_access_as(account.user, account.group, groups, groups.count)
    guard status == 0 else { throw SystemError("setfsuid", account.name) }
  }

  /// Has this thread access files with the rights of this process.
  /// - Returns: what `giveBack` takes.
  public static func takeOwn() -> uid_t { prefsfs_switch_access(geteuid()) }

  /// Ends what `takeOwn` began, on the same thread.
  public static func giveBack(_ user: uid_t) { _ = prefsfs_switch_access(user) }
}
