import Glibc
import SystemCalls

/// Tells that an address or a route of this machine has changed (rtnetlink(7)): a connection that
/// was made before may be dead, and a server that could not be reached may be there.
///
/// Threads: one. No call waits.
public final class NetworkWatch {
  private let descriptor: Descriptor

  /// RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE.
  private static let groups: UInt32 = 0x10 | 0x40 | 0x100 | 0x400

  /// Begins to watch. Throws where the kernel has no netlink(7), or this process may not use it.
  public init() throws(SystemError) {
    let type = CInt(SOCK_RAW.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
    let number = socket(AF_NETLINK, type, 0)
    if number < 0 { throw SystemError("socket", "netlink") }
    descriptor = Descriptor(owning: number)
    // A sockaddr_nl: family and padding, the port that the kernel chooses, groups.
    let words: [UInt32] = [UInt32(UInt16(AF_NETLINK).littleEndian), 0, Self.groups]
    let status = words.withUnsafeBytes { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { address in
        bind(number, address.baseAddress, socklen_t(bytes.count))
      }
    }
    if status != 0 { throw SystemError("bind", "netlink") }
  }

  /// The descriptor for poll(2). It is readable when something has changed.
  public var number: CInt { descriptor.number }

  /// Whether something has changed since the last call. What it was does not matter: a message that
  /// was lost because there were too many (ENOBUFS) is a change too.
  public func hasChanged() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 8192)
    var hasChanged = false
    // A machine whose network changes all the time does not hold up the caller.
    for _ in 0..<100 {
      let count = recv(descriptor.number, &buffer, buffer.count, 0)
      if count < 0, errno != ENOBUFS { break }
      hasChanged = true
    }
    return hasChanged
  }
}
