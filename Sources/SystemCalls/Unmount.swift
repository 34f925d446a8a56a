import Glibc

/// Ends mounts.
public enum Unmount {
  /// Takes a mount off its directory at once. What still has a file of it open keeps that
  /// (MNT_DETACH). Nothing of the mount is accessed. umount2(2) needs root; else fusermount3(1) does
  /// it, which is set-uid and ends a plain user's mounts.
  /// - Returns: whether the mount is gone.
  @discardableResult
  public static func lazily(_ path: String) -> Bool {
    if umount2(path, CInt(MNT_DETACH)) == 0 { return true }
    let words = ["-q", "-u", "-z", path]
    return (try? Child.runApart("fusermount3", words, milliseconds: 5000)) == 0
  }
}
