import CLinux
import Synchronization

/// A log in memory that outlives the process that writes it, as long as some process has its
/// descriptor (memfd_create(2)), with a few numbers and one message beside it.
///
/// Promises: what `append` has returned for is in the log, whatever becomes of the process, and a
/// reader sees each append as a whole or not at all. The file's size is sealed, so that no other
/// process can take memory away from under a writer.
///
/// Cost: an append is a copy of the bytes and one store. Only pages that were written take memory;
/// a replacement gives those of the old contents back.
///
/// Threads: one writes the log; any may read and write the numbers. There is no lock.
public final class SharedLog: @unchecked Sendable {
  // Sendable, because the numbers are atomics, and the rest is touched by one thread.
  private let mapping: SharedMapping
  private var memory: UnsafeMutableRawPointer { mapping.start }
  /// The file in memory. A process that has it can read the log after this one has ended.
  public let descriptor: Descriptor

  // The first page has the mark, the state (bit 63: which half, the rest: its length) and the
  // numbers, 8 bytes each, and then the message. The two halves follow.
  private static let mark: UInt64 = 0x31_47_4F_4C_53_46_45_52
  private static let page = 32768
  private static let slotsOffset = 16384
  /// How many slots there are.
  public static let slots = 2048
  private static let messageOffset = 1024
  /// Bytes that a message may have.
  public static let longestMessage = 12288
  /// Bytes of a half, the first that the limits of the process allow (RLIMIT_AS, RLIMIT_FSIZE).
  private static let halves = [1 << 29, 1 << 26, 1 << 23]
  private let half: Int
  private static let secondHalf: UInt64 = 1 << 63

  /// Creates an empty log whose numbers are 0. It has room for 512 MiB, or for 8 MiB at least where
  /// the limits of the process allow no more. Throws what memfd_create(2) and mmap(2) do.
  /// - Parameter largest: the largest room that is wanted, in bytes.
  public init(name: String, largest: Int = .max) throws(SystemError) {
    let halves = Self.halves.filter { $0 <= largest }
    half = halves.first { (try? Self.file(name, half: $0)) != nil } ?? Self.halves[0]
    let file = try Self.file(name, half: half)
    mapping = try SharedMapping(file, size: Self.size(half), isSparse: true)
    try SharedMapping.seal(file, .size)
    descriptor = file
    cell(0).pointee.store(Self.mark, ordering: .releasing)
  }

  private static func size(_ half: Int) -> Int { page + 2 * half }

  /// Creates a file of that size, which can be mapped.
  private static func file(_ name: String, half: Int) throws(SystemError) -> Descriptor {
    let file = try Descriptor.inMemory(name, size: size(half))
    _ = try SharedMapping(file, size: size(half), isSparse: true)
    return file
  }

  /// Goes on with the log of another process. Throws EINVAL if the descriptor is not a log's.
  public init(adopting file: consuming Descriptor) throws(SystemError) {
    let size = Int(clamping: try file.status().st_size)
    half = (size - Self.page) / 2
    guard Self.halves.contains(half) else { throw SystemError("mmap", "", .invalidArgument) }
    try SharedMapping.check(file, size: size, .size)
    mapping = try SharedMapping(file, size: size, isSparse: true)
    descriptor = file
    if cell(0).pointee.load(ordering: .acquiring) != Self.mark {
      throw SystemError("mmap", "", .invalidArgument)
    }
  }

  private func cell(_ index: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
    (memory + 8 * index).assumingMemoryBound(to: Atomic<UInt64>.self)
  }

  private var state: UInt64 {
    get { cell(1).pointee.load(ordering: .acquiring) }
    set { cell(1).pointee.store(newValue, ordering: .releasing) }
  }

  // MARK: - Numbers and message

  /// A number; the index is less than 32.
  public subscript(index: Int) -> UInt64 {
    get { cell(2 + index).pointee.load(ordering: .acquiring) }
    set { cell(2 + index).pointee.store(newValue, ordering: .releasing) }
  }

  /// A number of the slots, which are for numbers that come and go; the index is less than `slots`.
  public func slot(_ index: Int) -> UInt64 {
    cell(Self.slotsOffset / 8 + index).pointee.load(ordering: .acquiring)
  }

  /// Sets a number of the slots.
  public func setSlot(_ index: Int, _ value: UInt64) {
    cell(Self.slotsOffset / 8 + index).pointee.store(value, ordering: .releasing)
  }

  /// A message of at most `longestMessage` bytes; longer ones are cut.
  public var message: [UInt8] {
    get {
      let start = memory + Self.messageOffset
      let count = min(Int(start.load(as: UInt32.self)), Self.longestMessage)
      return Array(UnsafeRawBufferPointer(start: start + 4, count: count))
    }
    set {
      let start = memory + Self.messageOffset
      let bytes = newValue.prefix(Self.longestMessage)
      bytes.withUnsafeBytes { bytes in
        if let base = bytes.baseAddress {
          (start + 4).copyMemory(from: base, byteCount: bytes.count)
        }
      }
      start.storeBytes(of: UInt32(bytes.count), as: UInt32.self)
    }
  }

  // MARK: - The log

  /// Bytes in the log.
  public var count: Int { Int(clamping: state & ~Self.secondHalf) }

  /// Bytes that the log has room for.
  public var room: Int { half }

  /// Appends the bytes, all or, if the process ends meanwhile, none.
  /// - Returns: false if the log has no room for them.
  public func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let (before, count) = (state, self.count)
    guard bytes.count <= half - count else { return false }
    write(bytes, at: offset(of: before) + count)
    state = before + UInt64(bytes.count)
    return true
  }

  /// Makes the pieces, one behind the other, the only contents, in one step: until then, the old
  /// ones count.
  /// - Returns: false if the log has no room for them; the old contents stay.
  public func replace(with pieces: [[UInt8]]) -> Bool {
    let count = pieces.reduce(0) { $0 + $1.count }
    guard count <= half else { return false }
    let (old, new) = ((start: offset(of: state), count: self.count), otherHalf)
    // A process before this one may not have finished its own.
    _ = prefsfs_punch_hole(descriptor.number, Int(offset(of: new)), half)
    var end = offset(of: new)
    for piece in pieces {
      piece.withUnsafeBytes { write($0, at: end) }
      end += piece.count
    }
    state = new | UInt64(count)
    // Where the memory cannot be given back, it is used again by the replacement after the next.
    _ = prefsfs_punch_hole(descriptor.number, Int(old.start), Int(old.count))
    return true
  }

  private var otherHalf: UInt64 { ~state & Self.secondHalf }

  /// The bytes of the log.
  public var contents: [UInt8] {
    Array(UnsafeRawBufferPointer(start: memory + offset(of: state), count: min(count, half)))
  }

  private func offset(of state: UInt64) -> Int {
    Self.page + (state & Self.secondHalf == 0 ? 0 : half)
  }

  private func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    guard let base = bytes.baseAddress else { return }
    (memory + offset).copyMemory(from: base, byteCount: bytes.count)
  }
}
