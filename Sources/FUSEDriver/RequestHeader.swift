import CFUSE
import Glibc
import PreferenceModel
import PreferenceTree

/// The header of a message from the kernel, read before libfuse takes the message apart
/// (linux/fuse.h, fuse_in_header): the operation is at byte 4, the number of the request at byte 8,
/// the node at byte 16, the thread at byte 32; the operation's own part begins at byte 40.
struct RequestHeader {
  let opcode: UInt32
  /// The number of the request (C: unique), without the mark of one that is sent again.
  let number: UInt64
  /// Whether the kernel has sent the request before, to a driver that did not answer it
  /// (FUSE_UNIQUE_RESEND).
  let isResent: Bool
  let node: NodeID
  /// The thread that made the request.
  let thread: pid_t
  private let message: UnsafeRawBufferPointer

  private static let size = 40

  /// Reads the header of a message; nil if the message is too short.
  /// - Parameter buffer: the message, whose memory must outlive the header.
  init?(_ buffer: fuse_buf) {
    guard let memory = buffer.mem, buffer.size >= Self.size else { return nil }
    message = UnsafeRawBufferPointer(start: memory, count: buffer.size)
    opcode = message.loadUnaligned(fromByteOffset: 4, as: UInt32.self)
    let unique = message.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    (number, isResent) = (unique & ~Self.resent, unique & Self.resent != 0)
    node = NodeID(rawValue: message.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    thread = message.loadUnaligned(fromByteOffset: 32, as: pid_t.self)
  }

  private static let resent: UInt64 = 1 << 63

  /// Whether the request is a LOOKUP.
  var isLookup: Bool { opcode == 1 }

  /// Whether the request reads or writes the contents of its node: READ, WRITE.
  var touchesContents: Bool { opcode == 15 || opcode == 16 }

  /// How many bytes a WRITE writes; nil for other requests.
  var writtenCount: Int? {
    guard opcode == 16, message.count >= Self.size + 20 else { return nil }
    return Int(message.loadUnaligned(fromByteOffset: Self.size + 16, as: UInt32.self))
  }

  /// The cookie after which a READDIR or READDIRPLUS goes on; nil for other requests.
  var listingOffset: UInt64? {
    guard opcode == 28 || opcode == 44, message.count >= Self.size + 16 else { return nil }
    return message.loadUnaligned(fromByteOffset: Self.size + 8, as: UInt64.self)
  }

  /// Whether the request would change something: SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR,
  /// RENAME, LINK, WRITE, SETXATTR, REMOVEXATTR, CREATE, RENAME2.
  var isChange: Bool { Self.has(Self.changing, opcode) }

  /// Whether the request is a SETATTR, which changes nothing in the store at first if it truncates
  /// the file.
  var isTruncation: Bool { opcode == 4 }

  /// The nodes, or the names in them, whose values the request needs; empty for a request that
  /// needs none (FORGET, RELEASE).
  var subjects: [(node: NodeID, name: [UInt8]?)] {
    if isForeignAttribute { return [] }
    if let offset = Self.nameOffset(opcode) {
      guard let first = name(at: offset) else { return [] }
      guard Self.has(Self.naming, opcode) else { return [(node, first)] }
      let other = NodeID(
        rawValue: message.loadUnaligned(fromByteOffset: Self.size, as: UInt64.self))
      // LINK needs the text of the node; RENAME the second name, in that directory.
      let second = opcode == Self.link ? nil : name(at: offset + first.count + 1)
      return [(node, first), (other, second)]
    }
    return Self.has(Self.ofNodes, opcode) ? [(node, nil)] : []
  }

  /// Whether the request is a GETXATTR of an attribute that no file has: the kernel asks for
  /// security.capability before a write. The answer is in no list.
  private var isForeignAttribute: Bool {
    guard opcode == 22, let name = name(at: Self.size + 8) else { return false }
    return !name.starts(with: Self.ownAttributes)
  }

  private static let ownAttributes = Array("user.".utf8)

  // Sets of operations: the bits of their numbers, which are looked at for each request.
  private static let changing = bits([4, 6, 8, 9, 10, 11, 12, 13, 16, 21, 24, 35, 45])
  /// The operations whose own part begins with a second node: RENAME, LINK, RENAME2.
  private static let naming = bits([12, 13, 45])
  /// The operations on a node: GETATTR, SETATTR, READ, WRITE, FSYNC, SETXATTR, GETXATTR, LISTXATTR,
  /// REMOVEXATTR, OPENDIR, READDIR, READDIRPLUS.
  private static let ofNodes = bits([3, 4, 15, 16, 20, 21, 22, 23, 24, 27, 28, 44])
  private static let link: UInt32 = 13

  private static func bits(_ operations: [UInt64]) -> UInt64 {
    operations.reduce(0) { $0 | 1 << $1 }
  }

  private static func has(_ set: UInt64, _ operation: UInt32) -> Bool {
    operation < 64 && set >> UInt64(operation) & 1 != 0
  }

  /// The byte at which the first name of an operation begins; nil for one without a name.
  private static func nameOffset(_ operation: UInt32) -> Int? {
    switch operation {
    // LOOKUP, SYMLINK, UNLINK, RMDIR.
    case 1, 6, 10, 11: size
    // MKDIR, RENAME, LINK.
    case 9, 12, 13: size + 8
    // MKNOD, CREATE, RENAME2.
    case 8, 35, 45: size + 16
    default: nil
    }
  }

  /// Returns the bytes from the offset up to the next NUL; nil if there is none.
  private func name(at offset: Int) -> [UInt8]? {
    guard offset < message.count, let end = message[offset...].firstIndex(of: 0) else { return nil }
    return Array(message[offset..<end])
  }
}
