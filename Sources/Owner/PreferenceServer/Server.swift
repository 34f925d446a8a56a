import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import StoreAccess
import Synchronization
import SystemCalls

/// The owner's side of the socket: serves the places of a store to other processes of the same
/// user.
///
/// Promises: every client is notified, in order, of the changes that concern it (`Interest`),
/// before they are answered; of others it hears nothing, and does not wake up. Its shared number is
/// raised between notice and answer: a client that still sees the old number may read what it
/// knows. A connection is ended, with no harm to others, if it is of another user, speaks another
/// version of the messages, sends bytes that are not a frame, or leaves more than 64 MiB unread.
///
/// Threads: the server's own waits for connections and requests, carries out changes, and ends the
/// waiting for silent mounts. It reads no list; what it does on a disk is to look at a list's file
/// with stat(2), to append to the journal, and to make a new journal file (fsync(2) of its
/// directory). Those of `readers` answer requests that read, that of `durable` makes the journal
/// durable, and those of `lists` read the lists that requests need. Notices are sent by the thread
/// that notifies the observers.
///
/// Locks: `state`; a connection's own, inside of `state` or without it; inside of a connection's,
/// for a look, those of `lists` and of the store. `thread` and the door's are held alone.
///
/// Half-broken states: a crash leaves the name of a socket at which no process listens; the next
/// owner, which holds the store's lock, replaces it. A socket whose name or directory was removed
/// is made anew (`Door`).
public final class Server: Sendable {
  /// What to call when the journal is durable, or with the error if it could not be made so.
  typealias Synchronised = @Sendable (EngineError?) -> Void

  let places: LocalPlaces
  let number: SharedNumber
  let log: @Sendable (LogLine) -> Void
  /// Has other threads read the lists that requests need.
  let lists: ListReader
  private let door: Door
  /// Wakes the server's thread up.
  let wakeup: Wakeup
  /// They answer requests that may wait for a disk.
  let readers = BlockingThreads(name: "prefs-reading", most: 16)
  /// Makes the journal durable, once for all the requests that came before it began.
  let durable = BatchWorker<[Synchronised]>()
  private let state: Mutex<State>
  private let thread = Mutex<WorkerThread?>(nil)

  private struct State {
    var connections: [Connection] = []
    var isStopping = false
    /// The processes that do not count as clients: they are there only because the owner is.
    var companions: Set<pid_t> = []
    var idleSince = Instant.now
    /// Whether `idled` has been called since the last client left, or none ever was there.
    var isIdleTold = true
    /// What to call when there has been no client for a second.
    var idled: (@Sendable () -> Void)?
    /// Whether the store, which is only read, is given up, and what to call then.
    var isGivenUp = false
    var givenUp: (@Sendable () -> Void)?
    /// The shared numbers that no client has.
    var freeIndices = Array(1..<SharedNumber.count)
    /// When connections are accepted again, after the process had no descriptors left.
    var acceptAfter: Instant?

    /// Whether no process but the companions is connected.
    var hasNoClient: Bool { connections.allSatisfy { companions.contains($0.process) } }
  }

  /// Begins to serve.
  /// - Parameters:
  ///   - paths: paths for the socket. The first one that can be made is used; a file there is
  ///     replaced.
  ///   - note: the file that the socket's path is written to; nil if it is written nowhere.
  public init(
    places: LocalPlaces, paths: [String], note: String? = nil,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(SystemError) {
    self.places = places
    self.log = log
    lists = ListReader(places)
    number = try SharedNumber()
    number.raise(to: places.version)
    door = try Door(paths, opensAll: !places.isReadOnly, note: note, log: log)
    wakeup = try Wakeup()
    state = Mutex(State())
    try durable.start(name: "prefs-durable") { waiting in
      var failure: EngineError?
      do throws(EngineError) { try places.makeDurable() } catch { failure = error }
      for answer in waiting { answer(failure) }
    }
    lists.whenRead { [weak self] in self?.serveReads() }
    places.settlements.onEarlierExpiry { [wakeup] in wakeup.signal() }
    places.observe(except: nil) { [weak self] notice in self?.notify(notice) }
    let worker = try WorkerThread(name: "prefs-server") { [self] in
      number.bindToThread()
      run()
    }
    thread.withLock { $0 = worker }
  }

  /// Carries out the requests that clients have sent so far, and ends every connection. No request
  /// is carried out after it returns.
  public func stop() {
    state.withLock { $0.isStopping = true }
    wakeup.signal()
    thread.withLock { $0.take() }?.join()
    // Threads that are reading are not waited for: their clients are gone.
    durable.beginStop()
    durable.join()
    // The name stays: the next owner, which may be there already, replaces it.
  }

  /// Since when there has been no client; nil if there is one.
  public var idleSince: Instant? {
    state.withLock { $0.hasNoClient ? $0.idleSince : nil }
  }

  /// Whether the owner runs a process of its own.
  var hasCompanion: Bool { state.withLock { !$0.companions.isEmpty } }

  /// Has the body called, by the server's thread, each time when a client has left and there has
  /// been none for a second since.
  func whenIdle(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.idled = body }
  }

  /// Calls the body of `whenIdle` if that is due.
  /// - Returns: when it is; nil if not before a client has left.
  private func tellIdle(_ now: Instant) -> Instant? {
    let (due, body) = state.withLock { state -> (Instant?, (@Sendable () -> Void)?) in
      guard !state.isIdleTold, state.hasNoClient else { return (nil, nil) }
      let due = state.idleSince.advanced(milliseconds: Self.idlePause)
      guard due <= now else { return (due, nil) }
      state.isIdleTold = true
      return (nil, state.idled)
    }
    body?()
    return due
  }

  /// Milliseconds for which there must be no client: those that come one after the other wake no
  /// other thread up.
  private static let idlePause: Int64 = 1000

  /// Notes a process that does not count as a client for `idleSince`, because the owner runs it
  /// itself, or that it has ended.
  func setCompanion(_ process: pid_t, _ isThere: Bool) {
    state.withLock { state in
      if isThere { state.companions.insert(process) } else { state.companions.remove(process) }
    }
  }

  /// Has the body called once, by any thread, when the store is given up.
  func whenGivenUp(_ body: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      state.givenUp = body
      return state.isGivenUp
    }
    if isLate { body() }
  }

  /// Gives up a store that is only read, for a process that owns it: refuses clients from now on.
  func giveUp() {
    door.close()
    let body = state.withLock { state in
      defer { state.isGivenUp = true }
      return state.isGivenUp ? nil : state.givenUp
    }
    body?()
  }

  /// Writes the socket's path again: the state directory was made anew.
  func writeNote() { door.writeNote() }

  // MARK: - Notices

  private func notify(_ notice: Notice) {
    let connections = state.withLock { $0.connections }
    if !connections.isEmpty {
      let changeset = notice.changeset
      let frame = Message.notice(notice).frame(0)
      let domains = changeset.concernsAll ? nil : Set(changeset.items.map(\.location.domain))
      for connection in connections { connection.notify(notice, frame, domains) }
    }
    number.raise(to: notice.changeset.version)
  }

  /// Gives a client a shared number of its own; 0 if there is none left.
  func takeIndex() -> Int { state.withLock { $0.freeIndices.popLast() ?? 0 } }

  // MARK: - The server's thread

  private func run() {
    var lastRequest = Instant.now
    while !state.withLock({ $0.isStopping }) {
      let connections = state.withLock { $0.connections }
      let isBusy = Polling.looksAgain(since: lastRequest)
      var entries = [pollfd(fd: wakeup.number, events: Int16(POLLIN), revents: 0)]
      let isFull = state.withLock { $0.acceptAfter.map { $0 > .now } ?? false }
      entries.append(pollfd(fd: isFull ? -1 : door.number, events: Int16(POLLIN), revents: 0))
      entries.append(pollfd(fd: door.watchNumber, events: Int16(POLLIN), revents: 0))
      entries += connections.map(\.pollEntry)
      let isHolding = connections.contains(where: \.holdsRequests)
      let expiry = [places.settlements.expire(.now), tellIdle(.now)].compactMap { $0 }.min()
      let pause = isFull || isHolding ? CInt(Self.shortPause) : door.pause
      let timeout = isBusy ? 0 : Self.pause(pause, until: expiry)
      let count = poll(&entries, nfds_t(entries.count), timeout)
      if entries[2].revents != 0 || (count == 0 && !isBusy) { lookAtDoor() }
      // Before the look at what was read, or a list that comes meanwhile would not be noticed.
      if entries[0].revents != 0 { wakeup.clear() }
      if isHolding {
        serveHeld(connections)
        removeEnded()
      } else {
        lists.forget()
      }
      if entries[1].revents != 0 { accept() }
      for (connection, entry) in zip(connections, entries.dropFirst(3)) where entry.revents != 0 {
        connection.flush()
        if entry.revents & ~Int16(POLLOUT) != 0, connection.serveSocket() { lastRequest = .now }
      }
      if count > 0 { removeEnded() }
    }
    // A client that connects from here on is refused at once.
    door.close()
    let last = state.withLock { $0.connections }
    for connection in last { connection.endReceiving() }
    for connection in last {
      connection.drain()
      connection.end()
    }
    removeEnded()
  }

  /// Milliseconds until the moment, at most `longest`; -1: for ever.
  private static func pause(_ longest: CInt, until end: Instant?) -> CInt {
    guard let end else { return longest }
    let pause = CInt(clamping: end.milliseconds(after: .now))
    return longest < 0 ? pause : min(longest, pause)
  }

  private func lookAtDoor() {
    // Another process that has replaced the socket owns the store.
    if places.isReadOnly { if door.isReplaced { giveUp() } } else { door.look() }
  }

  /// Milliseconds for which no connection is accepted when no descriptors are left; also those
  /// between two looks whether a list that requests wait for is late.
  private static let shortPause: Int64 = 200

  /// Answers the held requests for lists that this thread has just read: the client gets them
  /// without another thread. Other held requests are the server's.
  private func serveReads() {
    let connections = state.withLock { $0.connections }
    for connection in connections { connection.serveReads() }
    if connections.contains(where: \.holdsRequests) { wakeup.signal() }
  }

  /// Carries out the held requests whose lists have been read, or are late.
  private func serveHeld(_ connections: [Connection]) {
    for connection in connections { connection.serveHeld() }
    lists.forget(isAwaited: connections.contains(where: \.holdsRequests))
  }

  /// Descriptors that clients may not take: lists, the journal and threads need some.
  private static let reserved: UInt = 24

  /// The fewest clients that a limit must leave room for: a mount, its guard's successor, commands.
  private static let fewestClients = 8

  /// Throws where the limit of open files leaves room for hardly any client.
  public static func requireDescriptors() throws(EngineError) {
    guard mostClients < fewestClients else { return }
    let needed = Int(reserved) + fewestClients
    throw EngineError(
      .system(.tooManyOpen),
      "prefsd needs \(needed) open files, and its limit is lower; raise it (ulimit -n)")
  }

  /// How many clients there may be.
  private static var mostClients: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
    return Int(clamping: limit.rlim_cur) - Int(reserved)
  }

  private func accept() {
    if state.withLock({ $0.isGivenUp }) { return }
    do throws(SystemError) {
      while let socket = try door.accept() {
        guard let peer = socket.peer, peer.user == geteuid() else {
          log("a connection of another user was refused")
          continue
        }
        guard state.withLock({ $0.connections.count }) < max(Self.mostClients, Self.fewestClients)
        else {
          log("a client was refused: too many clients (see ulimit -n)")
          let refusal = EngineError(
            .system(.tooManyOpen),
            "prefsd has as many clients as its limit of open files allows; raise it (ulimit -n)")
          _ = socket.send(Message.failed(refusal).frame(1)[...])
          continue
        }
        let connection = Connection(SharedSocket(socket), process: peer.process, server: self)
        state.withLock { state in
          state.connections.append(connection)
          places.noteClients(state.connections.count)
        }
      }
    } catch {
      log("a connection could not be accepted: \(error)")
      state.withLock { $0.acceptAfter = Instant.now.advanced(milliseconds: Self.shortPause) }
    }
  }

  private func removeEnded() {
    let ended = state.withLock { $0.connections.filter(\.isOver) }
    // First, so that a change waits for their mounts all the time.
    for connection in ended { connection.leave() }
    guard !ended.isEmpty else { return }
    let indices = ended.map(\.index).filter { $0 != 0 }
    state.withLock { state in
      state.connections.removeAll { connection in ended.contains { $0 === connection } }
      state.freeIndices += indices
      places.noteClients(state.connections.count)
      if ended.contains(where: { !state.companions.contains($0.process) }), state.hasNoClient {
        (state.idleSince, state.isIdleTold) = (.now, false)
      }
    }
  }
}
