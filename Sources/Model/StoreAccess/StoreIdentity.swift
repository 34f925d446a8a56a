import Glibc
import PreferenceModel
import SystemCalls

/// Which directories a process sees under the names of a store: the device and inode of the user's
/// directory of lists, and of the state directory. Two processes with the same names may see
/// different directories, in two mount namespaces or on both sides of a mount over the home; then
/// one must not serve the other.
public struct StoreIdentity: Equatable, Sendable {
  /// Device and inode of the two directories; 0 if it does not exist.
  public var numbers: [UInt64]

  /// Creates an identity from the numbers of a message.
  public init(numbers: [UInt64]) { self.numbers = numbers }

  /// Looks at the directories. Cost: two stat(2), which may wait for a file system.
  public init(userDirectory: String, stateDirectory: String) {
    numbers = [userDirectory, stateDirectory].flatMap { path -> [UInt64] in
      guard let status = try? Files.status(path) else { return [0, 0] }
      return [UInt64(status.st_dev), UInt64(status.st_ino)]
    }
  }

  /// Whether the other process may see the same directories: none that both see is a different one.
  public func agrees(with other: StoreIdentity) -> Bool {
    zip(numbers, other.numbers).allSatisfy { $0 == $1 || $0 == 0 || $1 == 0 }
  }
}

extension Surroundings {
  /// What this process sees under the store's names at the moment.
  public var identity: StoreIdentity {
    StoreIdentity(userDirectory: userDirectory, stateDirectory: stateDirectory)
  }
}

extension StoreLayout {
  /// What this process sees under the store's names at the moment.
  public var identity: StoreIdentity {
    StoreIdentity(userDirectory: userDirectory, stateDirectory: stateDirectory)
  }
}
