import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import PreferenceStore
import StoreAccess
import Synchronization
import SystemCalls

/// One client's connection, as the owner has it.
///
/// Threads: `notify` and `answer` may be called by any thread, the rest by the server's. Messages
/// of several threads are sent one after the other, in the order of the calls. One lock, `state`;
/// the locks of `ListReader`, of the store and of `Settlements` are taken inside of it.
final class Connection: Sendable {
  struct State {
    var reader = FrameReader(largest: Request.largest)
    /// Whether requests are being carried out: what is sent waits for the end of the batch.
    var isBatch = false
    /// The changes whose answers wait to be sent.
    var answered: [Origin] = []
    var outgoing = OutgoingBytes()
    /// The client's number; nil before hello, which agrees on the version of the messages.
    var client: UInt64?
    /// Which changes the client is told of.
    var interest = Interest(inAll: true)
    /// The version of the last change that it was told of: by a notice, or as one before `welcome`.
    var told: UInt64 = 0
    /// Which of the server's numbers says that in shared memory; 0 means the one for all changes.
    var index = 0
    /// Nanoseconds by which the client's monotonic clock is behind ours: it may be in a different
    /// time namespace (time_namespaces(7)).
    var clockOffset: Int64 = 0
    /// What the history says of changes that the client asks for; nil if it has asked for none.
    var source: ChangeSource?
    /// The mounts that the client has named on this connection.
    var mounts: [Author] = []
    var held = HeldRequests()
    /// Whether the client receives nothing any more; the requests that it sent are still carried
    /// out.
    var isDeaf = false
    /// Whether the client sees other directories under the store's names: it finds that out by the
    /// answer to hello, and nothing that it has sent with hello is carried out.
    var isElsewhere = false
    /// Whether the connection is over; the server's thread then removes it.
    var hasEnded = false

    /// Removes and returns the changes whose answers the client has got, or will get.
    mutating func removeDelivered() -> [Origin] {
      guard !isBatch, !outgoing.isWaiting, !hasEnded, !isDeaf, !answered.isEmpty else { return [] }
      defer { answered = [] }
      return answered
    }

    /// Whether so much waits for the client that its requests are not received.
    var isFull: Bool { held.isFull || outgoing.isFull }
  }

  /// The client's process, when it connected.
  let process: pid_t
  private let socket: SharedSocket
  unowned let server: Server
  let state = Mutex(State())

  init(_ socket: SharedSocket, process: pid_t, server: Server) {
    (self.socket, self.process) = (socket, process)
    self.server = server
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

  /// Which shared number is the client's; 0 if there is none.
  var index: Int { state.withLock { $0.index } }

  /// Whether requests wait for lists to be read.
  var holdsRequests: Bool { state.withLock { !$0.held.isEmpty } }

  /// Marks the connection as over.
  func end() { state.withLock { $0.hasEnded = true } }

  /// Closes the connection of a client that is gone. Mounts that it has not removed are without a
  /// driver.
  func leave() {
    socket.value.end()
    for mount in state.withLock({ $0.mounts }) { server.places.settlements.lose(mount) }
  }

  // MARK: - Sending

  /// Sends the frame of a notice, if the change concerns the client and it has said hello. Changes
  /// wait for its mounts then, but for the author's.
  /// - Parameter domains: those that are changed; nil if every client is told.
  func notify(_ notice: Notice, _ frame: [UInt8], _ domains: Set<DomainName>?) {
    let version = notice.changeset.version
    state.withLock { state in
      guard let client = state.client else { return }
      if notice.origin?.client == client {
        state.interest.add(domains ?? Set(notice.changeset.locations.map(\.domain)))
      } else if let domains, !state.interest.contains(anyOf: domains) {
        return
      }
      state.told = max(state.told, version)
      server.places.settlements.expect(version, of: state.mounts, except: notice.author)
      send(frame, isAnswer: false, &state)
      server.number.raise(to: version, at: state.index)
    }
  }

  /// Sends the answer to the request of that number.
  /// - Parameter origin: the change that it answers. The change is over when the client will get
  ///   the answer even if this process ends: when all of it is in the socket.
  func answer(_ number: UInt64, _ message: Message, of origin: Origin? = nil) {
    let frame = message.answer(number)
    let delivered = state.withLock { state in
      if let origin { state.answered.append(origin) }
      send(frame, isAnswer: true, &state)
      return state.removeDelivered()
    }
    for origin in delivered { server.places.store.noteAnswered(origin) }
  }

  /// Sends what waits, as far as there is room, and has the store forget the changes whose answers
  /// the client will get even if this process ends.
  func flush() {
    let delivered = state.withLock { state in
      flush(&state)
      return state.removeDelivered()
    }
    for origin in delivered { server.places.store.noteAnswered(origin) }
  }

  private func send(_ frame: [UInt8], isAnswer: Bool, _ state: inout State) {
    guard !state.hasEnded, !state.isDeaf else { return }
    if state.outgoing.isOverfull {
      server.log("a client does not read its messages; it was disconnected")
      state.hasEnded = true
      server.wakeup.signal()
      return
    }
    state.outgoing.append(frame, isAnswer: isAnswer)
    if state.isBatch { return }
    flush(&state)
    if state.outgoing.isWaiting { server.wakeup.signal() }
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
    while !hasEnded { _ = serveSocket() }
    while holdsRequests {
      usleep(1000)
      serveHeld()
    }
  }

  /// Answers the held requests for lists that have been read. Any thread that may wait for a disk
  /// may call it.
  func serveReads() {
    for held in state.withLock({ $0.held.removeOpen(server.lists, onlyLoads: true) }) {
      if case .loadLists(let load) = held.request {
        answer(held.number, with: load, mayWait: true)
      }
    }
  }

  /// Carries out the held requests that need not wait any longer.
  func serveHeld() {
    guard holdsRequests else { return }
    // First: those that are made now may take a while, too.
    for number in state.withLock({ $0.held.renewLeases() }) { answer(0, .working(on: number)) }
    for held in state.withLock({ $0.held.removeOpen(server.lists) }) {
      carryOutRequest(held.request, held.number, held.lease)
    }
  }

  /// Receives, and carries out the requests that are complete, in batches: the answers of a batch,
  /// and the notices of its changes, are sent together, so that the client wakes up once for all of
  /// them. Bytes that are not a frame end the connection.
  /// - Returns: whether there was a request.
  func serveSocket() -> Bool {
    var wasBusy = false
    let isOver = receive()
    // What is carried out below is answered, also if the client sends nothing any more.
    defer { if isOver { end() } }
    do {
      while try serveBatch() { wasBusy = true }
    } catch {
      server.log("a client was refused: \(error)")
      answer(0, .failed(EngineError(.system(.invalidArgument), "\(error)")))
      end()
    }
    return wasBusy
  }

  /// The most requests of a batch. The client reads none of their changes before the last of them
  /// is carried out.
  private static let mostInBatch = 32

  /// - Returns: whether there was a request.
  private func serveBatch() throws(ProtocolError) -> Bool {
    state.withLock { $0.isBatch = true }
    defer { endBatch() }
    for index in 0..<Self.mostInBatch {
      let next = try state.withLock { state throws(ProtocolError) in try state.reader.next() }
      guard let next else { return index > 0 }
      try serveFrame(next)
    }
    return true
  }

  /// Sends what the batch has to send.
  private func endBatch() {
    state.withLock { $0.isBatch = false }
    flush()
    if state.withLock({ $0.outgoing.isWaiting }) { server.wakeup.signal() }
  }

  /// - Returns: whether nothing more will come.
  private func receive() -> Bool {
    state.withLock { state in
      // No request comes with a descriptor.
      return socket.value.receive(into: &state.reader.bytes) == .ended
    }
  }

  /// Carries out the request in a frame. One that cannot be decoded is refused, and the connection
  /// goes on; it ends if the client has not said hello.
  func serveFrame(_ frame: Frame) throws(ProtocolError) {
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
    if case .hello(let version, let client, let clock, let identity, let hearsAll) = request {
      return try welcome(version, client, clock, identity, hearsAll, number)
    }
    let (client, isElsewhere, hasEnded) = state.withLock { state in
      // Before the store is asked: a change that comes later is told.
      state.interest.add(request.named.lazy.map(\.domain))
      return (state.client, state.isElsewhere, state.hasEnded)
    }
    // What a client has sent before it ended is carried out, but not what came with a hello that it
    // did not wait for.
    if isElsewhere || client == nil && hasEnded { return }
    guard client != nil else { throw ProtocolError("a request before hello") }
    let lease = lease(of: request)
    let isHeld = state.withLock {
      $0.held.keep(request, number, bytes: bytes, lease: lease, server.lists)
    }
    if !isHeld { carryOutRequest(request, number, lease) }
  }

  /// Until when a change may be made, by this process's clock; nil if the request makes no change.
  private func lease(of request: Request) -> Lease? {
    guard case .apply(_, _, let deadline, _, _, _) = request else { return nil }
    return Lease(until: deadline.advanced(nanoseconds: state.withLock { $0.clockOffset }))
  }

  /// Carries out a request whose lists have been read, or could not be read in time.
  private func carryOutRequest(_ request: Request, _ number: UInt64, _ lease: Lease?) {
    do throws(EngineError) {
      try request.refuseHung(server.lists)
    } catch {
      answer(number, .failed(error))
      return
    }
    switch request {
    case .hello: break
    case .apply(let serial, let author, _, let answering, let intents, let source):
      guard let lease, let client = state.withLock({ $0.client }) else { return }
      let origin = Origin(client: client, serial: serial)
      apply(intents, author, origin, lease.end, answering, self.source(source), number)
    case .find(_, let locations) where locations.allSatisfy(server.places.isLoaded):
      answer(number, Self.answer(request, server.places))
    case .loadLists(let load): answer(number, with: load, mayWait: false)
    case .load, .loadAll, .find, .domains, .modified, .report:
      read(number) { [self] places in answer(number, Self.answer(request, places)) }
    case .synchronize(let mounts): synchronize(mounts: mounts, number)
    case .ping: answer(number, .done)
    case .save(let location):
      server.places.save(location) { [weak self] failure in
        self?.answer(number, failure.map { .failed($0) } ?? .done)
      }
    case .mount(let author, let claims):
      let settlements = server.places.settlements
      settlements.add(author, at: state.withLock { $0.told }, claims: claims)
      state.withLock { state in
        state.mounts.append(author)
        // What the client was told of meanwhile.
        settlements.expect(state.told, of: [author], except: nil)
      }
    case .claim(let name, let author):
      server.places.settlements.claim(name, by: author) { [weak self] isGiven in
        self?.answer(number, isGiven ? .done : .failed(Self.claimed))
      }
    case .release(let name, let author):
      server.places.settlements.release(name, by: author)
      answer(number, .done)
    case .unmount(let author):
      let (isOwn, own) = state.withLock { state in
        defer { state.mounts.removeAll { $0 == author } }
        return (state.mounts.contains(author), state.mounts.last)
      }
      // A driver names the mount of its predecessor.
      if !isOwn, let own {
        server.places.settlements.succeed(author, by: own)
      } else {
        server.places.settlements.remove(author)
      }
    case .settle(let settlement, let version, let author):
      server.places.settlements.settle(settlement, through: version, by: author)
    }
  }

  private static let claimed = EngineError(
    .system(.fileExists), "another mount has claimed the name")

  /// Answers with lists, which have been read, or could not be read in time.
  /// - Parameter mayWait: whether this thread may wait for a disk. If not, another one answers,
  ///   unless all lists are in memory.
  private func answer(_ number: UInt64, with load: ListLoad, mayWait: Bool) {
    let (lists, places) = (server.lists, server.places)
    let all = load.locations.map { ($0, finding: lists.finding($0)) }
    let isAbsent = all.allSatisfy { _, finding in
      finding.map { $0.modified == nil && $0.error == nil } ?? false
    }
    if isAbsent, !load.evenIfAbsent { return answer(number, .lists(all.map { _ in .missing })) }
    let body = { @Sendable [self] () -> Void in
      answer(number, .lists(all.map { Self.list($0, $1, places) }))
    }
    if mayWait || load.locations.allSatisfy(places.isLoaded) {
      body()
    } else {
      read(number) { _ in body() }
    }
  }

  private static func list(
    _ location: Location, _ finding: ListFinding?, _ places: LocalPlaces
  ) -> Message.LoadedList {
    do throws(EngineError) {
      if let error = finding?.error { throw error }
      let (domains, version) = try places.store.lists.versionedSnapshots(of: [location])
      return .contents(domains[0].contents, version: version)
    } catch {
      // A list in memory that cannot be read any more is there.
      let known = finding == nil ? (try? places.modified(location)) ?? .now : finding?.modified
      return .failed(error, modified: known)
    }
  }

  /// Answers by a thread that may wait for a disk.
  private func read(_ number: UInt64, _ body: @escaping @Sendable (LocalPlaces) -> Void) {
    let places = server.places
    guard !server.readers.run({ body(places) }) else { return }
    answer(
      number,
      .failed(
        EngineError(.system(.timedOut), "the disk does not answer, and too many reads wait for it"))
    )
  }

  private func synchronize(mounts: Bool, _ number: UInt64) {
    let answered: Server.Synchronised = { [self] failure in
      if let failure {
        answer(number, .failed(failure))
      } else if mounts {
        settleAll(number)
      } else {
        answer(number, .done)
      }
    }
    server.durable.put { $0.append(answered) }
  }

  /// Answers when every mount has settled the changes so far, or is silent.
  private func settleAll(_ number: UInt64) {
    let places = server.places
    places.settlements.whenSettled(
      .entries, through: places.version, except: Author(number: 0)
    ) { [weak self] in self?.answer(number, .done) }
  }

  /// Answers hello: agrees on the version of the messages and passes the descriptor of the shared
  /// number.
  private func welcome(
    _ version: UInt32, _ client: UInt64, _ clock: Instant, _ identity: StoreIdentity,
    _ hearsAll: Bool, _ number: UInt64
  ) throws(ProtocolError) {
    guard version >= Request.oldest else {
      throw ProtocolError(
        "the program speaks version \(version) of the messages, and prefsd no version before "
          + "\(Request.oldest); upgrade the program, or build it again with this library")
    }
    guard client != 0, let file = server.number.descriptor else {
      throw ProtocolError("the client has no number")
    }
    let places = server.places
    let offset = Instant.now.nanoseconds(after: clock)
    let index = hearsAll ? 0 : server.takeIndex()
    state.withLock { state in
      (state.index, state.told) = (index, places.version)
      state.interest = Interest(inAll: index == 0)
      // In one time namespace it is the time that the message took.
      state.clockOffset = offset.magnitude < Self.largestDelay ? 0 : offset
      // From here on the client gets the notices of changes after this version.
      let message = Message.welcome(
        version: state.told, isReadOnly: places.isReadOnly, places.identity,
        protocol: Request.version, number: UInt32(index))
      let frame = message.frame(number)
      guard case .moved(let count) = socket.value.send(frame, with: file.value) else {
        state.hasEnded = true
        return
      }
      state.client = client
      state.isElsewhere = !places.identity.agrees(with: identity)
      state.outgoing.append(frame, isAnswer: true)
      state.outgoing.didSend(count)
    }
  }

  /// Nanoseconds: two clocks that differ by more are of different time namespaces.
  private static let largestDelay: UInt64 = 1_000_000_000

  private func apply(
    _ intents: [Intent], _ author: Author, _ origin: Origin, _ deadline: Instant,
    _ answering: Request.Answering, _ source: ChangeSource, _ number: UInt64
  ) {
    if server.places.isReadOnly, !intents.isEmpty {
      // The client finds, or starts, an owner that writes.
      answer(number, .failed(EngineError(.ownerGone, "prefsd cannot write this store, and ends")))
      return server.giveUp()
    }
    do throws(EngineError) {
      let changeset = try server.places.serve(
        intents, by: author, origin: origin, from: source, until: deadline)
      // Nobody waits for what a posted change did; its author gets the notice.
      if origin.isOrdered { return answer(number, .done, of: origin) }
      let all = Author(number: 0)
      switch changeset.isEmpty ? .atOnce : answering {
      case .atOnce: answer(number, .applied(changeset, isSettled: true), of: origin)
      case .whenSettled:
        server.places.settlements.whenSettled(
          .entries, through: changeset.version, except: all
        ) { [self] in answer(number, .applied(changeset, isSettled: true), of: origin) }
      case .inTwoSteps: answerInTwoSteps(changeset, author, origin, number)
      }
    } catch {
      answer(number, .failed(error))
    }
  }

  /// Returns what the history says of who asks for a change. Cost: for the first change of a
  /// connection that is not a mount's, some files of proc(5).
  private func source(_ said: ChangeSource?) -> ChangeSource {
    var source = facts(of: said)
    source.because = said?.because ?? ""
    // No client of this project says more.
    if source.because.utf8.count > ChangeSource.longestReason { source.because = "" }
    return source
  }

  private func facts(of said: ChangeSource?) -> ChangeSource {
    if let said, said.via == .mount, said.program.utf8.count <= 4096, said.unit.utf8.count <= 256 {
      return said
    }
    if let known = state.withLock({ $0.source }), said == nil || said?.via == known.via {
      return known
    }
    let facts = ProcessFacts(ofThread: process)
    let name = facts.program.split(separator: "/").last.map(String.init)
    var source = said ?? ChangeSource(Self.ways[name ?? ""] ?? .library)
    (source.user, source.process) = (UInt32(geteuid()), facts.process)
    (source.program, source.unit) = (facts.program, facts.unit)
    source.because = ""
    state.withLock { $0.source = source }
    return source
  }

  /// The ways of programs that are clients, by their names; others have the library.
  private static let ways: [String: ChangeSource.Via] = [
    "defaults": .command, "prefs-cloud": .cloud,
  ]

  private func answerInTwoSteps(
    _ changeset: Changeset, _ author: Author, _ origin: Origin, _ number: UInt64
  ) {
    let version = changeset.version
    let settlements = server.places.settlements
    let isSettled = settlements.isSettled(.attributes, through: version, except: author)
    answer(number, .applied(changeset, isSettled: isSettled), of: origin)
    guard !isSettled else { return }
    settlements.whenSettled(.attributes, through: version, except: author) { [weak self] in
      self?.answer(0, .settled(through: version))
    }
  }

  /// The answer to a request that reads. May wait for a disk.
  private static func answer(_ request: Request, _ places: LocalPlaces) -> Message {
    do throws(EngineError) {
      switch request {
      case .load(let location):
        let (domains, version) = try places.store.lists.versionedSnapshots(of: [location])
        return .snapshot(domains[0].contents, version: version)
      case .loadAll(let locations):
        let (domains, version) = try places.store.lists.versionedSnapshots(of: locations)
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
      case .hello, .apply, .synchronize, .save, .mount, .unmount, .settle, .ping, .loadLists,
        .claim, .release:
        return .done
      }
    } catch {
      return .failed(error)
    }
  }
}
