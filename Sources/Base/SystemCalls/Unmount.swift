import Glibc

/// Ends mounts.
public enum Unmount {
  /// Takes a mount off its directory at once. What still has a file of it open keeps that
  /// (MNT_DETACH). Nothing of the mount is accessed. umount2(2) needs root; else fusermount3(1)
  /// does it, which is set-uid and ends a plain user's mounts.
  /// - Returns: whether the mount is gone.
  @discardableResult
  public static func lazily(_ path: String) -> Bool {
    if umount2(path, CInt(MNT_DETACH)) == 0 { return true }
    let words = ["-q", "-u", "-z", path]
    // libfuse mounts with this one, wherever PATH leads.
    let usual = "/usr/bin/fusermount3"
    let program = access(usual, X_OK) == 0 ? usual : "fusermount3"
    return (try? Child.runApart(program, words, milliseconds: 5000))?.status == 0
  }
}
