import CLinux

/// The memory of this process.
public enum Memory {
  /// Gives memory that was freed back to the system (malloc_trim(3)). Where much was freed in small
  /// pieces, the process keeps it otherwise. Cost: a look at all that is free.
  public static func giveBack() { malloc_trim(0) }

  /// Has large memory given back to the system as soon as it is freed (mallopt(3)), for a process
  /// that lives long and seldom needs much. Otherwise the C library keeps up to 64 MB for each
  /// thread that has needed them once, which `giveBack` does not give back either. Call it first of
  /// all. Cost: memory of 4 MiB and more is mapped each time.
  public static func keepLittle() {
    mallopt(M_MMAP_THRESHOLD, 4 << 20)
    mallopt(M_TRIM_THRESHOLD, 8 << 20)
  }
}
