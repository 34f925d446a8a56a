import CFUSE
import CLinux
import Glibc
import SystemCalls

/// Receives requests and serves them, one after the other.
///
/// Waking a sleeping thread can cost more than most requests, so after a request the loop polls the
/// descriptor for a while before it sleeps in poll(2): see `Polling`.
struct ReceiveLoop: ~Copyable {
  private let driver: Driver
  private let descriptor: CInt
  private let signals: Descriptor
  private var tidying = Memory.Tidying()
  /// Whether something was done since the loop slept last.
  private var hasWorked = true
  /// Nanoseconds after which signals, notices and timers are looked at, however many requests come.
  private static let longestStream: Int64 = 1_000_000

  init(_ driver: Driver) throws(SystemError) {
    self.driver = driver
    descriptor = fuse_session_fd(driver.session.raw)
    let flags = fcntl(descriptor, F_GETFL)
    if fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 {
      throw SystemError("fcntl", "/dev/fuse")
    }
    var set = Self.signalSet
    let number = signalfd(-1, &set, CInt(SFD_CLOEXEC) | CInt(SFD_NONBLOCK))
    if number < 0 { throw SystemError("signalfd", "") }
    signals = Descriptor(owning: number)
  }

  /// The signals that end a mount cleanly, and the one that asks for an upgrade (SIGUSR2).
  static var signalSet: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in [SIGTERM, SIGINT, SIGHUP, SIGUSR2] { sigaddset(&set, signal) }
    return set
  }

  /// Serves requests until the mount is gone, a signal asks for the end, or `isDone` returns true.
  /// Throws if the kernel's requests cannot be read.
  /// - Parameter drains: whether signals are ignored, because the end has begun.
  mutating func run(drains: Bool = false, until isDone: () -> Bool) throws(SystemError) {
    let session = driver.session.raw
    var buffer = fuse_buf()
    defer { free(buffer.mem) }
    // First, what a driver has to do that goes on for another one: nobody may ask for anything.
    if look(), !drains { return }
    var lastLook = Instant.now
    var lastRequest = lastLook
    while fuse_session_exited(session) == 0, !isDone() {
      let result = fuse_session_receive_buf(session, &buffer)
      var now = Instant.now
      switch result {
      case 1...:
        lastRequest = now
        driver.admit(&buffer, now)
      case 0, -ENODEV: return
      case -EAGAIN:
        if driver.receiveNews() {
          lastRequest = now
          if driver.mailbox.isEmpty { continue }
          lastLook = Instant(nanoseconds: 0)
        } else if driver.gate.hasNews {
          lastLook = Instant(nanoseconds: 0)
        } else {
          guard !Polling.looksAgain(since: lastRequest, now: now) else { continue }
          if !sleep() { lastLook = Instant(nanoseconds: 0) }
          now = .now
        }
      case -EINTR: continue
      default: throw SystemError("read", "/dev/fuse", Errno(rawValue: -result))
      }
      // A stream of requests must not starve signals, notices and timers.
      guard now.nanoseconds(after: lastLook) > Self.longestStream else { continue }
      lastLook = now
      if look(), !drains { return }
    }
  }

  /// What the loop waits for: a request, the wake-up, a signal, the line to the guard, the owner of
  /// the store.
  private var awaited: [pollfd] {
    [
      descriptor, driver.mailbox.wakeup.number, signals.number,
      driver.takeover.line?.descriptor ?? -1,
      driver.store.services.noticeDescriptor,
    ]
    .map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  }

  /// Sleeps until there is something to do. After a moment in which nothing came, memory that was
  /// freed is given back.
  /// - Returns: whether there is a request, and nothing else.
  private mutating func sleep() -> Bool {
    if hasWorked { tidying.note(.now) }
    let deadlines = [
      driver.nextTick, driver.heldReplies.deadline, driver.gate.deadline,
      driver.takeover.line?.deadline, driver.pending.announcements?.until,
      driver.takeover.saved?.idleDeadline, driver.takeover.upgrade?.deadline, tidying.due,
    ]
    let deadline = deadlines.compactMap { $0 }.min()
    let timeout = deadline.map { CInt(clamping: $0.milliseconds(after: .now)) } ?? -1
    var entries = awaited
    let count = poll(&entries, nfds_t(entries.count), timeout)
    hasWorked = count != 0
    if !hasWorked { tidying.attempt(.now) }
    return count == 1 && entries[0].revents != 0
  }

  /// Handles held requests, notices, timers and signals, as far as there are any.
  /// - Returns: whether a signal asks for the end.
  private func look() -> Bool {
    var entries = awaited
    _ = poll(&entries, nfds_t(entries.count), 0)
    if entries[1].revents != 0 { driver.mailbox.wakeup.clear() }
    if entries[4].revents != 0 { driver.store.services.receiveNotices() }
    let looked = driver.mailbox.awaitsMissed ? nil : Timestamp.now
    driver.runTimers(now: .now)
    if let looked { driver.takeover.saved?[.looked] = UInt64(clamping: looked.nanoseconds) }
    driver.gate.serveHeld(driver, .now)
    if driver.takeover.saved?.idleDeadline.map({ $0 <= .now }) == true { driver.save() }
    if entries[3].revents != 0, driver.takeover.line?.receive() == true { driver.beginHandover() }
    driver.takeover.line?.replace()
    return entries[2].revents != 0 && readSignal()
  }

  /// - Returns: whether the signal asks for the end.
  private func readSignal() -> Bool {
    var information = signalfd_siginfo()
    guard read(signals.number, &information, MemoryLayout.size(ofValue: information)) > 0 else {
      return false
    }
    guard information.ssi_signo == UInt32(SIGUSR2) else { return true }
    driver.takeover.line?.askForUpgrade()
    return false
  }
}

/// Blocks the signals that end a mount, so that the loop receives them. Call it before any thread
/// is started, because a thread inherits the mask.
public func blockEndingSignals() {
  var set = ReceiveLoop.signalSet
  pthread_sigmask(SIG_BLOCK, &set, nil)
}
