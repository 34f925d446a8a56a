import Glibc
import PreferenceDeclarations
import PreferenceEngine
import PreferenceModel
import SystemCalls

/// Meets the deadlines of declarations: one that was not confirmed, or a lease that has ended, is
/// again what it was.
///
/// Promises: deadlines that were missed while there was no owner are met before the first client is
/// served, unless a ledger's list does not answer for 1 s; the others within a second. While there
/// is one, the owner does not end.
///
/// Half-broken states: where a list cannot be read or written, it tries again each second.
///
/// Threads: any; the work is done by a thread of its own, because a transaction may wait for a
/// list. One lock, held for a look.
final class DeadlineKeeper: Sendable {
  private struct State {
    /// Whether the thread looks after deadlines, and what it has found when it last looked.
    var isRunning = false
    var hasLooked = false
    var hasDeadline = false
    /// Whether a ledger has changed since it last looked.
    var isAsked = false
    /// The errors of the last look, which the log has.
    var noted: Set<String> = []
  }

  private let places: LocalPlaces
  private let log: @Sendable (LogLine) -> Void
  private let thread = BlockingThreads(name: "prefs-deadline", most: 1)
  private let state = Monitor(State())

  /// Milliseconds between two looks while there is a deadline, and for which the first one is waited
  /// for.
  private static let (pause, patience): (Int64, Int64) = (1000, 1000)

  init(_ places: LocalPlaces, log: @escaping @Sendable (LogLine) -> Void) {
    (self.places, self.log) = (places, log)
  }

  /// Whether a declaration has a deadline that is not met yet.
  var hasDeadline: Bool { state.withLock { $0.hasDeadline } }

  /// Meets the deadlines that were missed, and begins to look after others.
  func begin() {
    places.observe(except: nil) { [weak self] notice in
      if notice.changeset.concerns(.declared) { self?.look() }
    }
    look()
    let end = Instant.now.advanced(milliseconds: Self.patience)
    _ = state.wait(until: end) { $0.hasLooked ? true : nil }
  }

  /// Has the thread look at the ledgers. Returns at once.
  private func look() {
    let isNew = state.withLock { state in
      state.isAsked = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isNew, !thread.run({ [self] in keep() }) { state.withLock { $0.isRunning = false } }
  }

  private func keep() {
    while !places.isClosing {
      state.withLock { $0.isAsked = false }
      let remaining = meet()
      let isDone = state.change { state in
        (state.hasLooked, state.hasDeadline) = (true, remaining != nil)
        // A change that came meanwhile is looked at by this thread.
        state.isRunning = remaining != nil || state.isAsked
        return !state.isRunning
      }
      if isDone { return }
      let pause = min((remaining ?? 0) / 1_000_000 + 1, Self.pause)
      Instant.sleep(milliseconds: UInt32(clamping: max(pause, 1)))
    }
  }

  /// Meets what is due.
  /// - Returns: the nanoseconds to the next deadline, or to the next try; nil if there is no
  ///   deadline.
  private func meet() -> Int64? {
    var next: Int64?
    var problems: Set<String> = []
    let now = ClockReading.now
    for place in geteuid() == 0 ? [nil, .host, .managed, .anyUser] : [nil, Place.host] {
      let declarations = Declarations(places, in: place)
      do throws(EngineError) {
        for (name, deadline) in try declarations.deadlines() {
          let remaining = deadline.remaining(at: now)
          if remaining == 0, let problem = expire(name, at: now, in: declarations) {
            problems.insert(problem.description)
            next = min(next ?? .max, Self.pause * 1_000_000)
          } else if remaining > 0 {
            next = min(next ?? .max, remaining)
          }
        }
      } catch {
        problems.insert(error.description)
        // A ledger that cannot be read may have no deadline: it does not keep the owner.
        if error.reason != .unreadable { next = min(next ?? .max, Self.pause * 1_000_000) }
      }
    }
    note(problems)
    return next
  }

  /// Meets the deadline of a declaration. One that cannot be met does not keep others from it.
  /// - Returns: why it cannot be met; nil: it is.
  private func expire(
    _ name: String, at now: ClockReading, in declarations: Declarations
  ) -> EngineError? {
    var source = ChangeSource(.declaration)
    (source.user, source.process, source.program) = (UInt32(geteuid()), getpid(), "prefsd")
    source.because = "\(name) was not confirmed, or was a lease"
    let (places, known) = (places, source)
    do throws(EngineError) {
      _ = try declarations.carryOut([.expire(name, at: now)], by: .unique()) {
        intents, author throws(EngineError) in
        try places.serve(intents, by: author, origin: nil, from: known, until: nil)
      }
    } catch {
      return error
    }
    log("the declaration \(name) has ended at its deadline, and is what it was before")
    return nil
  }

  private func note(_ problems: Set<String>) {
    let new = state.withLock { state in
      defer { state.noted = problems }
      return problems.subtracting(state.noted)
    }
    for problem in new.sorted() {
      log("a deadline of declarations cannot be met, and is tried again: \(problem)")
    }
  }
}
