import CLinux
import Glibc
import Synchronization

/// A number in memory that one process writes and others read, without a system call (memfd_create(2),
/// mmap(2)).
///
/// The writer hands the descriptor to the readers, who can change nothing: the memory is sealed
/// against growing, shrinking and later writable mappings. It lives as long as anybody has it.
public final class SharedNumber: @unchecked Sendable {
  // The page is touched through an atomic alone, and stays mapped as long as this object lives.
  private let page: UnsafeMutableRawPointer
  private let number: UnsafeMutablePointer<Atomic<UInt64>>
  /// What readers get; nil at a reader's.
  public let descriptor: SharedDescriptor?

  private static let size = 4096

  /// A new number, 0. Fails when the process has no descriptors or memory left.
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

  /// Somebody else's number. Fails when the descriptor is none that `init()` made.
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

  /// The number now. Cost: one load.
  public var value: UInt64 { number.pointee.load(ordering: .acquiring) }

  /// Makes it the number, unless it is larger already. The writer's alone.
  public func raise(to value: UInt64) {
    number.pointee.max(value, ordering: .acquiringAndReleasing)
  }
}

/// A descriptor with several owners: closed with the last of them.
public final class SharedDescriptor: Sendable {
  /// The descriptor.
  public let value: Descriptor

  /// Takes it over.
  public init(_ value: consuming Descriptor) { self.value = value }
}
