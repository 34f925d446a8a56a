import PreferenceProtocol
import Synchronization
import SystemCalls

// Sends requests through memory that the owner reads too (`SharedRing`), without a system call
// unless the owner has to be woken.

extension Link {
  /// Sends a request as `post` does, through the ring. The owner carries it out before whatever is
  /// sent later, and also if this process has ended by then. One thread at a time may call it.
  ///
  /// The first call makes the ring. Where there is no memory for one, or several owners in a row
  /// could not use it, requests go through the socket. A request that returned `.sent` while the
  /// owner was about to end may not have reached it: its body is called with nil then. After
  /// `.ended` the body is called too, because the owner may have carried the request out before its
  /// end.
  func postInRing(
    _ request: Request, until deadline: Instant,
    then body: @escaping @Sendable (Message?) -> Void
  ) -> Transmission {
    guard let ring = state.withLock({ $0.ring }) ?? makeRing(until: deadline) else {
      return post(request, until: deadline, then: body)
    }
    return post(request, body, keepsBody: true) { write($0, to: ring, until: deadline) }
  }

  /// How many connections in a row have ended before their owner had answered anything in the ring,
  /// in this process. An owner that has no memory or descriptors left ends the connection.
  private static let failures = Atomic<Int>(0)
  private static let mostFailures = 3

  /// Notes that an answer to a request has come, or that the connection has ended.
  static func noteRing(_ state: inout State, isOver: Bool) {
    guard state.ring != nil, !state.isRingRead else { return }
    if isOver {
      failures.add(1, ordering: .relaxed)
    } else {
      state.isRingRead = true
      failures.store(0, ordering: .relaxed)
    }
  }

  private func makeRing(until deadline: Instant) -> SharedRing? {
    guard Self.failures.load(ordering: .relaxed) < Self.mostFailures,
      let ring = try? SharedRing(),
      transmit(Request.ring.frame(0), with: ring.descriptor, until: deadline) == .sent
    else { return nil }
    state.withLock { $0.ring = ring }
    return ring
  }

  /// Writes the frame, and waits for room where the ring is full.
  private func write(
    _ frame: [UInt8], to ring: SharedRing, until deadline: Instant
  ) -> Transmission {
    var rest = frame[...]
    var pause = Self.shortestWait
    while true {
      rest = rest.dropFirst(ring.write(rest))
      // What is in the ring cannot be taken back, so an owner that cannot be woken gets it later.
      if ring.mustWake(), transmit(Request.look.frame(0), until: deadline) == .ended {
        return .ended
      }
      if rest.isEmpty { return .sent }
      guard !hasEnded else { return .ended }
      guard Instant.now < deadline else {
        // If only a part of the frame was written, the connection is of no more use.
        if rest.count < frame.count { socket.value.end() }
        return .late
      }
      Instant.sleep(microseconds: pause)
      pause = min(pause * 2, Self.longestWait)
    }
  }

  /// Microseconds between two looks at whether there is room in the ring; doubled after each look.
  private static let shortestWait: UInt32 = 50
  private static let longestWait: UInt32 = 2000
}
