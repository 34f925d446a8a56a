import Glibc
import Synchronization

/// Watches the calls of one thread on paths, so that a program need not wait for ever for a file
/// system that does not answer: NFS or FUSE whose server or program is gone or stopped.
///
/// Promises: if one of the calls that `Files` makes, or `Descriptor` makes on files that are no
/// pipes or devices, does not return for 5 s, a thread of its own calls a body, which may end the
/// process. It is single calls that are limited. What takes long for another reason is not: many
/// calls one after the other, a pipe or a terminal that is read or written, a lock, an answer of
/// another process, the transfer of a large file, fsync(2).
///
/// Threads: one is watched, from `begin` to `end`. Lock: one, held for a look. Cost: a thread, and
/// two locks for each call; where nothing is watched, the load of a flag.
///
/// Half-broken states: if no thread can be started, nothing is watched. `_exit` ends a process that
/// waits for NFS, or for a FUSE program that has not taken the request. One that has taken it and
/// never answers holds the process, which kill -9 does not end either, until its connection is
/// aborted; the body has been called then.
public enum CallWatch {
  private struct Watch {
    let thread: pthread_t
    /// The call that the thread makes: on which path, and since when.
    var call: (path: String, since: Instant)?
  }

  private static let isActive = Atomic<Bool>(false)
  /// What is watched; nil means nothing.
  private static let state = Monitor<Watch?>(nil)

  /// Milliseconds that a call has.
  public static let patience: Int64 = 5000
  /// Milliseconds between two looks at calls.
  private static let pause: Int64 = 1000

  /// Watches the calling thread. Call it once, or again after `end`.
  /// - Parameter late: is called once at most, on another thread, with a sentence for people.
  public static func begin(
    milliseconds: Int64 = patience, late: @escaping @Sendable (String) -> Void
  ) {
    state.withLock { $0 = Watch(thread: pthread_self()) }
    do throws(SystemError) {
      try WorkerThread(name: "prefs-patience") { watch(milliseconds, late) }.detach()
      isActive.store(true, ordering: .relaxed)
    } catch {
      end()
    }
  }

  /// Ends the watch.
  public static func end() {
    isActive.store(false, ordering: .relaxed)
    state.change { $0 = nil }
  }

  private static func watch(_ milliseconds: Int64, _ body: (String) -> Void) {
    let pause = min(Self.pause, milliseconds)
    var next = Instant.now.advanced(milliseconds: milliseconds)
    // A process that was stopped meanwhile (SIGSTOP) has a moment to go on.
    var late: Instant?
    while state.wait(until: next, for: { $0 == nil ? true : nil }) == nil {
      let call = state.withLock { $0?.call }
      let due = call?.since.advanced(milliseconds: milliseconds)
      guard let call, let due, due <= .now else {
        next = due ?? Instant.now.advanced(milliseconds: pause)
        continue
      }
      if late == call.since { return body(sentence(of: call.path)) }
      (late, next) = (call.since, Instant.now.advanced(milliseconds: pause / 4))
    }
  }

  /// The sentence about a path whose file system does not answer. It does not access the path.
  public static func sentence(of path: String) -> String {
    let mount = MountInformation.mount(above: path)
    let kind = mount.map { " (\($0.kind) at \($0.path))" } ?? ""
    return "\(path): its file system\(kind) has not answered for 5 s; is its server or program "
      + "stopped, or out of reach? Mend that, or unmount it (umount -l), and try again"
  }

  /// Makes a call on a path, and notes it while it runs if its thread is watched.
  @inline(__always)
  static func noting<Result, Failure: Error>(
    _ path: String, if isWatched: Bool = true, _ call: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    isWatched && isActive.load(ordering: .relaxed) ? try noted(path, call) : try call()
  }

  private static func noted<Result, Failure: Error>(
    _ path: String, _ call: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let thread = pthread_self()
    let isNoted = state.withLock { watch in
      guard watch?.thread == thread else { return false }
      watch?.call = (path, .now)
      return true
    }
    defer {
      let reason = errno
      if isNoted { state.withLock { $0?.call = nil } }
      errno = reason
    }
    return try call()
  }
}
