/// Decides whether the loop polls for the next request before it sleeps, by trying both.
///
/// On a quiet machine polling is quicker: else each request wakes a processor that sleeps. On a
/// busy one it is slower: the loop takes the processor that its client needs. So the loop goes by
/// the time from request to request: after every 1,024 requests in the better way come 32 in the
/// other, and the quicker way of the two is the next one.
///
/// On a virtual machine with two processors an overwrite took 165 us with polling and 330 us
/// without where nothing else ran, 233 us and 145 us beside two busy loops.
struct Polling {
  private enum Way { case polling, sleeping }

  private var best = Way.polling
  /// Whether the other way is being tried.
  private var isTrial = false
  /// Nanoseconds between two requests, of the last row in the better way.
  private var mean = 0.0
  /// The requests of this row, and the nanoseconds between them.
  private var count = 0
  private var sum = 0.0

  private static let row = 1024
  private static let trial = 32
  /// Nanoseconds that the loop polls after a request, where it does. On the machine above, an
  /// overwrite took 325 us with 50 us of polling, 155 us with 150, and no less with 400.
  private static let longest: Int64 = 150_000
  /// A longer pause between two requests, in nanoseconds, is the client's.
  private static let longestPause: Int64 = 20_000_000

  /// Nanoseconds that the loop polls after a request before it sleeps.
  var patience: Int64 { (best == .polling) == isTrial ? 0 : Self.longest }

  /// Notes a request that came that many nanoseconds after the one before.
  mutating func note(_ pause: Int64) {
    guard pause < Self.longestPause else { return }
    sum += Double(pause)
    count += 1
    guard count >= (isTrial ? Self.trial : Self.row) else { return }
    let mean = sum / Double(count)
    (sum, count) = (0, 0)
    if isTrial, mean < self.mean { best = best == .polling ? .sleeping : .polling }
    if !isTrial { self.mean = mean }
    isTrial.toggle()
  }
}
