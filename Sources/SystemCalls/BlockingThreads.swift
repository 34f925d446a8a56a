import Glibc

/// Threads for work that may block for a long time, or for ever: reading a file of a hung file
/// system, for instance.
///
/// Promises: `run` never waits. Each body has a thread to itself while it runs; where every thread
/// is busy and there may be no more of them, bodies wait in a queue. A thread that has finished
/// waits 2 s for another body and then ends. For the first moment it polls, unless another thread
/// does: where one body follows the other, no thread has to be woken. Bodies start in the order in
/// which they were given and may overtake each other after that. The end of the process does not
/// wait for them.
///
/// Threads: any. One lock, held briefly; no body is called under it.
public final class BlockingThreads: Sendable {
  /// The work that a thread carries out.
  public typealias Body = @Sendable () -> Void

  private struct State {
    var waiting: [(number: UInt64, body: Body)] = []
    var lastNumber: UInt64 = 0
    var idle = 0
    /// Whether an idle thread polls. It takes the next body, or looks for one before it sleeps.
    var isPolled = false
    var count = 0

    /// Removes the next body, for a thread that is idle until then; nil: there is none. Both in one
    /// step: a body that comes in between must not count on a thread that has one already.
    mutating func removeNext() -> Body? {
      guard !waiting.isEmpty else { return nil }
      idle -= 1
      return waiting.removeFirst().body
    }
  }

  private let name: String
  private let most: Int
  private let mostWaiting: Int
  private let state = Monitor(State())

  /// Milliseconds that an idle thread waits for its next body.
  private static let patience: Int64 = 2000

  /// - Parameters:
  ///   - name: the name of the threads; the kernel keeps at most 15 bytes.
  ///   - most: how many threads there may be at once.
  ///   - mostWaiting: how many bodies may wait for one of them.
  public init(name: String, most: Int, mostWaiting: Int = 10_000) {
    (self.name, self.most, self.mostWaiting) = (name, most, mostWaiting)
  }

  /// Carries out the body on a thread of its own, and releases it afterwards.
  /// - Returns: whether the body will be carried out; false where too many wait, or where no thread
  ///   can be started.
  public func run(_ body: @escaping Body) -> Bool {
    let (number, needsThread, hasTaker) = state.withLock { state -> (UInt64?, Bool, Bool) in
      let isShort = state.idle <= state.waiting.count
      let needsThread = isShort && state.count < most
      if isShort, !needsThread, state.waiting.count - state.idle >= mostWaiting {
        return (nil, false, false)
      }
      if needsThread { state.count += 1 }
      state.lastNumber &+= 1
      state.waiting.append((state.lastNumber, body))
      return (state.lastNumber, needsThread, state.isPolled && state.waiting.count == 1)
    }
    guard let number else { return false }
    // Nothing to wake where the thread that polls will take the body.
    if !hasTaker { state.changeForOne { _ in } }
    guard needsThread else { return true }
    do throws(SystemError) {
      try WorkerThread(name: name) { [self] in work() }.detach()
      return true
    } catch {
      return state.withLock { state in
        state.count -= 1
        let count = state.waiting.count
        state.waiting.removeAll { $0.number == number }
        // Another thread may have removed the body already; then it is carried out.
        return state.waiting.count == count
      }
    }
  }

  /// Whether a thread waits for a body (for tests).
  var hasIdle: Bool { state.withLock { $0.idle > 0 } }

  private func work() {
    while let body = removeNext() { body() }
  }

  /// Removes and returns a body that comes within a moment; nil: none came.
  private func poll() -> Body? {
    let start = Instant.now
    repeat {
      let body = state.withLock { state in
        // In one step with the removal: the body after this one must not count on this thread.
        let body = state.removeNext()
        if body != nil { state.isPolled = false }
        return body
      }
      if let body { return body }
    } while Polling.looksAgain(since: start)
    state.withLock { $0.isPolled = false }
    return nil
  }

  /// Removes and returns the next body. Returns nil where none came in time: then the calling
  /// thread is no longer counted and must end.
  private func removeNext() -> Body? {
    let isPolling = state.withLock { state in
      state.idle += 1
      defer { state.isPolled = true }
      return !state.isPolled
    }
    if isPolling, let body = poll() { return body }
    let body = state.wait(until: Instant.now.advanced(milliseconds: Self.patience)) {
      state -> Body? in state.removeNext()
    }
    if let body { return body }
    return state.withLock { state in
      // A body that was added since then relies on this thread.
      if let body = state.removeNext() { return body }
      state.idle -= 1
      state.count -= 1
      return nil
    }
  }
}
