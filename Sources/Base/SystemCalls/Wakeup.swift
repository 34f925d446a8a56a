import CLinux
import Glibc

/// Wakes up one thread that waits (eventfd(2)). Any thread may signal it; several signals before a
/// wait count as one.
public final class Wakeup: Sendable {
  private let descriptor: Descriptor

  /// Creates one without a signal. Fails where the process has no descriptors left.
  public init() throws(SystemError) {
    let number = eventfd(0, CInt(EFD_CLOEXEC) | CInt(EFD_NONBLOCK))
    if number < 0 { throw SystemError("eventfd", "") }
    descriptor = Descriptor(owning: number)
  }

  /// The descriptor for poll(2). It is readable after a signal.
  public var number: CInt { descriptor.number }

  /// Ends the wait, or the next one. Any thread may call it; it never blocks.
  public func signal() {
    var one: UInt64 = 1
    _ = write(descriptor.number, &one, 8)
  }

  /// Clears the signals, for loops that poll `number` themselves.
  public func clear() {
    var count: UInt64 = 0
    _ = read(descriptor.number, &count, 8)
  }

  /// Waits for a signal, or until the other descriptor can be read; then clears the signals. It
  /// waits at most until `deadline` (nil means for ever).
  /// - Parameter urgent: a descriptor that is waited for too, as proc(5) says when a table of its has
  ///   changed (POLLPRI).
  /// - Returns: whether that has happened.
  @discardableResult
  public func wait(until deadline: Instant?, or other: CInt = -1, urgent: CInt = -1) -> Bool {
    var entries = [descriptor.number, other].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    entries.append(pollfd(fd: urgent, events: Int16(POLLPRI), revents: 0))
    let timeout = deadline.map { CInt(clamping: $0.milliseconds(after: .now)) } ?? -1
    _ = poll(&entries, nfds_t(entries.count), timeout)
    clear()
    return entries[2].revents & Int16(POLLPRI) != 0
  }
}
