import CLinux
import Glibc

/// A stream between two processes of one machine (unix(7)). All calls except `wait` return at once.
public struct Socket: ~Copyable, Sendable {
  private let descriptor: Descriptor

  private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// The descriptor for poll(2).
  public var number: CInt { descriptor.number }

  private static func make() throws(SystemError) -> Descriptor {
    let type = CInt(SOCK_STREAM.rawValue) | prefsfs_sock_cloexec | prefsfs_sock_nonblock
    let number = socket(AF_UNIX, type, 0)
    if number < 0 { throw SystemError("socket", "") }
    return Descriptor(owning: number)
  }

  /// Creates a socket at the path for others to connect to, with mode 0600. It replaces a file that
  /// is there already. Until the mode is set, only the mode of the directory keeps other users out.
  public static func listening(at path: String) throws(SystemError) -> Socket {
    let made = try make()
    try Files.remove(path)
    let status = try withAddress(path) { bind(made.number, $0, $1) }
    if status != 0 { throw SystemError("bind", path) }
    if chmod(path, 0o600) != 0 { throw SystemError("chmod", path) }
    if listen(made.number, 128) != 0 { throw SystemError("listen", path) }
    return Socket(made)
  }

  /// Connects to the socket at the path; nil where no process listens there, or where it has as
  /// many waiting connections as it can queue.
  public static func connected(to path: String) throws(SystemError) -> Socket? {
    do throws(SystemError) {
      return try connect(to: path)
    } catch  where absence.contains(error.errno) {
      return nil
    }
  }

  /// Why connect(2) fails where no process listens, or too many others wait.
  private static let absence: [Errno] = [
    .noSuchFile, .notDirectory, Errno(rawValue: ECONNREFUSED), .wouldBlock,
  ]

  private static func connect(to path: String) throws(SystemError) -> Socket {
    let made = try make()
    let status = try withAddress(path) { address, size in
      systemCall("connect", path) { Glibc.connect(made.number, address, size) }
    }
    if status != 0 { throw SystemError("connect", path) }
    return Socket(made)
  }

  /// Creates two connected sockets, for tests.
  public static func pair() throws(SystemError) -> (SharedSocket, SharedSocket) {
    var numbers: [CInt] = [-1, -1]
    let type = CInt(SOCK_STREAM.rawValue) | prefsfs_sock_cloexec | prefsfs_sock_nonblock
    if socketpair(AF_UNIX, type, 0, &numbers) != 0 { throw SystemError("socketpair", "") }
    return (
      SharedSocket(Socket(Descriptor(owning: numbers[0]))),
      SharedSocket(Socket(Descriptor(owning: numbers[1])))
    )
  }

  /// Calls the body with the address of a path. A path that is too long for an address (107 bytes)
  /// is named by a descriptor of its directory instead.
  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) throws(SystemError) -> Result {
    var address = sockaddr_un()
    let room = MemoryLayout.size(ofValue: address.sun_path)
    if path.utf8.count >= room, path.hasPrefix("/"), !path.hasPrefix("/proc/self/fd/") {
      let parent = Files.parent(of: path)
      let directory = try Descriptor(opening: parent, prefsfs_o_path | O_DIRECTORY)
      let name = path.dropFirst(parent.count + (parent == "/" ? 0 : 1))
      return try withAddress("/proc/self/fd/\(directory.number)/\(name)", body)
    }
    guard path.utf8.count < room else { throw SystemError("socket", path, .nameTooLong) }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// Accepts the next connection; nil where none waits.
  public func accept() throws(SystemError) -> Socket? {
    let number = prefsfs_accept(descriptor.number)
    if number >= 0 { return Socket(Descriptor(owning: number)) }
    switch Errno.current {
    case .wouldBlock, .interrupted, Errno(rawValue: ECONNABORTED): return nil
    default: throw SystemError("accept", "")
    }
  }

  /// The user and the process at the other end, as the kernel knows them; nil where it does not
  /// tell.
  public var peer: (user: uid_t, process: pid_t)? {
    var credentials = prefsfs_ucred()
    var size = socklen_t(MemoryLayout.size(ofValue: credentials))
    guard getsockopt(number, SOL_SOCKET, prefsfs_so_peercred, &credentials, &size) == 0 else {
      return nil
    }
    return (credentials.uid, credentials.pid)
  }

  /// The result of a call that moves bytes.
  public enum Progress: Equatable, Sendable {
    /// That many bytes were moved.
    case moved(Int)
    /// Nothing was moved: there is no room, or nothing to receive, at the moment.
    case later
    /// The other end is gone, or the call failed.
    case ended
  }

  /// Sends as many of the bytes as there is room for.
  public func send(_ bytes: ArraySlice<UInt8>) -> Progress {
    let count = bytes.withUnsafeBytes { buffer in
      systemCall("send", "") {
        Glibc.send(number, buffer.baseAddress, buffer.count, CInt(MSG_NOSIGNAL))
      }
    }
    return Self.progress(count)
  }

  /// Sends as many of the bytes as there is room for, and with the first of them a descriptor. The
  /// other end gets a copy of it.
  public func send(_ bytes: [UInt8], with file: borrowing Descriptor) -> Progress {
    let file = file.number
    let count = bytes.withUnsafeBytes { buffer in
      systemCall("sendmsg", "") {
        prefsfs_send_descriptor(number, buffer.baseAddress, buffer.count, file)
      }
    }
    return Self.progress(count)
  }

  /// The most bytes that are received at once.
  private static let piece = 1 << 16

  /// Appends the bytes that have come, at most 64 KiB at once. A descriptor that came with them is
  /// put into `file`. Cost: one system call, and an allocation where the array has no room for 64
  /// KiB more. A caller that keeps its array, and empties it, mostly needs none.
  public func receive(
    into bytes: inout [UInt8], _ file: inout SharedDescriptor?
  ) -> Progress {
    var came: CInt = -1
    let progress = receive(into: &bytes, descriptor: &came)
    if came >= 0 { file = SharedDescriptor(Descriptor(owning: came)) }
    return progress
  }

  /// Appends the bytes that have come. Descriptors that came with them are left to the kernel: this
  /// process gets none, and so need not close(2) one, which waits where its file system hangs.
  public func receive(into bytes: inout [UInt8]) -> Progress {
    receive(into: &bytes, descriptor: nil)
  }

  private func receive(
    into bytes: inout [UInt8], descriptor: UnsafeMutablePointer<CInt>?
  ) -> Progress {
    var count = 0
    // The memory of a long message is given back.
    if bytes.isEmpty, bytes.capacity > 2 * Self.piece { bytes = [] }
    bytes.append(addingCapacity: Self.piece) { output in
      output.withUnsafeMutableBufferPointer { buffer, filled in
        count = systemCall("recvmsg", "") {
          prefsfs_receive(number, buffer.baseAddress, buffer.count, descriptor)
        }
        filled += max(count, 0)
      }
    }
    return count == 0 ? .ended : Self.progress(count)
  }

  private static func progress(_ count: Int) -> Progress {
    if count >= 0 { return .moved(count) }
    return Errno.current == .wouldBlock ? .later : .ended
  }

  /// Waits until there is something to receive or, with `sending`, room to send. A deadline of nil
  /// is none.
  /// - Returns: false where the deadline passed first. After a signal it may return true too early.
  public func wait(until deadline: Instant?, sending: Bool = false) -> Bool {
    var entry = pollfd(fd: number, events: Int16(sending ? POLLOUT : POLLIN), revents: 0)
    let timeout = deadline.map { CInt(clamping: $0.milliseconds(after: .now)) } ?? -1
    return poll(&entry, 1, timeout) != 0
  }

  /// Stops the other end from sending. What it sent before can still be received.
  public func endReceiving() { shutdown(number, CInt(SHUT_RD)) }

  /// Ends both directions, and wakes threads in `wait` at both ends.
  public func end() { shutdown(number, CInt(SHUT_RDWR)) }
}

/// A socket with several owners.
public final class SharedSocket: Sendable {
  /// The socket.
  public let value: Socket

  /// Takes ownership of the socket.
  public init(_ value: consuming Socket) { self.value = value }
}
