import Synchronization

/// A stream of bytes from one process to another, in memory that both have mapped
/// (memfd_create(2), mmap(2)).
///
/// Promises: the reader gets the bytes in the order in which they were written. What `write` has
/// moved can be read however the writer's process ends. The size is sealed, so that neither side
/// can take memory away from under the other, and a number that the other side should not have
/// written is refused, and never computed with.
///
/// Cost: a copy of the bytes. Neither side makes a system call; a reader that waits for something
/// else meanwhile says so (`beginWait`), and the writer finds out that it has to wake it.
///
/// Threads: one at a time writes, and one at a time reads. There is no lock.
public final class SharedRing: @unchecked Sendable {
  // Sendable, because the shared numbers are atomics, and `position` belongs to the one thread that
  // writes or reads.
  private let mapping: SharedMapping
  private var memory: UnsafeMutableRawPointer { mapping.start }
  /// How many bytes this side has moved since the ring was made.
  private var position: UInt64 = 0
  /// The file in memory, for the reader; nil where this object is the reader's.
  public let descriptor: SharedDescriptor?

  /// How many bytes the ring holds.
  public static let capacity = 1 << 18
  private static let page = 4096
  private static let size = page + capacity

  /// Creates an empty ring, for its writer. Fails where the process has no descriptors or memory
  /// left.
  public init() throws(SystemError) {
    let file = try SharedMapping.makeFile("prefs-ring", size: Self.size)
    try SharedMapping.seal(file, .size)
    mapping = try SharedMapping(file, size: Self.size)
    descriptor = SharedDescriptor(file)
  }

  /// Maps the ring of another process, for its reader. Fails where the descriptor is not one that
  /// `init()` made.
  public init(reading file: borrowing Descriptor) throws(SystemError) {
    try SharedMapping.check(file, size: Self.size, .size)
    mapping = try SharedMapping(file, size: Self.size)
    descriptor = nil
  }

  // The numbers, each in a cache line of its own.
  /// How many bytes have been written.
  private var written: UnsafeMutablePointer<Atomic<UInt64>> { number(at: 0) }
  /// How many bytes have been taken.
  private var taken: UnsafeMutablePointer<Atomic<UInt64>> { number(at: 64) }
  /// 1 while the reader has to be woken.
  private var isAsleep: UnsafeMutablePointer<Atomic<UInt64>> { number(at: 128) }

  private func number(at offset: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    (memory + offset).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  /// Calls the body with each of the at most two pieces of memory that hold `count` bytes from the
  /// position on.
  private func forEachPiece(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
    let start = Int(position % UInt64(Self.capacity))
    let first = min(count, Self.capacity - start)
    let bytes = memory + Self.page
    body(UnsafeMutableRawBufferPointer(start: bytes + start, count: first))
    if first < count {
      body(UnsafeMutableRawBufferPointer(start: bytes, count: count - first))
    }
  }

  // MARK: - The writer

  /// Writes the bytes, where there is room for all of them; of more bytes than the ring holds, as
  /// many as there is room for.
  /// - Returns: how many it has written.
  public func write(_ bytes: ArraySlice<UInt8>) -> Int {
    let used = position &- taken.pointee.load(ordering: .acquiring)
    guard used < UInt64(Self.capacity) else { return 0 }
    let count = min(bytes.count, Self.capacity - Int(used))
    guard count == bytes.count || bytes.count > Self.capacity else { return 0 }
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[..<count]
      forEachPiece(count) { piece in
        piece.copyBytes(from: rest.prefix(piece.count))
        rest = rest.dropFirst(piece.count)
      }
    }
    position &+= UInt64(count)
    written.pointee.store(position, ordering: .releasing)
    return count
  }

  /// Whether the reader waits and has not been told yet that there is something to read. It is told
  /// once: after true, this is false until the reader waits again.
  public func mustWake() -> Bool {
    // Either this side sees that the reader waits, or the reader sees what was written.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    return isAsleep.pointee.load(ordering: .relaxed) != 0
      && isAsleep.pointee.exchange(0, ordering: .relaxed) != 0
  }

  // MARK: - The reader

  /// Whether there is nothing to take.
  public var isEmpty: Bool { written.pointee.load(ordering: .acquiring) == position }

  /// Appends everything that has been written to the bytes.
  /// - Returns: false where the writer's numbers make no sense; nothing was taken then.
  public func take(into bytes: inout [UInt8]) -> Bool {
    let count = written.pointee.load(ordering: .acquiring) &- position
    guard count <= UInt64(Self.capacity) else { return false }
    forEachPiece(Int(count)) { bytes += $0 }
    position &+= count
    taken.pointee.store(position, ordering: .releasing)
    return true
  }

  /// Says that the reader is going to wait, and that the writer has to wake it.
  /// - Returns: false where there is something to take. The reader should not wait then.
  public func beginWait() -> Bool {
    isAsleep.pointee.store(1, ordering: .relaxed)
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    if isEmpty { return true }
    endWait()
    return false
  }

  /// Says that the reader is awake.
  public func endWait() { isAsleep.pointee.store(0, ordering: .relaxed) }
}
