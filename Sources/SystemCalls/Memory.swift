import CLinux

/// The memory of this process.
public enum Memory {
  /// Gives memory that was freed back to the system (malloc_trim(3)). Where much was freed in small
  /// pieces, the process keeps it otherwise. Cost: a look at all that is free, some milliseconds
  /// for 50 MB.
  public static func giveBack() { malloc_trim(0) }
}
