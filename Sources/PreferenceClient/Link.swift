import Glibc
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

/// One connection to an owner: requests, their answers, and notices in between.
///
/// Promises: messages are received in the order in which they came, by one thread at a time; an answer is
/// given to the caller after every message before it was received.
///
/// Threads: callers', and one of the link's own that takes what comes while nobody calls. A caller
/// takes messages himself, because a thread that wakes another costs more than the request. Locks:
/// the monitor, under which nothing blocks; whoever `isReading` has the stream to himself, and calls
/// `received` without a lock.
final class Link: Sendable {
  struct State {
    var lastNumber: UInt64 = 0
    /// The requests that somebody waits for, with the answers that have come.
    var answers: [UInt64: Message?] = [:]
    /// A ping is under way: one is enough.
    var isPinging = false
    var isSending = false
    /// Bodies of answers that nobody waits for.
    var bodies: [UInt64: @Sendable (Message?) -> Void] = [:]
    var callers = 0
    var isReading = false
    var hasEnded = false
  }

  let socket: SharedSocket
  let state = Monitor(State())
  /// Touched by whoever `isReading`.
  let stream: Mutex<FrameReader>
  let received: @Sendable (Message) -> Void
  let ended: @Sendable () -> Void
  private let thread = Mutex<WorkerThread?>(nil)
  /// When the last call ended.
  let called = Atomic<Int64>(0)
  /// When something came last, in nanoseconds of the monotonic clock.
  let heard = Atomic<Int64>(Instant.now.nanoseconds)

  /// - Parameters:
  ///   - rest: what has come already.
  ///   - received: gets messages that answer no request.
  ///   - ended: called once, when the owner is gone.
  init(
    _ socket: SharedSocket, rest: FrameReader, received: @escaping @Sendable (Message) -> Void,
    ended: @escaping @Sendable () -> Void
  ) {
    (self.socket, self.received, self.ended) = (socket, received, ended)
    stream = Mutex(rest)
  }

  /// From now on notices are received without a caller.
  func start() throws(SystemError) {
    let worker = try WorkerThread(name: "prefs-client") { [self] in run() }
    thread.withLock { $0 = worker }
  }

  /// Ends the connection and its thread.
  func stop() {
    socket.value.end()
    finish()
    thread.withLock { $0.take() }?.join()
  }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  // MARK: - Requests

  /// Milliseconds that one who sends waits for room, where nothing else is said.
  private static let room: Int64 = 1000

  /// Sends a request that has no answer. One for which there is no room for a second is not sent: the
  /// owner has stopped, and has no use for it.
  func send(_ request: Request) {
    _ = transmit(request.frame(0), until: Instant.now.advanced(milliseconds: Self.room))
  }

  /// Sends a request; once it is sent the body gets its answer, or nil at the end of the connection.
  func post(
    _ request: Request, until deadline: Instant,
    then body: @escaping @Sendable (Message?) -> Void
  ) -> Transmission {
    let number = state.withLock { state -> UInt64? in
      guard !state.hasEnded else { return nil }
      state.lastNumber += 1
      state.bodies[state.lastNumber] = body
      return state.lastNumber
    }
    guard let number else { return .ended }
    let frame = request.frame(number)
    let sent = frame.count > Request.largest ? .tooLarge : transmit(frame, until: deadline)
    if sent != .sent { _ = state.withLock { $0.bodies.removeValue(forKey: number) } }
    return sent
  }

  /// Sends a request; the body gets its answer, or nil where there is none.
  func send(_ request: Request, then body: @escaping @Sendable (Message?) -> Void) {
    let deadline = Instant.now.advanced(milliseconds: Self.room)
    if post(request, until: deadline, then: body) != .sent { body(nil) }
  }

  /// The answer to a request. Throws `.ownerGone`, ETIMEDOUT after the deadline (nil: none), and the
  /// owner's refusal.
  func call(_ request: Request, until deadline: Instant?) throws(EngineError) -> Message {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.answers[state.lastNumber] = .some(nil)
      return state.lastNumber
    }
    defer { state.withLock { _ = $0.answers.removeValue(forKey: number) } }
    let frame = request.frame(number)
    guard frame.count <= Request.largest else {
      throw Self.tooLarge
    }
    switch transmit(frame, until: deadline) {
    case .sent: break
    case .late: throw Self.late
    case .ended:
      receiveRest(until: deadline)
      throw Self.gone
    case .tooLarge: throw Self.tooLarge
    }
    let answer = receive(until: deadline) { state -> Message? in state.answers[number] ?? nil }
    guard let answer else { throw hasEnded ? Self.gone : Self.late }
    if case .failed(let error) = answer { throw error }
    return answer
  }

  /// Takes what an owner who is gone has said before, to the end: a process without a thread for that would
  /// never hear of it.
  func receiveRest(until deadline: Instant?) {
    _ = receive(until: deadline) { _ -> Message? in nil }
  }

  /// Whether the owner answers, or did 5 ms ago; else he is asked, and the time waited for.
  func isAnswering(within milliseconds: Int64) -> Bool {
    let now = Instant.now
    if now.nanoseconds - heard.load(ordering: .relaxed) < Self.freshness { return !hasEnded }
    let before = heard.load(ordering: .relaxed)
    let mustPing = state.withLock { state in
      defer { state.isPinging = true }
      return !state.isPinging
    }
    if mustPing { send(.ping) { [state] _ in state.withLock { $0.isPinging = false } } }
    catchUp(until: now.advanced(milliseconds: milliseconds)) {
      heard.load(ordering: .relaxed) != before
    }
    return heard.load(ordering: .relaxed) != before && !hasEnded
  }

  /// Nanoseconds for which one who has said something is received to go on.
  private static let freshness: Int64 = 5_000_000

  static let gone = EngineError(.ownerGone, "the owner of the store is gone")

  static let tooLarge = EngineError(
    .system(.fileTooLarge), "a transaction of more than \(Request.largest >> 20) MiB; make several")

  static let late = EngineError(
    .system(.timedOut), "the owner of the store does not answer; is it stopped?")

  /// Sends a whole frame.
  private func transmit(_ frame: [UInt8], until deadline: Instant?) -> Transmission {
    let isOurs = state.wait(until: deadline) { state -> Bool? in
      if state.hasEnded { return false }
      guard !state.isSending else { return nil }
      state.isSending = true
      return true
    }
    guard let isOurs else { return .late }
    guard isOurs else { return .ended }
    defer { state.change { $0.isSending = false } }
    var rest = frame[...]
    while !rest.isEmpty {
      switch socket.value.send(rest) {
      case .moved(let count): rest = rest.dropFirst(count)
      case .ended: return .ended
      case .later:
        // A part of a frame that stays unsent is the end of the connection.
        guard socket.value.wait(until: deadline, sending: true) else {
          if rest.count < frame.count { socket.value.end() }
          return .late
        }
      }
    }
    return .sent
  }

  /// What became of a request.
  enum Transmission {
    /// The owner has it, or it waits where he takes it from.
    case sent
    /// There was no room before the deadline.
    case late
    /// The connection has.
    case ended
    /// No owner takes it.
    case tooLarge
  }
}
