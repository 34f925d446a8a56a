import Glibc
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

/// One connection to an owner: it sends requests, and receives their answers and notices.
///
/// Promises: messages are received in the order in which they came, by one thread at a time. When a
/// caller gets its answer, every message before the answer has been received and passed on.
///
/// Threads: any, and one of the link's own that receives messages while no caller does. A caller
/// receives messages itself, because waking another thread costs more than the request.
///
/// Locks: the monitor, under which nothing blocks; and `stream`, which only the thread that has set
/// `isReading` takes, so that no thread waits for it. `received` and the bodies of answers are
/// called under `stream`: they may send on this link, but must not wait for a message of it.
final class Link: Sendable {
  struct State {
    /// The number of the last request.
    var lastNumber: UInt64 = 0
    /// The request that was sent with the greeting, until a caller makes it.
    var early: Request?
    /// The requests for whose answers callers wait. They are few, and a new process would first
    /// have to make the type of a dictionary, which takes longer than to look through an array.
    var calls: [Call] = []
    /// Whether the answer to a ping is outstanding. There is one ping at a time.
    var isPinging = false
    /// Whether a thread is sending a frame. All others wait.
    var isSending = false
    /// What to call with the answers that no caller waits for, by the number of the request.
    var bodies: [UInt64: Body] = [:]
    /// The number of threads that wait for messages in `receive`.
    var callers = 0
    /// Hears when there is something to receive; nil if a thread of the link's own receives, or
    /// nobody.
    var receiver: DescriptorSet?
    /// Whether a thread is reading the stream. No other thread touches it.
    var isReading = false
    var hasEnded = false
  }

  /// A request for whose answer a caller waits.
  struct Call {
    let number: UInt64
    /// nil until the answer has come.
    var answer: Message?
    /// Until when the owner, which works at the request, may carry it out; nil if it has not said
    /// so.
    var workedAtUntil: Instant?
  }

  /// What to call with the answer to a request.
  struct Body {
    let call: @Sendable (Message?) -> Void
    /// Whether the request has been sent: until then, `post` says what became of it.
    var isSent = false
  }

  /// A request that is sent with the greeting, before there is a link.
  struct Early {
    static let number: UInt64 = 1
    let request: Request
    let frame: [UInt8]

    /// Nil for no request, and for one that may not fit into the socket at once.
    init?(_ request: Request?) {
      guard let request else { return nil }
      (self.request, frame) = (request, request.frame(Self.number))
      if frame.count > 16384 { return nil }
    }
  }

  let socket: SharedSocket
  let state: Monitor<State>
  /// Splits what comes into frames. Only the thread that has set `isReading` touches it.
  let stream: Mutex<FrameReader>
  let received: @Sendable (Message) -> Void
  let ended: @Sendable () -> Void
  private let thread = Mutex<WorkerThread?>(nil)
  /// When the last call ended, in nanoseconds of the monotonic clock.
  let called = Atomic<Int64>(0)
  /// When something came last, in nanoseconds of the monotonic clock.
  let heard = Atomic<Int64>(Instant.now.nanoseconds)

  /// - Parameters:
  ///   - rest: the bytes that have been received already.
  ///   - early: the request that was sent with the greeting.
  ///   - received: is called with each message that answers no request.
  ///   - ended: is called once, when the owner is gone.
  init(
    _ socket: SharedSocket, rest: FrameReader, early: Early? = nil,
    received: @escaping @Sendable (Message) -> Void, ended: @escaping @Sendable () -> Void
  ) {
    (self.socket, self.received, self.ended) = (socket, received, ended)
    var initial = State()
    if let early {
      (initial.early, initial.lastNumber) = (early.request, Early.number)
      initial.calls.append(Call(number: Early.number))
    }
    state = Monitor(initial)
    stream = Mutex(rest)
  }

  /// Has the receiver hear when there is something to receive, until the connection ends.
  /// - Returns: whether it does.
  func receive(by receiver: DescriptorSet) -> Bool {
    state.withLock { state in
      guard !state.hasEnded else { return true }
      guard (try? receiver.add(socket.value.number)) != nil else { return false }
      state.receiver = receiver
      return true
    }
  }

  /// Starts the link's own thread, so that notices are received also while there is no call.
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

  /// Milliseconds that a send without a deadline waits for room in the socket.
  private static let room: Int64 = 1000

  /// Sends a request that has no answer. If there is no room in the socket for 1 s, the owner is
  /// stopped, and the request is not sent.
  func send(_ request: Request) {
    _ = transmit(request.frame(0), until: Instant.now.advanced(milliseconds: Self.room))
  }

  /// Sends a request. If it was sent, the body is called once: with the answer, or with nil at the
  /// end of the connection. Otherwise the body is not called.
  func post(
    _ request: Request, until deadline: Instant,
    then body: @escaping @Sendable (Message?) -> Void
  ) -> Transmission {
    let number = state.withLock { state -> UInt64? in
      guard !state.hasEnded else { return nil }
      state.lastNumber += 1
      state.bodies[state.lastNumber] = Body(call: body)
      return state.lastNumber
    }
    guard let number else { return .ended }
    let frame = request.frame(number)
    let sent = frame.count > Request.largest ? .tooLarge : transmit(frame, until: deadline)
    let isLost = state.withLock { state in
      if sent == .sent, !state.hasEnded {
        state.bodies[number]?.isSent = true
        return false
      }
      return state.bodies.removeValue(forKey: number) != nil && sent == .sent
    }
    // The connection has ended since it was sent.
    if isLost { body(nil) }
    return sent
  }

  /// Sends a request, and waits for its answer until the deadline, and longer if the owner says
  /// that it works at the request; where the deadline is later than `Patience.usual`, for
  /// as long as the owner answers pings, or is busy. Throws `.ownerGone`, ETIMEDOUT without an
  /// answer, EFBIG for a request that is too large, and the owner's refusal.
  /// - Parameter staysForWork: whether the call goes on waiting after the deadline while the owner
  ///   works. It may have begun with the request, which it would refuse now.
  func call(
    _ request: Request, until deadline: Instant, staysForWork: Bool = false
  ) throws(EngineError) -> Message {
    let (number, isSent) = state.withLock { state in
      if state.early == request {
        state.early = nil
        return (Early.number, true)
      }
      state.lastNumber += 1
      state.calls.append(Call(number: state.lastNumber))
      return (state.lastNumber, false)
    }
    defer { state.withLock { $0.calls.removeAll { $0.number == number } } }
    let frame = isSent ? [] : request.frame(number)
    guard frame.count <= Request.largest else {
      throw Self.tooLarge
    }
    let soon = min(deadline, Patience.end)
    switch isSent ? .sent : transmit(frame, until: soon) {
    case .sent: break
    case .late: throw Self.late
    case .ended:
      receiveRest(until: soon)
      throw Self.gone
    case .tooLarge: throw Self.tooLarge
    }
    let answer =
      awaitAnswer(to: number, until: deadline) ?? (staysForWork ? awaitWork(on: number) : nil)
    guard let answer else { throw hasEnded ? Self.gone : Self.late }
    if case .failed(let error) = answer { throw error }
    return answer
  }

  /// Waits for the answer to a call. It may come late, because the owner waits for a slow disk.
  private func awaitAnswer(to number: UInt64, until deadline: Instant) -> Message? {
    var end = deadline
    while true {
      let answer = receive(until: min(end, Patience.end)) { state in
        state.calls.first { $0.number == number }?.answer
      }
      if answer != nil || hasEnded { return answer }
      let work = state.withLock { state in
        state.calls.first { $0.number == number }?.workedAtUntil
      }
      if let work, work > .now {
        end = max(end, work)
      } else {
        guard Instant.now < deadline, isAnswering(within: 1000) || isOwnerBusy else { return nil }
      }
    }
  }

  /// Whether the owner, which does not answer pings, carries out something that takes long: its
  /// process is neither stopped nor gone, and was heard of in the last minute.
  private var isOwnerBusy: Bool {
    let silence = Instant.now.nanoseconds - heard.load(ordering: .relaxed)
    return silence < Self.longestWork * 1_000_000 && !hasEnded && isWorking
  }

  /// Waits for the answer to a call for as long as the owner works, a minute at most.
  private func awaitWork(on number: UInt64) -> Message? {
    let end = Instant.now.advanced(milliseconds: Self.longestWork)
    var answer: Message?
    while answer == nil, !hasEnded, isWorking, Instant.now < end {
      answer = receive(until: Instant.now.advanced(milliseconds: 100)) { state in
        state.calls.first { $0.number == number }?.answer
      }
    }
    return answer
  }

  /// Milliseconds that a call waits for work after its deadline, or for a word from a busy owner.
  private static let longestWork: Int64 = 60_000

  /// Whether the owner's process is neither stopped nor gone: one that does not answer is busy.
  var isWorking: Bool {
    guard let process = socket.value.peer?.process else { return false }
    return ProcessFacts.isRunning(process)
  }

  /// Receives everything that an owner sent before it ended. A link that was not started has no
  /// thread that would do so.
  func receiveRest(until deadline: Instant) {
    receive(until: deadline) { _ -> Message? in nil }
  }

  /// Whether the owner answers: true if something came from it in the last 5 ms. Otherwise sends a
  /// ping, and waits that long for any message.
  func isAnswering(within milliseconds: Int64) -> Bool {
    let now = Instant.now
    if wasHeard { return !hasEnded }
    let before = heard.load(ordering: .relaxed)
    let mustPing = state.withLock { state in
      defer { state.isPinging = true }
      return !state.isPinging
    }
    if mustPing {
      let end = { @Sendable [state] (_: Message?) -> Void in
        state.withLock { $0.isPinging = false }
      }
      let sent = post(.ping, until: now.advanced(milliseconds: Self.room), then: end)
      if sent != .sent { end(nil) }
    }
    receive(until: now.advanced(milliseconds: milliseconds)) { _ in
      heard.load(ordering: .relaxed) != before ? true : nil
    }
    return heard.load(ordering: .relaxed) != before && !hasEnded
  }

  /// Whether something came from the owner in the last 5 ms.
  var wasHeard: Bool {
    Instant.now.nanoseconds - heard.load(ordering: .relaxed) < Self.freshness
  }

  /// Nanoseconds after a message for which the owner counts as answering.
  private static let freshness: Int64 = 5_000_000

  static let gone = EngineError(.ownerGone, "the owner of the store is gone")

  static let tooLarge = EngineError(
    .system(.fileTooLarge),
    "the request is larger than \(Request.largest >> 20) MiB; split it into several")

  static let late = EngineError(
    .system(.timedOut), "the owner of the store does not answer; is it stopped?")

  /// Sends a whole frame, after any frame that another thread is sending.
  func transmit(_ frame: [UInt8], until deadline: Instant) -> Transmission {
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
      case .ended:
        // Also after an error that may pass (ENOBUFS): a later frame must not overtake this one.
        socket.value.end()
        return .ended
      case .later:
        // If only a part of the frame was sent, the connection is of no more use.
        guard socket.value.wait(until: deadline, sending: true) else {
          if rest.count < frame.count { socket.value.end() }
          return .late
        }
      }
    }
    return .sent
  }

  /// What became of a request that was to be sent.
  enum Transmission {
    /// The whole request is in the socket, or the owner has received it.
    case sent
    /// There was no room in the socket before the deadline.
    case late
    /// The connection has ended.
    case ended
    /// The request is larger than any owner accepts.
    case tooLarge
  }
}
