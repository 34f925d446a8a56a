import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

/// One client's connection, as the owner has it.
///
/// Threads: `notify` and `answer` may be called by any thread, the rest by the server's. Messages
/// of several threads are sent one after the other, in the order of the calls. One lock, `state`;
/// the locks of `ListReader` and of the store are taken inside of it.
final class Connection: Sendable {
  struct State {
    var reader = FrameReader(largest: Request.largest)
    /// A descriptor that came, until the request comes that it belongs to.
    var file: SharedDescriptor?
    /// The requests that the client writes into memory, and not into the socket.
    var ring: RingRequests?
    /// Whether requests of the ring are being carried out: what is sent waits for the last of them.
    var isBatch = false
    /// The changes of the batch that were answered.
    var answered: [Origin] = []
    var outgoing = OutgoingBytes()
    /// The client's number; nil before hello, which agrees on the version of the messages.
    var client: UInt64?
    /// The mounts that the client has named on this connection.
    var mounts: [Author] = []
    var held = HeldRequests()
    /// Whether a change of the client is being carried out: its notice is sent with the answer.
    var isServed = false
    /// Whether the client receives nothing any more; the requests that it sent are still carried
    /// out.
    var isDeaf = false
    /// Whether the connection is over; the server's thread then removes it.
    var hasEnded = false

    /// Whether the client has got, or will get, everything that it was sent.
    var isDelivered: Bool { !outgoing.isWaiting && !hasEnded && !isDeaf }
    /// Whether so much waits for the client that its requests are not received.
    var isFull: Bool { held.isFull || outgoing.isFull }
  }

  /// The client's process, when it connected.
  let process: pid_t
  private let socket: SharedSocket
  unowned let server: Server
  private let bell: Wakeup
  private let errands: Errands
  let state = Mutex(State())

  init(
    _ socket: SharedSocket, process: pid_t, server: Server, bell: Wakeup, errands: Errands
  ) {
    (self.socket, self.process) = (socket, process)
    self.server = server
    self.bell = bell
    self.errands = errands
  }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// What the server's thread waits for: requests, unless too many are held or too many bytes wait;
  /// room, where bytes wait.
  var pollEntry: pollfd {
    let (hasEnded, events) = state.withLock { state in
      (state.hasEnded, (state.isFull ? 0 : POLLIN) | (state.outgoing.isWaiting ? POLLOUT : 0))
    }
    return pollfd(fd: hasEnded ? -1 : socket.value.number, events: Int16(events), revents: 0)
  }

  /// Whether the client is gone and everything that it had sent has been carried out: what a client
  /// has sent counts, even if it ends a moment later.
  var isOver: Bool { state.withLock { $0.hasEnded && $0.held.isEmpty } }

  /// Whether requests wait for lists to be read.
  var holdsRequests: Bool { state.withLock { !$0.held.isEmpty } }

  /// Marks the connection as over.
  func end() { state.withLock { $0.hasEnded = true } }

  /// Closes the connection of a client that is gone. Mounts that it has not removed are without a
  /// driver.
  func leave() {
    socket.value.end()
    for mount in state.withLock({ $0.mounts }) { server.places.loseMount(mount) }
  }

  // MARK: - Sending

  /// Sends a notice, unless the client has not said hello yet. The notice of the change that is
  /// being carried out for the client is kept until its answer is sent, so that the client wakes up
  /// once.
  func notify(_ frame: [UInt8], _ origin: Origin?) {
    state.withLock { state in
      guard let client = state.client else { return }
      let isHeld = state.isServed && origin?.client == client
      send(frame, isAnswer: false, &state, isHeld: isHeld)
    }
  }

  /// Sends the answer to the request of that number.
  /// - Parameter origin: the change that it answers. The change is over when the client will get
  ///   the answer even if this process ends: when all of it is in the socket.
  func answer(_ number: UInt64, _ message: Message, of origin: Origin? = nil) {
    let frame = message.answer(number)
    let isOver = state.withLock { state in
      state.isServed = false
      send(frame, isAnswer: true, &state)
      if let origin, state.isBatch { state.answered.append(origin) }
      return !state.isBatch && state.isDelivered
    }
    if let origin, isOver { server.places.noteAnswered(origin) }
  }

  /// Sends what waits, as far as there is room.
  func flush() { state.withLock { flush(&$0) } }

  /// - Parameter isHeld: whether the frame waits for the next one.
  private func send(
    _ frame: [UInt8], isAnswer: Bool, _ state: inout State, isHeld: Bool = false
  ) {
    guard !state.hasEnded, !state.isDeaf else { return }
    if state.outgoing.isOverfull {
      server.log("a client does not read what it is sent; its connection is ended")
      state.hasEnded = true
      bell.ring()
      return
    }
    state.outgoing.append(frame, isAnswer: isAnswer)
    if isHeld || state.isBatch { return }
    flush(&state)
    if state.outgoing.isWaiting { bell.ring() }
  }

  func flush(_ state: inout State) {
    while state.outgoing.isWaiting {
      switch socket.value.send(state.outgoing.next) {
      case .moved(let count): state.outgoing.didSend(count)
      case .later: return
      case .ended:
        state.isDeaf = true
        state.outgoing.removeAll()
        return
      }
    }
  }

  // MARK: - Requests

  /// Stops receiving: the client finds out that it cannot send, and asks the next owner.
  func endReceiving() { socket.value.endReceiving() }

  /// Carries out the requests that the client sent before `endReceiving`, those that wait for lists
  /// too.
  func drain() {
    while !hasEnded { _ = serve() }
    while holdsRequests {
      usleep(1000)
      serveHeld()
    }
  }

  /// Carries out the held requests that need not wait any longer.
  func serveHeld() {
    guard holdsRequests else { return }
    for held in state.withLock({ $0.held.removeOpen(server.lists) }) {
      carryOut(held.request, held.number)
    }
  }

  /// Receives, and carries out the requests that are complete. Bytes that are not a frame end the
  /// connection.
  /// - Parameter mayReceive: whether something may have come through the socket.
  /// - Returns: whether there was a request.
  func serve(mayReceive: Bool = true) -> Bool {
    var wasBusy = false
    let isOver = mayReceive && receive()
    // What is carried out below is answered, also if the client sends nothing any more.
    defer { if isOver { end() } }
    do {
      // What the client has written into the ring came before what it has sent.
      if mayReceive || hasRingRequests { wasBusy = try serveRing() }
      while let frame = try state.withLock({ state throws(ProtocolError) in try state.reader.next()
      }) {
        wasBusy = true
        try serve(frame)
      }
    } catch {
      server.log("a client was refused: \(error)")
      answer(0, .failed(EngineError(.system(.invalidArgument), "\(error)")))
      state.withLock { $0.ring = nil }
      end()
    }
    return wasBusy
  }

  /// - Returns: whether nothing more will come.
  private func receive() -> Bool {
    state.withLock { state in
      socket.value.receive(into: &state.reader.bytes, &state.file) == .ended
    }
  }

  /// Carries out the request in a frame. One that cannot be decoded is refused, and the connection
  /// goes on; it ends if the client has not said hello.
  func serve(_ frame: Frame) throws(ProtocolError) {
    let request: Request
    do {
      request = try Request(frame)
    } catch {
      guard state.withLock({ $0.client != nil }), frame.number != 0 else { throw error }
      server.log("a client was refused: \(error)")
      answer(frame.number, .failed(EngineError(.system(.invalidArgument), "\(error)")))
      return
    }
    try serve(request, frame.number, bytes: frame.payload.count)
  }

  private func serve(
    _ request: Request, _ number: UInt64, bytes: Int
  ) throws(ProtocolError) {
    if case .hello(let version, let client) = request {
      return try welcome(version, client, number)
    }
    guard state.withLock({ $0.client }) != nil else {
      throw ProtocolError("a request before hello")
    }
    if request == .ring { return try beginRing() }
    if state.withLock({ $0.held.keep(request, number, bytes: bytes, server.lists) }) { return }
    carryOut(request, number)
  }

  /// Carries out a request whose lists have been read, or could not be read in time.
  private func carryOut(_ request: Request, _ number: UInt64) {
    do throws(EngineError) {
      try request.refuseHung(server.lists)
    } catch {
      answer(number, .failed(error))
      return
    }
    switch request {
    case .hello, .ring, .look: break
    case .apply(let serial, let author, let deadline, let settles, let intents):
      guard let client = state.withLock({ $0.client }) else { return }
      let origin = Origin(client: client, serial: serial)
      apply(intents, author, origin, deadline, settles: settles, number)
    case .find(_, let locations) where locations.allSatisfy(server.places.isLoaded):
      answer(number, Self.answer(request, server.places))
    case .load, .loadAll, .find, .domains, .modified, .report: read(request, number)
    case .synchronize(let mounts): synchronize(mounts: mounts, number)
    case .ping: answer(number, .done)
    case .save(let location):
      server.places.save(location) { [weak self] failure in
        self?.answer(number, failure.map { .failed($0) } ?? .done)
      }
    case .mount(let author):
      state.withLock { $0.mounts.append(author) }
      server.places.addMount(author)
    case .unmount(let author):
      state.withLock { $0.mounts.removeAll { $0 == author } }
      server.places.removeMount(author)
    case .settle(let settlement, let version, let author):
      server.places.settle(settlement, through: version, by: author)
    case .await(let settlement, let version, let author):
      server.places.whenSettled(settlement, through: version, except: author) { [weak self] in
        self?.answer(number, .done)
      }
    }
  }

  /// Answers by a thread that may wait for a disk.
  private func read(_ request: Request, _ number: UInt64) {
    let isTaken = errands.read { [self] places in answer(number, Self.answer(request, places)) }
    guard !isTaken else { return }
    answer(
      number,
      .failed(
        EngineError(.system(.timedOut), "too many reads wait for threads that wait for a disk")))
  }

  private func synchronize(mounts: Bool, _ number: UInt64) {
    errands.synchronize { [self] failure in
      if let failure {
        answer(number, .failed(failure))
      } else if mounts {
        settleAll(number)
      } else {
        answer(number, .done)
      }
    }
  }

  /// Answers when every mount has settled the changes so far, or is silent.
  private func settleAll(_ number: UInt64) {
    let places = server.places
    places.whenSettled(.entries, through: places.version, except: Author(number: 0)) {
      [weak self] in self?.answer(number, .done)
    }
  }

  /// Answers hello: agrees on the version of the messages and passes the descriptor of the shared
  /// number.
  private func welcome(
    _ version: UInt32, _ client: UInt64, _ number: UInt64
  ) throws(ProtocolError) {
    guard version == Request.version, client != 0, let file = server.number.descriptor else {
      throw ProtocolError(
        "the program speaks version \(version) of the messages, the owner of the store "
          + "\(Request.version); end the mounts and prefsd of the older version")
    }
    let places = server.places
    state.withLock { state in
      // From here on the client gets a notice of every change after this version.
      let message = Message.welcome(version: places.version, isReadOnly: places.isReadOnly)
      let frame = message.frame(number)
      guard case .moved(let count) = socket.value.send(frame, with: file.value) else {
        state.hasEnded = true
        return
      }
      state.client = client
      state.outgoing.append(frame, isAnswer: true)
      state.outgoing.didSend(count)
    }
  }

  private func apply(
    _ intents: [Intent], _ author: Author, _ origin: Origin, _ deadline: Instant, settles: Bool,
    _ number: UInt64
  ) {
    state.withLock { $0.isServed = true }
    do throws(EngineError) {
      let changeset = try server.places.serve(
        intents, by: author, origin: origin, until: deadline)
      // Nobody waits for what a posted change did; its author gets the notice.
      if origin.isOrdered { return answer(number, .done, of: origin) }
      guard settles, !changeset.isEmpty else {
        return answer(number, .applied(changeset), of: origin)
      }
      server.places.whenSettled(
        .entries, through: changeset.version, except: Author(number: 0)
      ) { [self] in answer(number, .applied(changeset), of: origin) }
    } catch {
      answer(number, .failed(error))
    }
  }

  /// The answer to a request that reads. May wait for a disk.
  private static func answer(_ request: Request, _ places: LocalPlaces) -> Message {
    do throws(EngineError) {
      switch request {
      case .load(let location):
        let (domain, version) = try places.snapshot(of: location)
        return .snapshot(domain.contents, version: version)
      case .loadAll(let locations):
        let (domains, version) = try places.versionedSnapshots(of: locations)
        return .snapshots(domains.map(\.contents), version: version)
      case .find(let key, let locations):
        guard let found = try places.findFirst(key, in: locations) else {
          return .found(nil, index: 0)
        }
        let index = locations.firstIndex(of: found.location) ?? 0
        return .found(found.stored, index: UInt32(clamping: index))
      case .domains(let place): return .domains(try places.domains(in: place))
      case .report(let report): return .report(try places.report(report))
      case .modified(let location): return .time(try places.modified(location))
      case .hello, .apply, .synchronize, .save, .mount, .unmount, .settle, .await, .ping, .ring,
        .look:
        return .done
      }
    } catch {
      return .failed(error)
    }
  }
}
