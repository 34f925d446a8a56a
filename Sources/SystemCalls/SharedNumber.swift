import CLinux
import Glibc
import Synchronization

/// A number in shared memory: one process writes it, and others read it without a system call
/// (memfd_create(2), mmap(2)).
///
/// The writer hands the descriptor to the readers, which can change nothing: the memory is sealed
/// against growing, shrinking and later writable mappings. It lives as long as any process has it
/// open or mapped.
public final class SharedNumber: @unchecked Sendable {
  // Sendable, because the page is accessed only through an atomic, and stays mapped as long as this
  // object lives.
  private let page: UnsafeMutableRawPointer
  private let number: UnsafeMutablePointer<Atomic<UInt64>>
  /// The descriptor for readers; nil where this object is a reader itself.
  public let descriptor: SharedDescriptor?

  private static let size = 4096

  /// Creates a number, which is 0. Fails where the process has no descriptors or memory left.
  public init() throws(SystemError) {
    let file = prefsfs_memory_file("prefs-version")
    if file < 0 { throw SystemError("memfd_create", "") }
    let owned = Descriptor(owning: file)
    try owned.truncate(to: Self.size)
    page = try Self.map(owned.number, PROT_READ | PROT_WRITE)
    number = page.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
    prefsfs_seal(owned.number)
    descriptor = SharedDescriptor(owned)
  }

  /// Maps the number of another process for reading. Fails where the descriptor is not one that
  /// `init()` made.
  public init(reading file: borrowing Descriptor) throws(SystemError) {
    guard try file.status().st_size == Self.size, prefsfs_is_sealed(file.number) != 0 else {
      throw SystemError("mmap", "", .invalidArgument)
    }
    page = try Self.map(file.number, PROT_READ)
    number = page.bindMemory(to: Atomic<UInt64>.self, capacity: 1)
    descriptor = nil
  }

  deinit { munmap(page, Self.size) }

  private static func map(
    _ file: CInt, _ protection: CInt
  ) throws(SystemError) -> UnsafeMutableRawPointer {
    let address = mmap(nil, size, protection, MAP_SHARED, file, 0)
    guard let address, address != MAP_FAILED else { throw SystemError("mmap", "") }
    return address
  }

  /// The present number. Cost: one load.
  public var value: UInt64 { number.pointee.load(ordering: .acquiring) }

  /// Raises the number to this value; a number that is larger already stays. Only the writer may
  /// call it.
  public func raise(to value: UInt64) {
    number.pointee.max(value, ordering: .acquiringAndReleasing)
  }
}

/// A descriptor with several owners: it is closed when the last of them is gone.
public final class SharedDescriptor: Sendable {
  /// The descriptor.
  public let value: Descriptor

  /// Takes ownership of the descriptor.
  public init(_ value: consuming Descriptor) { self.value = value }
}
