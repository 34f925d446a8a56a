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
    /// The error that the log has.
    var noted = ""
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
    for place in geteuid() == 0 ? [nil, .host, .managed, .anyUser] : [nil, Place.host] {
      let declarations = Declarations(places, in: place)
      do throws(EngineError) {
        let now = ClockReading.now
        for (name, deadline) in try declarations.deadlines() {
          let remaining = deadline.remaining(at: now)
          if remaining == 0 {
            try expire(name, at: now, in: declarations)
          } else {
            next = min(next ?? .max, remaining)
          }
        }
      } catch {
        note(error)
        // A ledger that cannot be read may have no deadline: it does not keep the owner.
        if error.reason != .unreadable { next = min(next ?? .max, Self.pause * 1_000_000) }
      }
    }
    return next
  }

  private func expire(
    _ name: String, at now: ClockReading, in declarations: Declarations
  ) throws(EngineError) {
    var source = ChangeSource(.declaration)
    (source.user, source.process, source.program) = (UInt32(geteuid()), getpid(), "prefsd")
    source.because = "\(name) was not confirmed, or was a lease"
    let (places, known) = (places, source)
    _ = try declarations.carryOut([.expire(name, at: now)], by: .unique()) {
      intents, author throws(EngineError) in
      try places.serve(intents, by: author, origin: nil, from: known, until: nil)
    }
    log("the declaration \(name) has ended at its deadline, and is what it was before")
  }

  private func note(_ error: EngineError) {
    let isNew = state.withLock { state in
      defer { state.noted = error.sentence }
      return state.noted != error.sentence
    }
    if isNew { log("a deadline of declarations cannot be met, and is tried again: \(error)") }
  }
}
