import PreferenceModel

/// A driver's channel to its guard, what a predecessor has left to it, and what a successor will
/// need.
///
/// Threads: the loop's alone.
struct Takeover {
  /// The channel to the guard; nil: there is none, and the mount ends with this process.
  let line: GuardLine?
  /// Where a successor finds what it must know; nil: nowhere.
  var saved: SavedState?
  /// The mount, as a successor must know it; nil before it is mounted.
  var facts: MountFacts?
  /// The requests that a predecessor has left; nil: this driver has none.
  var resent: ResentRequests?
  /// Whether the kernel may show what it cached before this driver, for which changes of others
  /// wait, and the notifier has not been asked to say when that is dropped.
  var mustSettle = false
  /// Whether the guard has asked this driver to end for a successor.
  var isHandingOver = false
  /// Whether the log says that the state has no room.
  var isStateIncomplete = false
}

/// What is known of the requests that the kernel sends again.
struct ResentRequests {
  let answers: [UInt64: SavedAnswer]
  /// A request that has ended two drivers.
  let refused: UInt64?

  init(_ estate: Estate, _ saved: SavedState) {
    answers = estate.answers
    refused = saved[.suspectDeaths] >= 2 ? saved[.suspect] : nil
  }
}
