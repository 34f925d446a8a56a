import Glibc
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

// Receives the messages of a connection: in the thread of a caller that waits for an answer, else
// in the link's own thread.

extension Link {
  /// Receives messages until the body returns something, or lets the thread do so that is reading
  /// already. The body is called under the lock of the state.
  /// - Returns: nil at the deadline, and at the end of the connection.
  @discardableResult
  func receive<Result>(
    until deadline: Instant, _ body: (inout State) -> Result?
  ) -> Result? {
    state.withLock { $0.callers += 1 }
    defer {
      called.store(Instant.now.nanoseconds, ordering: .relaxed)
      state.withLock { $0.callers -= 1 }
    }
    while true {
      var found: Result?
      // Waits until there is something, or until no other thread is reading.
      let isOurs = state.wait(until: deadline) { state -> Bool? in
        found = body(&state)
        if found != nil || state.hasEnded { return false }
        guard !state.isReading else { return nil }
        state.isReading = true
        return true
      }
      guard isOurs == true, read(until: deadline) else { return found }
    }
  }

  /// Waits for messages and receives what has come. The caller has set `isReading`, which this call
  /// ends.
  /// - Returns: false if the deadline passed first.
  private func read(until deadline: Instant) -> Bool {
    var isInTime = true
    var progress = receive()
    if progress == .later {
      let start = Instant.now
      while progress == .later, Polling.looksAgain(since: start) { progress = receive() }
    }
    if progress == .later {
      isInTime = socket.value.wait(until: deadline)
      if isInTime { progress = receive() }
    }
    finishReading(hasEnded: progress == .ended)
    return isInTime
  }

  /// Receives the messages that have come, without waiting.
  private func receive() -> Socket.Progress {
    stream.withLock { stream in
      let progress = socket.value.receive(into: &stream.bytes)
      // Also where nothing came: the stream begins with what came after the greeting.
      do throws(ProtocolError) {
        if case .moved = progress {
          heard.store(Instant.now.nanoseconds, ordering: .relaxed)
        }
        while let frame = try stream.next() {
          if Message.mayIgnore(frame) { continue }
          let message = try Message(frame)
          accept(message, frame.number)
          // An owner that only reads gives the store up: it answers nothing more.
          if case .failed(let error) = message, error.reason == .ownerGone { return .ended }
        }
        return progress
      } catch {
        return .ended
      }
    }
  }

  /// Passes a message on: an answer to the caller or body that waits for it, a notice to
  /// `received`.
  private func accept(_ message: Message, _ number: UInt64) {
    if case .working(let request) = message { return note(workAt: request) }
    guard number != 0 else { return received(message) }
    let body = state.withLock { state in
      let body = state.bodies.removeValue(forKey: number)?.call
      if body == nil, let index = state.calls.firstIndex(where: { $0.number == number }) {
        state.calls[index].answer = message
      }
      return body
    }
    body?(message)
  }

  /// Notes that the owner works at a request, and may carry it out for the next 5 s.
  private func note(workAt request: UInt64) {
    state.withLock { state in
      guard let index = state.calls.firstIndex(where: { $0.number == request }) else { return }
      state.calls[index].workedAtUntil = Patience.end
    }
  }

  /// Lets another thread read.
  private func finishReading(hasEnded: Bool) {
    state.change { $0.isReading = false }
    if hasEnded, finish() { ended() }
  }

  /// Notes that the connection has ended: wakes the callers, and calls the bodies of the requests
  /// that were sent with nil.
  /// - Returns: whether it had not ended before.
  @discardableResult
  func finish() -> Bool {
    let bodies = state.change { state -> [@Sendable (Message?) -> Void]? in
      guard !state.hasEnded else { return nil }
      state.hasEnded = true
      // Or the set's descriptor would stay readable because of this socket.
      state.receiver?.remove(socket.value.number)
      defer { state.bodies = state.bodies.filter { !$0.value.isSent } }
      return state.bodies.values.filter(\.isSent).map(\.call)
    }
    for body in bodies ?? [] { body(nil) }
    return bodies != nil
  }

  /// The link's own thread: receives messages while no caller does.
  ///
  /// After a call, and between messages that follow each other closely, it sleeps for a moment in
  /// place of waiting for the socket. Else each message would wake it, and it would take processor
  /// time from the processes that communicate. A read is not delayed: its thread is a caller, and
  /// receives messages itself.
  func run() {
    var pause = Self.shortestPause
    var pauseInRow: UInt32 = 0
    while !hasEnded {
      if isBusy {
        Instant.sleep(microseconds: pause)
        pause = min(pause * 2, Self.longestPause)
        continue
      }
      pause = Self.shortestPause
      let last = heard.load(ordering: .relaxed)
      if pauseInRow == 0 {
        _ = socket.value.wait(until: nil)
      } else {
        Instant.sleep(microseconds: pauseInRow)
      }
      let isRow = pauseInRow > 0 || Instant.now.nanoseconds - last < Self.calm
      let mayPause = receiveIfFree() && isRow
      pauseInRow = mayPause ? min(max(pauseInRow * 2, Self.shortestPause), Self.longestInRow) : 0
    }
  }

  /// Whether callers receive the messages, or did so a moment ago.
  private var isBusy: Bool {
    state.withLock { $0.callers > 0 }
      || Instant.now.nanoseconds - called.load(ordering: .relaxed) < Self.calm
  }

  /// Receives what has come, unless another thread receives.
  /// - Returns: whether something had come.
  @discardableResult
  func receiveIfFree() -> Bool {
    let isOurs = state.withLock { state in
      guard !state.isReading, state.callers == 0, !state.hasEnded else { return false }
      state.isReading = true
      return true
    }
    guard isOurs else { return false }
    let progress = receive()
    finishReading(hasEnded: progress == .ended)
    if case .moved = progress { return true }
    return false
  }

  /// Microseconds between two looks at whether callers are still active; doubled after each look,
  /// up to `longestPause`.
  private static let shortestPause: UInt32 = 200
  private static let longestPause: UInt32 = 5000
  /// The most microseconds for which a message waits because others came just before it.
  private static let longestInRow: UInt32 = 1000
  /// Nanoseconds after the last call until the row of calls counts as over; also those between two
  /// messages that follow each other closely.
  private static let calm: Int64 = 300_000
}
