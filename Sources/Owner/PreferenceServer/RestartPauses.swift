/// The pauses before a program that has ended is started again. A program that fails at once is
/// started less and less often; one that had begun its work is back soon, however often it is
/// killed.
struct RestartPauses {
  /// Milliseconds after which a run counts as one that worked.
  static let goodRun: Int64 = 10_000
  /// Milliseconds of the first pause, and of the longest.
  static let pauses: ClosedRange<Int64> = 1000...60_000

  private var pause = Self.pauses.lowerBound

  /// Returns the milliseconds to wait after a run of that many milliseconds. The pause doubles with
  /// each run in a row that was shorter than `goodRun`.
  mutating func next(afterRunOf milliseconds: Int64) -> Int64 {
    if milliseconds >= Self.goodRun { pause = Self.pauses.lowerBound }
    defer { pause = min(pause * 2, Self.pauses.upperBound) }
    return pause
  }
}
