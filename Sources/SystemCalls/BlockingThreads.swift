/// Threads for work that may wait for a long time, or for ever: reading a file of a hung file system, for instance.
///
/// Promises: `run` never waits. A body gets a thread of its own; a thread that is done waits 2 s for the next body
/// and then ends. Bodies begin in the order in which they were given and may overtake each other after that.
/// Nobody waits for them at the end of the process.
///
/// Threads: any. One lock, for a look; no body is called under it.
public final class BlockingThreads: Sendable {
  /// What a thread carries out.
  public typealias Body = @Sendable () -> Void

  private struct State {
    var waiting: [(number: UInt64, body: Body)] = []
    var lastNumber: UInt64 = 0
    var idle = 0
    var count = 0
  }

  private let name: String
  private let most: Int
  private let state = Monitor(State())

  /// Milliseconds that a thread waits for its next body.
  private static let patience: Int64 = 2000

  /// - Parameters:
  ///   - name: the threads' (at most 15 bytes are kept).
  ///   - most: how many there may be at once.
  public init(name: String, most: Int) {
    (self.name, self.most) = (name, most)
  }

  /// Has the body carried out. It is kept no longer than that.
  /// - Returns: whether it will be; false where every thread is busy and there may be no more of them.
  public func run(_ body: @escaping Body) -> Bool {
    let (number, needsThread) = state.change { state -> (UInt64?, Bool) in
      let needsThread = state.idle <= state.waiting.count
      if needsThread, state.count >= most { return (nil, false) }
      if needsThread { state.count += 1 }
      state.lastNumber &+= 1
      state.waiting.append((state.lastNumber, body))
      return (state.lastNumber, needsThread)
    }
    guard let number else { return false }
    guard needsThread else { return true }
    do throws(SystemError) {
      try WorkerThread(name: name) { [self] in work() }.detach()
      return true
    } catch {
      return state.withLock { state in
        state.count -= 1
        let count = state.waiting.count
        state.waiting.removeAll { $0.number == number }
        // Another thread may have it already.
        return state.waiting.count == count
      }
    }
  }

  /// Waits until a thread waits for its next body (for tests).
  func whenIdle(until deadline: Instant) -> Bool {
    state.wait(until: deadline) { $0.idle > 0 ? true : nil } ?? false
  }

  private func work() {
    while let body = next() { body() }
  }

  /// The next body; nil: none came, and the thread counts no longer.
  private func next() -> Body? {
    state.change { $0.idle += 1 }
    let body = state.wait(until: Instant.now.advanced(milliseconds: Self.patience)) {
      state -> Body? in state.waiting.isEmpty ? nil : state.waiting.removeFirst().body
    }
    return state.withLock { state in
      state.idle -= 1
      if body != nil { return body }
      // One that came just now was promised a thread.
      if !state.waiting.isEmpty { return state.waiting.removeFirst().body }
      state.count -= 1
      return nil
    }
  }
}
