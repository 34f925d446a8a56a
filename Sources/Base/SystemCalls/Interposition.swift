import Glibc
import Synchronization

/// Lets a test decide the outcome of this module's system calls: a full disk, a signal, a crash
/// after any single call. It decides about the calls that are made through `systemCall`.
///
/// Programs never use it. It costs each call the load of a flag.
package enum Interposition {
  /// A system call that is about to be made.
  package struct Call: Sendable {
    /// The name of the C function.
    package let name: String
    /// The path that it is made on; empty where only a descriptor is known.
    package let path: String
  }

  /// What happens to a call.
  package enum Verdict: Sendable {
    /// The call is made.
    case proceed
    /// The call is not made, and fails with this error. EINTR is repeated, as an EINTR of the
    /// kernel is.
    case fail(Errno)
    /// A write writes at most that many bytes. Other calls proceed.
    case shorten(Int)
  }

  /// Decides about a call; any thread may call it.
  package typealias Judge = @Sendable (Call) -> Verdict

  private static let isActive = Atomic<Bool>(false)
  private static let judge = Mutex<Judge?>(nil)

  /// Runs the body; the judge decides about the calls of every thread meanwhile. Only one such call
  /// may run at a time.
  package static func with<Result>(
    _ decide: @escaping Judge, _ body: () throws -> Result
  ) rethrows -> Result {
    judge.withLock { $0 = decide }
    isActive.store(true, ordering: .sequentiallyConsistent)
    defer {
      isActive.store(false, ordering: .sequentiallyConsistent)
      judge.withLock { $0 = nil }
    }
    return try body()
  }

  @inline(__always)
  static func verdict(_ name: StaticString, _ path: String) -> Verdict {
    isActive.load(ordering: .relaxed) ? judged(name, path) : .proceed
  }

  private static func judged(_ name: StaticString, _ path: String) -> Verdict {
    let judge = judge.withLock { $0 }
    return judge?(Call(name: "\(name)", path: path)) ?? .proceed
  }
}

/// Makes a system call, and repeats it as long as a signal interrupts it.
/// - Returns: the result of the call; -1 where it failed, with `errno` set.
@inline(__always)
func systemCall<Result: SignedInteger>(
  _ name: StaticString, _ path: String, _ call: () -> Result
) -> Result {
  systemCall(name, path) { (_: Int) in call() }
}

/// The same for calls that may do a part of the work: `call` gets the largest number of bytes that
/// it may move.
@inline(__always)
func systemCall<Result: SignedInteger>(
  _ name: StaticString, _ path: String, _ call: (Int) -> Result
) -> Result {
  while true {
    let result: Result
    switch Interposition.verdict(name, path) {
    case .proceed: result = call(.max)
    case .shorten(let most): result = call(most)
    case .fail(let reason):
      errno = reason.rawValue
      result = -1
    }
    if result != -1 || errno != EINTR { return result }
  }
}

/// Makes a system call like `systemCall`, and throws where it has failed.
@inline(__always)
func require(_ name: StaticString, _ path: String, _ call: () -> CInt) throws(SystemError) {
  guard systemCall(name, path, call) != 0 else { return }
  let reason = Errno.current
  throw SystemError("\(name)", path, reason)
}
