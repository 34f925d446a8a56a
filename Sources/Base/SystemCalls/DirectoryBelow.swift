import CLinux
import Glibc

// Directories in which somebody else may have put links.

extension Descriptor {
  /// Opens a directory at or below `root`, for paths through it (`withPath`). No part from `root` on
  /// may be a symbolic link: whoever changes what lies there cannot lead to another directory.
  ///
  /// Throws ELOOP if a part is a link, or no directory, and ENOENT if one is missing. Cost: an
  /// open(2) for each part.
  /// - Parameter mode: the mode of the directories below `root` that are made where they are
  ///   missing; nil means that none is made.
  package static func directory(
    _ path: String, below root: String, making mode: mode_t? = nil
  ) throws(SystemError) -> Descriptor {
    do throws(SystemError) {
      var found = try Descriptor(opening: root, partFlags)
      for name in path.dropFirst(root.count).split(separator: "/") {
        let next = try found.withPath(of: String(name)) { part throws(SystemError) in
          if let mode { try Files.makeDirectories(part, mode: mode) }
          return try Descriptor(opening: part, partFlags)
        }
        found = next
      }
      return found
    } catch {
      throw SystemError(error.call, path, error.errno == .notDirectory ? .linkLoop : error.errno)
    }
  }

  private static let partFlags = prefsfs_o_path | O_DIRECTORY | O_NOFOLLOW

  /// Calls the body with a path of a file in this directory. It leads into this directory whatever
  /// becomes of the directory's name, but needs /proc.
  package borrowing func withPath<Result: ~Copyable>(
    of name: String, _ body: (String) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try body("/proc/self/fd/\(number)/\(name)")
  }
}
