import CLinux
import Glibc

/// A file in memory (memfd_create(2)) as it is mapped for all processes that have it (mmap(2)).
///
/// Threads: any. What the bytes mean, and who may change them when, is the owner's matter. The
/// memory stays mapped as long as this value lives.
struct SharedMapping: ~Copyable, @unchecked Sendable {
  // Sendable, because the address and the size never change.
  /// The first byte.
  let start: UnsafeMutableRawPointer
  private let size: Int

  /// What nobody can do any more with a file in memory (F_ADD_SEALS of fcntl(2)).
  enum Seals: CInt {
    /// Change its size.
    case size = 0x7  // F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW
    /// Change its size, or write to it but through the mappings that there are.
    case sizeAndContents = 0x17  // and F_SEAL_FUTURE_WRITE
  }

  /// Maps the first bytes of the file. Throws what mmap(2) does.
  /// - Parameter isSparse: whether most of the file will never be written. No memory is set aside
  ///   for it then, and a core dump leaves it out, because it would touch every page.
  init(
    _ file: borrowing Descriptor, size: Int, isWritable: Bool = true, isSparse: Bool = false
  ) throws(SystemError) {
    let address = mmap(
      nil, size, isWritable ? PROT_READ | PROT_WRITE : PROT_READ,
      isSparse ? MAP_SHARED | MAP_NORESERVE : MAP_SHARED, file.number, 0)
    guard let address, address != MAP_FAILED else { throw SystemError("mmap", "") }
    if isSparse { madvise(address, size, 16 /* MADV_DONTDUMP */) }
    (start, self.size) = (address, size)
  }

  deinit { munmap(start, size) }

  /// Seals a file in memory.
  static func seal(_ file: borrowing Descriptor, _ seals: Seals) throws(SystemError) {
    if prefsfs_seal(file.number, seals.rawValue) != 0 { throw SystemError("fcntl", "") }
  }

  /// Throws EINVAL where the file is not in memory, or has not these seals and this size. It never
  /// waits for a disk: only files in memory have seals, and those are looked at first.
  static func check(
    _ file: borrowing Descriptor, size: Int, _ seals: Seals
  ) throws(SystemError) {
    guard prefsfs_is_sealed(file.number, seals.rawValue) != 0, try file.status().st_size == size
    else { throw SystemError("mmap", "", .invalidArgument) }
  }
}
