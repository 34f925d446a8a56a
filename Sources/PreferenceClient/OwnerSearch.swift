import PreferenceModel
import Synchronization
import SystemCalls

/// Looks for the process that owns a store, and starts one where this process does that.
///
/// Threads: any. One lock, for the pace of starts.
final class OwnerSearch: Sendable {
  private struct Pace {
    /// Before then no owner is started.
    var next = Instant.now
    var pause: Int64 = 0
  }

  let surroundings: Surroundings
  /// A random number that tells this client from others, over all its connections.
  let client = UInt64.random(in: 1 ... .max)
  private let start: (@Sendable () throws(SystemError) -> Void)?
  private let isBrief: Bool
  private let pace = Mutex(Pace())

  /// Milliseconds that a process which listens may take for its first answer; it may be stopped.
  private static let greetingPatience: Int64 = 500
  /// Milliseconds between two looks.
  static let pause: Int64 = 5
  /// Milliseconds between two starts of an owner, each of which waits until the owner answers: the
  /// first pause, and the longest while none succeeds.
  private static let startPauses: (first: Int64, longest: Int64) = (20, 5000)

  /// - Parameters:
  ///   - start: starts an owner; nil: somebody else does.
  ///   - isBrief: see `RemotePlaces`.
  init(
    _ surroundings: Surroundings, isBrief: Bool,
    start: (@Sendable () throws(SystemError) -> Void)?
  ) {
    (self.surroundings, self.isBrief, self.start) = (surroundings, isBrief, start)
  }

  /// Connects to the owner; nil if nobody answers.
  /// - Parameter ended: called once, when the owner is gone.
  func connect(ended: @escaping @Sendable () -> Void) throws(EngineError) -> RemotePlaces? {
    let patience = Instant.now.advanced(milliseconds: Self.greetingPatience)
    for path in surroundings.ownerSocketPaths {
      let remote = try RemotePlaces(
        connectingTo: path, client: client, isBrief: isBrief, until: patience, ended: ended)
      if let remote { return remote }
    }
    return nil
  }

  /// Why nobody can be asked.
  var unanswered: EngineError {
    EngineError(
      .owned, "no owner answers for the store \(surroundings.userDirectory); is it stopped?")
  }

  /// Asks the body again and again until it gives something, and starts an owner meanwhile. Throws
  /// the body's error when it is not `isPassing`, or at the deadline.
  func find<Result>(
    until deadline: Instant, _ look: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    while true {
      do throws(EngineError) {
        return try look()
      } catch  where Self.isPassing(error) && Instant.now < deadline {
        if try !startOwner() { Instant.sleep(milliseconds: UInt32(Self.pause)) }
      }
    }
  }

  /// Whether the error says only that there is no owner at the moment.
  static func isPassing(_ error: EngineError) -> Bool {
    [.owned, .ownerGone].contains(error.reason)
  }

  /// Starts an owner, if this process does that and enough time has passed since the last try.
  /// - Returns: whether an owner may be there now.
  @discardableResult
  func startOwner() throws(EngineError) -> Bool {
    guard let start else { return false }
    let isDue = pace.withLock { pace in
      guard pace.next <= .now else { return false }
      pace.pause = min(max(pace.pause * 2, Self.startPauses.first), Self.startPauses.longest)
      pace.next = Instant.now.advanced(milliseconds: pace.pause)
      return true
    }
    if isDue { try EngineError.wrapping { () throws(SystemError) in try start() } }
    return isDue
  }

  /// An owner was found: the next start need not wait for long.
  func noteFound() { pace.withLock { $0.pause = 0 } }
}
