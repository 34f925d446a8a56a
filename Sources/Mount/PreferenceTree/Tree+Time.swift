import SystemCalls

// Does what is due at a time: ends truncations, old tails, held texts and removed names.

extension Tree {
  /// When `tick` must be called next; nil if not before another call sets it.
  public var nextDeadline: Instant? {
    var next = texts.deadline
    for deadline in [removedNames.deadline, scratch.deadline, kernel.deadline] {
      guard let deadline else { continue }
      next = min(next ?? deadline, deadline)
    }
    return next
  }

  /// Does everything that has become due.
  public func tick(now: Moment) {
    texts.tick(now: now)
    while let ending = removedNames.endNextDue(at: now.instant) {
      keys.carryOutEnding(ending, now: now)
    }
    keys.keepUnclaimed(until: now.instant, now: now)
    kernel.announceDelayed(now)
  }

  /// Ends the tree with the mount. Decides text that waits for a decision, completes the moves of
  /// keys that were moved away, and makes keys of scratch files that may stay. Held text and other
  /// scratch files are lost, and logged.
  public func finish(now: Moment) {
    while let ending = removedNames.endNextMove() { keys.carryOutEnding(ending, now: now) }
    keys.keepUnclaimed(until: nil, now: now)
    scratch.logLost()
    texts.finish(now: now)
  }
}
