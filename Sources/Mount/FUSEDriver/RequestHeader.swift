import CFUSE
import Glibc
import PreferenceTree

/// Byte offsets in the messages of the kernel (linux/fuse.h).
enum MessageLayout {
  // fuse_in_header
  static let operation = 4
  static let number = 8
  static let node = 16
  static let user = 24
  static let thread = 32
  /// Where the operation's own part begins.
  static let body = 40

  // The own parts.
  /// The first number of LINK and RENAME: a node.
  static let secondNode = body
  /// fuse_write_in.size
  static let writtenCount = body + 16
  /// fuse_read_in.offset of a READDIRPLUS
  static let listingOffset = body + 8
  /// The name in a GETXATTR, behind fuse_getxattr_in.
  static let attributeName = body + 8
  /// fuse_init_in.flags and .flags2
  static let openingFlags = body + 12
  static let openingFlags2 = body + 16
  /// fuse_init_out.flags, behind fuse_out_header
  static let agreedFlags = 12
}

/// What a message from the kernel says of its request, read before libfuse takes the message apart.
struct RequestHeader {
  let operation: Operation
  /// The number of the request (C: unique), without the mark of one that is sent again.
  let number: UInt64
  /// Whether the kernel has sent the request before, to a driver that did not answer it
  /// (FUSE_UNIQUE_RESEND).
  let isResent: Bool
  let node: NodeID
  /// The user who made the request, in the user namespace of the mount.
  let user: uid_t
  /// The thread that made the request, in the process namespace of the mount; 0 if it is not known.
  let thread: pid_t
  private let message: UnsafeRawBufferPointer

  /// Reads the header of a message; nil if the message is too short.
  /// - Parameter buffer: the message, whose memory must outlive the header.
  init?(_ buffer: fuse_buf) {
    guard let memory = buffer.mem, buffer.size >= MessageLayout.body else { return nil }
    message = UnsafeRawBufferPointer(start: memory, count: buffer.size)
    operation = Operation(
      rawValue: message.loadUnaligned(fromByteOffset: MessageLayout.operation, as: UInt32.self))
    let unique = message.loadUnaligned(fromByteOffset: MessageLayout.number, as: UInt64.self)
    (number, isResent) = (unique & ~Self.resent, unique & Self.resent != 0)
    node = NodeID(
      rawValue: message.loadUnaligned(fromByteOffset: MessageLayout.node, as: UInt64.self))
    user = message.loadUnaligned(fromByteOffset: MessageLayout.user, as: uid_t.self)
    thread = message.loadUnaligned(fromByteOffset: MessageLayout.thread, as: pid_t.self)
  }

  private static let resent: UInt64 = 1 << 63

  /// How many bytes a WRITE writes; nil for other requests.
  var writtenCount: Int? {
    guard operation == .write else { return nil }
    return number(at: MessageLayout.writtenCount, as: UInt32.self).map(Int.init)
  }

  /// The cookie after which a READDIRPLUS goes on; nil for other requests.
  var listingOffset: UInt64? {
    guard operation == .readDirectoryPlus else { return nil }
    return number(at: MessageLayout.listingOffset, as: UInt64.self)
  }

  /// A node, or a name in it.
  typealias Subject = (node: NodeID, name: [UInt8]?)

  /// The nodes, or the names in them, whose values the request needs; empty for a request that
  /// needs none (FORGET, RELEASE).
  var subjects: [Subject] {
    if isForeignAttribute { return [] }
    guard let offset = Self.nameOffset(operation) else {
      return operation.isOfNode ? [(node, nil)] : []
    }
    guard let first = name(at: offset) else { return [] }
    guard operation.namesSecondNode,
      let second = number(at: MessageLayout.secondNode, as: UInt64.self)
    else { return [(node, first)] }
    // LINK needs the text of the node; RENAME the second name, in that directory.
    let other = operation == .link ? nil : name(at: offset + first.count + 1)
    return [(node, first), (NodeID(rawValue: second), other)]
  }

  /// Whether the request is a GETXATTR of an attribute that no file has: the kernel asks for
  /// security.capability before a write. The answer is in no list.
  private var isForeignAttribute: Bool {
    guard operation == .getAttribute, let name = name(at: MessageLayout.attributeName) else {
      return false
    }
    return !name.starts(with: Self.ownAttributes)
  }

  private static let ownAttributes = Array("user.".utf8)

  /// The byte at which the first name of an operation begins; nil for one without a name.
  private static func nameOffset(_ operation: Operation) -> Int? {
    switch operation {
    case .lookup, .symlink, .unlink, .removeDirectory: MessageLayout.body
    case .makeDirectory, .rename, .link: MessageLayout.body + 8
    case .makeNode, .create, .renameWithFlags: MessageLayout.body + 16
    default: nil
    }
  }

  /// Returns the number at the offset; nil if the message is too short.
  private func number<Number: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int, as type: Number.Type
  ) -> Number? {
    guard message.count >= offset + MemoryLayout<Number>.size else { return nil }
    return message.loadUnaligned(fromByteOffset: offset, as: type)
  }

  /// Returns the bytes from the offset up to the next NUL; nil if there is none.
  private func name(at offset: Int) -> [UInt8]? {
    guard offset < message.count, let end = message[offset...].firstIndex(of: 0) else { return nil }
    return Array(message[offset..<end])
  }
}
