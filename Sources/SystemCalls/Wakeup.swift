import CLinux
import Glibc

/// A bell that one thread waits for and any thread rings (eventfd(2)). Rings before a wait, or
/// several of them, are one.
public final class Wakeup: Sendable {
  private let descriptor: Descriptor

  /// Makes a silent bell. Fails when the process has no descriptors left.
  public init() throws(SystemError) {
    let number = eventfd(0, CInt(EFD_CLOEXEC) | CInt(EFD_NONBLOCK))
    if number < 0 { throw SystemError("eventfd", "") }
    descriptor = Descriptor(owning: number)
  }

  /// For poll(2): readable when the bell has been rung.
  public var number: CInt { descriptor.number }

  /// Rings. Any thread; never blocks.
  public func ring() {
    var one: UInt64 = 1
    _ = write(descriptor.number, &one, 8)
  }

  /// Takes back what was rung; for loops that poll `number` themselves.
  public func clear() {
    var count: UInt64 = 0
    _ = read(descriptor.number, &count, 8)
  }

  /// Waits for a ring, or until the other descriptor can be read, at most until `deadline` (nil:
  /// for ever), and clears the ring.
  public func wait(until deadline: Instant?, or other: CInt = -1) {
    var entries = [descriptor.number, other].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let timeout = deadline.map { CInt(clamping: $0.milliseconds(after: .now)) } ?? -1
    _ = poll(&entries, nfds_t(entries.count), timeout)
    clear()
  }
}
