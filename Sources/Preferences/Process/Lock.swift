internal import Synchronization

/// A `Mutex` that can be kept by reference and in structures.
final class Lock<State: Sendable>: Sendable {
  private let mutex: Mutex<State>

  init(_ state: State) { mutex = Mutex(state) }

  func withLock<Result>(_ body: (inout State) -> Result) -> Result where Result: Sendable {
    mutex.withLock { state in body(&state) }
  }
}
