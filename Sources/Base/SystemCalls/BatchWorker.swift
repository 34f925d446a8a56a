/// What a `BatchWorker` is handed between two rounds of its thread.
public protocol Batch {
  /// An empty batch.
  init()
  /// Whether there is nothing to do.
  var isEmpty: Bool { get }
}

extension Array: Batch {}

/// A thread that carries out what is handed to it: in each round, everything that came while it was
/// busy with the round before.
///
/// Promises: handing something over never waits. After `beginStop` the thread carries out what was
/// handed over before, then ends; the body may look at `isStopping` to be quicker.
///
/// Threads: any. One lock, for a look; the body is called without it.
public final class BatchWorker<Work: Batch & Sendable>: Sendable {
  private struct State {
    var waiting = Work()
    var isStopping = false
    var hasEnded = false
    var thread: WorkerThread?
  }

  private let state = Monitor(State())

  /// A worker without a thread.
  public init() {}

  /// Starts the thread. Call it once.
  /// - Parameters:
  ///   - name: the thread's (at most 15 bytes are kept).
  ///   - prepare: called on the thread before the first round.
  ///   - ended: called on the thread when it is about to end.
  ///   - body: carries out a round.
  public func start(
    name: String, prepare: @escaping @Sendable () -> Void = {},
    ended: @escaping @Sendable () -> Void = {}, _ body: @escaping @Sendable (Work) -> Void
  ) throws(SystemError) {
    let thread = try WorkerThread(name: name) { [state] in
      prepare()
      while let work = Self.removeWork(state) { body(work) }
      state.change { $0.hasEnded = true }
      ended()
    }
    state.withLock { $0.thread = thread }
  }

  /// Hands something over.
  public func put(_ add: (inout Work) -> Void) { state.change { add(&$0.waiting) } }

  /// Asks the thread to end.
  public func beginStop() { state.change { $0.isStopping = true } }

  /// Whether the thread has been asked to end.
  public var isStopping: Bool { state.withLock { $0.isStopping } }

  /// Whether the thread has carried out everything and ended, or never began.
  public var hasEnded: Bool { state.withLock { $0.hasEnded || $0.thread == nil } }

  /// Lets the thread end without a `join`: call one of the two. `hasEnded` is not to be asked then.
  public func detach() { state.withLock { $0.thread.take() }?.detach() }

  /// Waits until the thread has ended. Call it after `beginStop`.
  public func join() { state.withLock { $0.thread.take() }?.join() }

  /// Waits for work, and removes it; nil if the worker was stopped, and nothing is left.
  private static func removeWork(_ state: Monitor<State>) -> Work? {
    let work = state.wait { state -> Work? in
      guard state.waiting.isEmpty, !state.isStopping else {
        defer { state.waiting = Work() }
        return state.waiting
      }
      return nil
    }
    return work?.isEmpty == false ? work : nil
  }
}
