import SystemCalls

/// A driver's channel to its guard, what a predecessor has left to it, and what a successor will
/// need.
///
/// Threads: the loop's alone.
struct Takeover {
  /// The channel to the guard; nil if there is none, and the mount ends with this process.
  let line: GuardLine?
  /// Where a successor finds what it must know; nil if it cannot know it.
  var saved: SavedState?
  /// The mount, as a successor must know it; nil before it is mounted.
  var facts: MountFacts?
  /// The requests of which the trees have the effects since a predecessor, by their numbers; nil if
  /// this driver has none.
  var earlier: [UInt64: SavedRequest]?
  /// Whether stale caches of the last driver must still be reported as dropped; changes of other
  /// clients wait for it.
  var mustSettle = false
  /// Whether this driver ends for a successor.
  var isHandingOver = false
  /// What becomes of the upgrade that the guard has asked for; nil if it has asked for none.
  var upgrade: Upgrade?
  /// Whether the log says that the state has no room.
  var isStateIncomplete = false
}

/// An upgrade, which waits until no text is under way, because a successor would not get that.
enum Upgrade {
  /// It is put off when that is so until then.
  case waiting(Instant)
  /// It was put off, and is asked for again then.
  case putOff(Instant)

  var deadline: Instant {
    switch self {
    case .waiting(let end), .putOff(let end): end
    }
  }
}
