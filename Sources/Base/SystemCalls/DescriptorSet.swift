import CLinux
import Glibc

/// Descriptors that are waited for as one: the set's own descriptor can be read while any of them
/// can (epoll(7)). Any thread may add and remove.
public final class DescriptorSet: Sendable {
  private let descriptor: Descriptor

  /// Creates an empty set. Fails where the process has no descriptors left.
  public init() throws(SystemError) {
    let number = epoll_create1(CInt(prefsfs_epoll_cloexec))
    if number < 0 { throw SystemError("epoll_create1", "") }
    descriptor = Descriptor(owning: number)
  }

  /// The descriptor for poll(2).
  public var number: CInt { descriptor.number }

  /// Adds a descriptor, which leaves the set when it is closed.
  public func add(_ other: CInt) throws(SystemError) {
    var event = epoll_event()
    event.events = prefsfs_epoll_in
    if epoll_ctl(number, EPOLL_CTL_ADD, other, &event) != 0 { throw SystemError("epoll_ctl", "") }
  }

  /// Removes a descriptor; does nothing for one that is not in the set.
  public func remove(_ other: CInt) {
    var event = epoll_event()
    _ = epoll_ctl(number, EPOLL_CTL_DEL, other, &event)
  }
}
