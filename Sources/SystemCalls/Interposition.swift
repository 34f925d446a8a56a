import Glibc
import Synchronization

/// Decides what becomes of the system calls of this module, for tests: a full disk, a signal, a
/// crash after any single call. Programs never use it; a call then costs one load of a flag more.
package enum Interposition {
  /// A call that is about to be made.
  package struct Call: Sendable {
    /// The C function.
    package let name: String
    /// What it is made on; empty where only a descriptor is known.
    package let path: String
  }

  /// What becomes of it.
  package enum Verdict: Sendable {
    case proceed
    /// The call is not made, and fails so. EINTR is repeated, as from the kernel.
    case fail(Errno)
    /// A write takes so many bytes at most; other calls proceed.
    case shorten(Int)
  }

  package typealias Judge = @Sendable (Call) -> Verdict

  private static let isActive = Atomic<Bool>(false)
  private static let judge = Mutex<Judge?>(nil)

  /// Lets the judge decide for every thread while the body runs. One at a time.
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

/// Makes a system call, again as long as a signal interrupts it.
/// - Returns: what it returned; -1 with `errno` set.
@inline(__always)
func systemCall<Result: SignedInteger>(
  _ name: StaticString, _ path: String, _ call: () -> Result
) -> Result {
  systemCall(name, path) { (_: Int) in call() }
}

/// The same for calls that can do a part of what they are asked for: `call` gets the largest part.
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
