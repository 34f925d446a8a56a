import Glibc

/// Threads for work that may block for a long time, or for ever: reading a file of a hung file
/// system, for instance.
///
/// Promises: `run` never waits. Each body has a thread to itself while it runs; where every thread
/// is busy and there may be no more of them, bodies wait in a queue. A thread that has finished
/// waits 2 s for another body and then ends. Bodies start in the order in which they were given and
/// may overtake each other after that. The end of the process does not wait for them.
///
/// Threads: any. One lock, held briefly; no body is called under it.
public final class BlockingThreads: Sendable {
  /// The work that a thread carries out.
  public typealias Body = @Sendable () -> Void

  private struct State {
    /// The bodies that wait, by number. The next one has the number `next` or a later one.
    var waiting: [UInt64: Body] = [:]
    var next: UInt64 = 1
    var lastNumber: UInt64 = 0
    var idle = 0
    var count = 0

    /// Removes the next body, for a thread that is idle until then; nil if there is none. Both in
    /// one step: a body that comes in between must not count on a thread that has one already.
    /// Cost: O(1) for each body, however many wait.
    mutating func removeNext() -> Body? {
      guard !waiting.isEmpty else { return nil }
      while next <= lastNumber {
        let body = waiting.removeValue(forKey: next)
        next += 1
        guard let body else { continue }
        idle -= 1
        return body
      }
      return nil
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
    let (number, needsThread) = state.changeForOne { state -> (UInt64?, Bool) in
      let isShort = state.idle <= state.waiting.count
      let needsThread = isShort && state.count < most
      if isShort, !needsThread, state.waiting.count - state.idle >= mostWaiting {
        return (nil, false)
      }
      if needsThread { state.count += 1 }
      state.lastNumber += 1
      state.waiting[state.lastNumber] = body
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
        // Another thread may have removed the body already; then it is carried out.
        return state.waiting.removeValue(forKey: number) == nil
      }
    }
  }

  /// Whether a thread waits for a body (for tests).
  var hasIdle: Bool { state.withLock { $0.idle > 0 } }

  private func work() {
    while let body = removeNext() { body() }
  }

  /// Removes and returns the next body. Returns nil where none came in time: then the calling
  /// thread is no longer counted and must end.
  private func removeNext() -> Body? {
    state.withLock { $0.idle += 1 }
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
