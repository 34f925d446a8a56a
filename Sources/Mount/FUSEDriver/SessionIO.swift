import CFUSE
import Glibc

/// Makes the two system calls of a session in place of libfuse (fuse_session_custom_io), because
/// libfuse 3.14 does not ask the kernel for two flags:
/// - FUSE_HANDLE_KILLPRIV_V2: the kernel drops set-uid bits itself. It then asks for
///   security.capability only before the first write to a file whose attributes it has just learnt,
///   instead of before each write.
/// - FUSE_PARALLEL_DIROPS: without it the kernel sends one look-up or listing of a directory at a
///   time, so that one domain whose list hangs would hold back the names of all others.
///
/// Those of the two that the kernel has offered are added to the answer to FUSE_INIT on its way to
/// the kernel. Everything else passes unchanged.
enum SessionIO {
  /// FUSE_HAS_RESEND in the first byte of the second flags that the kernel offers.
  static let hasResend: UInt8 = 0x80
  private static let parallelDirectoryOperations: UInt32 = 1 << 18
  private static let handleKillprivV2: UInt32 = 1 << 28

  /// The session, and what it knows of its INIT. The loop's thread writes it. Other threads find
  /// `flagsToAdd` nil, because they send nothing before the INIT is answered.
  struct State {
    /// libfuse's session.
    var pointer = SessionPointer(nil)
    /// The flags to add to the reply to INIT: set when the request arrives, until the reply, which
    /// is the next message to the kernel.
    var flagsToAdd: UInt32?
    /// The INIT message, until it is answered.
    var opening: [UInt8] = []
    /// The requests under way, if the kernel cannot send them again.
    var outstanding: OutstandingRequests?
    /// Whether the next message to the kernel is dropped: the reply to an INIT that a predecessor
    /// has answered.
    var swallowsReply = false

    /// libfuse's session, for its functions.
    var raw: OpaquePointer? { pointer.raw }
  }

  static var table: fuse_custom_io {
    var table = fuse_custom_io()
    table.read = { descriptor, buffer, room, data in
      let count = read(descriptor, buffer, room)
      guard count >= MessageLayout.body, let buffer, let data else { return count }
      let driver = Unmanaged<Driver>.fromOpaque(data).takeUnretainedValue()
      let operation = Operation(
        rawValue: buffer.loadUnaligned(
          fromByteOffset: MessageLayout.operation, as: UInt32.self))
      driver.session.outstanding?.begin(
        buffer.loadUnaligned(fromByteOffset: MessageLayout.number, as: UInt64.self),
        needsAnswer: operation.needsAnswer)
      guard operation == .start, count >= MessageLayout.openingFlags + 4 else { return count }
      let flags = buffer.loadUnaligned(
        fromByteOffset: MessageLayout.openingFlags, as: UInt32.self)
      driver.session.opening = Array(UnsafeRawBufferPointer(start: buffer, count: count))
      driver.session.flagsToAdd =
        flags & (SessionIO.handleKillprivV2 | SessionIO.parallelDirectoryOperations)
      return count
    }
    table.writev = { descriptor, vectors, count, data in
      if let data, let vectors, count == 2 {
        let driver = Unmanaged<Driver>.fromOpaque(data).takeUnretainedValue()
        if driver.session.swallowsReply {
          return UnsafeBufferPointer(start: vectors, count: Int(count)).reduce(0) {
            $0 + Int($1.iov_len)
          }
        }
        if let flags = driver.session.flagsToAdd {
          driver.session.flagsToAdd = nil
          SessionIO.add(flags, to: vectors[1])
          defer { driver.keepOpening(driver.session.opening) }
          return writev(descriptor, vectors, count)
        }
      }
      let result = writev(descriptor, vectors, count)
      if result >= 0, let data, let header = vectors?.pointee.iov_base {
        let driver = Unmanaged<Driver>.fromOpaque(data).takeUnretainedValue()
        driver.session.outstanding?.end(
          header.loadUnaligned(fromByteOffset: MessageLayout.number, as: UInt64.self))
      }
      return result
    }
    return table
  }

  private static func add(_ added: UInt32, to vector: iovec) {
    guard let base = vector.iov_base, vector.iov_len >= MessageLayout.agreedFlags + 4 else {
      return
    }
    let flags = base.loadUnaligned(fromByteOffset: MessageLayout.agreedFlags, as: UInt32.self)
    base.storeBytes(
      of: flags | added, toByteOffset: MessageLayout.agreedFlags, as: UInt32.self)
  }
}
