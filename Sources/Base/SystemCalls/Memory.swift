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
    mallopt(M_TRIM_THRESHOLD, 2 << 20)
  }

  /// Gives memory back to the system once a process that lives long has done nothing for a moment:
  /// what large values leave behind in pieces stays with it otherwise. Cost: `giveBack`, once for
  /// each such moment.
  public struct Tidying {
    /// When the memory is given back; nil if nothing has been done since it was given back last.
    public private(set) var due: Instant?
    /// Milliseconds in which nothing is done.
    private static let patience: Int64 = 3000

    public init() {}

    /// Notes that something has been done.
    public mutating func note(_ now: Instant) {
      due = now.advanced(milliseconds: Self.patience)
    }

    /// Gives the memory back if that is due.
    public mutating func attempt(_ now: Instant) {
      guard let end = due, end <= now else { return }
      Memory.giveBack()
      due = nil
    }
  }
}
