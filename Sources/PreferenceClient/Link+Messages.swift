import Glibc
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

// Who takes the messages of a connection: a caller who waits for one of them, else its own thread.

extension Link {
  /// Takes messages until one is the answer that is waited for.
  func receive(
    until deadline: Instant?, _ answer: (inout State) -> Message?
  ) -> Message? {
    state.withLock { $0.callers += 1 }
    defer { endCall() }
    while true {
      // Either the answer is there, or the stream is ours.
      let turn = state.wait(until: deadline) { state -> Turn? in
        if let message = answer(&state) { return .answered(message) }
        if state.hasEnded { return .over }
        guard !state.isReading else { return nil }
        state.isReading = true
        return .reading
      }
      switch turn {
      case .answered(let message): return message
      case .over, nil: return nil
      case .reading: if !read(until: deadline) { return nil }
      }
    }
  }

  private func endCall() {
    called.store(Instant.now.nanoseconds, ordering: .relaxed)
    state.withLock { $0.callers -= 1 }
  }

  private enum Turn {
    case answered(Message)
    case reading
    case over
  }

  /// Takes messages until a change is known to this process.
  func catchUp(until deadline: Instant, _ isReached: () -> Bool) {
    state.withLock { $0.callers += 1 }
    defer { endCall() }
    while !isReached() {
      let isOurs = state.wait(until: deadline) { state -> Bool? in
        if state.hasEnded || isReached() { return false }
        guard !state.isReading else { return nil }
        state.isReading = true
        return true
      }
      guard isOurs == true, read(until: deadline) else { return }
    }
  }

  /// Takes what has come, having waited for it; the stream is free afterwards.
  /// - Returns: false when the deadline passed.
  private func read(until deadline: Instant?) -> Bool {
    var isInTime = true
    var progress = receive()
    if progress == .later {
      let patience = Instant.now.advanced(microseconds: Self.patience)
      while progress == .later, Instant.now < patience { progress = receive() }
    }
    if progress == .later {
      isInTime = socket.value.wait(until: deadline)
      if isInTime { progress = receive() }
    }
    finishReading(hasEnded: progress == .ended)
    return isInTime
  }

  /// Microseconds that a caller asks again and again for before he sleeps: see ReceiveLoop.
  private static let patience: Int64 = 60

  private func receive() -> Socket.Progress {
    stream.withLock { stream in
      var file: SharedDescriptor?
      let progress = socket.value.receive(into: &stream.bytes, &file)
      // Also where nothing came: the greeting may have left something.
      do throws(ProtocolError) {
        if case .moved = progress {
          heard.store(Instant.now.nanoseconds, ordering: .relaxed)
        }
        while let frame = try stream.next() { accept(try Message(frame), frame.number) }
        return progress
      } catch {
        return .ended
      }
    }
  }

  private func accept(_ message: Message, _ number: UInt64) {
    guard number != 0 else { return received(message) }
    let body = state.withLock { state in
      let body = state.bodies.removeValue(forKey: number)
      if body == nil, state.answers[number] != nil { state.answers[number] = message }
      return body
    }
    body?(message)
  }

  private func finishReading(hasEnded: Bool) {
    state.change { $0.isReading = false }
    if hasEnded, finish() { ended() }
  }

  /// Nothing comes any more: whoever waits hears of it.
  /// - Returns: whether that is news.
  @discardableResult
  func finish() -> Bool {
    let bodies = state.change { state -> [@Sendable (Message?) -> Void]? in
      guard !state.hasEnded else { return nil }
      state.hasEnded = true
      defer { state.bodies = [:] }
      return Array(state.bodies.values)
    }
    for body in bodies ?? [] { body(nil) }
    return bodies != nil
  }

  /// While nobody calls. After a call it stays away from the stream for a moment: in a row of calls it
  /// would be woken for each message, and take a processor from those who talk.
  func run() {
    var pause = Self.shortestPause
    while !hasEnded {
      let isBusy =
        state.withLock { $0.callers > 0 }
        || Instant.now.nanoseconds - called.load(ordering: .relaxed) < Self.calm
      if isBusy {
        Instant.sleep(microseconds: pause)
        pause = min(pause * 2, Self.longestPause)
        continue
      }
      pause = Self.shortestPause
      _ = socket.value.wait(until: nil)
      let isOurs = state.withLock { state in
        guard !state.isReading, state.callers == 0, !state.hasEnded else { return false }
        state.isReading = true
        return true
      }
      if isOurs { finishReading(hasEnded: receive() == .ended) }
    }
  }

  /// Microseconds.
  private static let shortestPause: UInt32 = 200
  private static let longestPause: UInt32 = 5000
  /// Nanoseconds since the last call after which it is received for the last of its row.
  private static let calm: Int64 = 300_000
}
