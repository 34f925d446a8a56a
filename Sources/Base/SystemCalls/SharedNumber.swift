import CLinux
import Synchronization

/// Numbers in shared memory: one process writes them, and others read one each without a system
/// call (memfd_create(2), mmap(2)). The readers can also see whether the writer is still there.
///
/// The writer hands the descriptor to the readers, which can change nothing: the memory is sealed
/// against growing, shrinking and later writable mappings. It lives as long as any process has it
/// open or mapped.
public final class SharedNumber: Sendable {
  // Accessed only through an atomic.
  private let page: SharedMapping
  /// The descriptor for readers; nil where this object is a reader itself.
  public let descriptor: SharedDescriptor?
  /// Which number `value` reads.
  private let index: Int

  private static let size = 4096

  /// How many numbers there are.
  public static let count = 504

  /// Creates the numbers, which are 0. Fails where the process has no descriptors or memory left,
  /// and with EINVAL before Linux 5.1, which cannot seal a mapping that is written to.
  public init() throws(SystemError) {
    let file = try Descriptor.inMemory("prefs-version", size: Self.size)
    page = try SharedMapping(file, size: Self.size)
    try SharedMapping.seal(file, .sizeAndContents)
    (descriptor, index) = (SharedDescriptor(file), 0)
  }

  /// Maps a number of another process for reading. Fails where the descriptor is not one that
  /// `init()` made, and with EINVAL where there is no number of that index.
  public init(reading file: borrowing Descriptor, at index: Int = 0) throws(SystemError) {
    try SharedMapping.check(file, size: Self.size, .sizeAndContents)
    guard 0..<Self.count ~= index else { throw SystemError("mmap", "", .invalidArgument) }
    page = try SharedMapping(file, size: Self.size, isWritable: false)
    (descriptor, self.index) = (nil, index)
  }

  private var first: UnsafeMutablePointer<Atomic<UInt64>> {
    page.start.assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// Where a number is. The first is in one cache line with what says whether the writer is there;
  /// the others follow that line.
  private func number(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    index == 0 ? first : first + 7 + index
  }

  /// 1 once a thread of the writer has been bound to the numbers.
  private var isBound: UnsafeMutablePointer<Atomic<UInt64>> { first + 1 }

  /// Where the lock is that the thread holds: in the same cache line as what goes before.
  private var lock: UnsafeMutableRawPointer { page.start + 16 }

  /// Binds the numbers to the life of the calling thread: `isKept` is true until the thread ends,
  /// however it ends. Call it once, by a thread that lives as long as the writer writes. Does
  /// nothing where the kernel has no robust futexes.
  public func bindToThread() {
    if prefsfs_hold(lock) == 0 { isBound.pointee.store(1, ordering: .releasing) }
  }

  /// Whether the thread that the numbers were bound to is still there; true for those that were
  /// bound to none. If the thread's process is killed, this is false before any of its file locks
  /// is free (do_exit in kernel/exit.c of Linux). Cost: two loads.
  public var isKept: Bool {
    isBound.pointee.load(ordering: .acquiring) == 0 || prefsfs_is_held(lock) != 0
  }

  /// The present number. Cost: one load.
  public var value: UInt64 { number(index).pointee.load(ordering: .acquiring) }

  /// Raises a number, of an index below `count`, to this value; one that is larger already stays.
  /// Only the writer may call it.
  public func raise(to value: UInt64, at index: Int = 0) {
    number(index).pointee.max(value, ordering: .acquiringAndReleasing)
  }
}

/// A descriptor with several owners: it is closed when the last of them is gone.
public final class SharedDescriptor: Sendable {
  /// The descriptor.
  public let value: Descriptor

  /// Takes ownership of the descriptor.
  public init(_ value: consuming Descriptor) { self.value = value }
}
