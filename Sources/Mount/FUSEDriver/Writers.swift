import Glibc
import PreferenceModel
import SystemCalls

/// Who makes the requests of the kernel, for the history: a process is looked up in proc(5) once,
/// and trusted while it goes on making requests.
///
/// A number of a thread is given anew only when all others have been, so one that was seen a moment
/// ago is the same thread.
///
/// Threads: the loop's alone.
struct Writers {
  /// Who was told to look a name up again.
  var staleNames = StaleNames()
  private var known: [pid_t: (source: ChangeSource, seen: Instant)] = [:]

  /// Milliseconds without a request after which a thread is looked up again.
  private static let patience: Int64 = 2000
  /// The most threads that are kept.
  private static let most = 256

  /// Returns who has made a request that changes something. Cost: nothing but memory, for a thread
  /// that has made one in the last two seconds; else some files of proc(5).
  mutating func source(of header: RequestHeader) -> ChangeSource {
    let now = Instant.now
    let (thread, user) = (header.thread, header.user)
    if let (source, seen) = known[thread], source.user == user,
      now.nanoseconds(after: seen) < Self.patience * 1_000_000
    {
      known[thread]?.seen = now
      return source
    }
    var source = ChangeSource(.mount)
    source.user = user
    // 0: the process is in no namespace that this one can see.
    if thread > 0 {
      let facts = ProcessFacts(ofThread: thread)
      (source.process, source.program, source.unit) = (facts.process, facts.program, facts.unit)
    }
    if known.count >= Self.most { known.removeAll() }
    known[thread] = (source, now)
    return source
  }
}
