import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import Synchronization
import SystemCalls

/// The owner's side: serves the places of a store to other processes of the same user.
///
/// Promises: a client of another user, of another version, or that sends what is no request is
/// refused, with no harm to others; so is one that does not take what it is sent (after 64 MiB nothing
/// is added to what waits for it). Every client is told of every change, in order, before whoever made
/// it gets his answer; the shared number is raised between the two, so that a reader who sees the old number may
/// read what he knows.
///
/// Threads: the server's own, which waits for connections and requests, and for no disk; the errands', which read
/// and wait for fsync(2), and those of `lists`; notices come on the thread of whoever made the change. Locks:
/// `state`; a connection's own, inside of it or alone; the lock of `lists` inside of a connection's.
///
/// Half-broken states: the name of a socket that nobody listens at is what a crash leaves; the next
/// owner, which has the store's lock, replaces it. A socket whose name, or directory, was removed is made
/// anew (`Door`).
public final class Server: Sendable {
  let places: LocalPlaces
  let number: SharedNumber
  let log: @Sendable (String) -> Void
  /// Has lists read that requests need.
  let lists: ListReader
  private let door: Door
  /// Rung when the first client comes and when the last one goes.
  let clientsBell: Wakeup
  private let bell: Wakeup
  private let errands: Errands
  private let state: Mutex<State>
  private let thread = Mutex<WorkerThread?>(nil)

  private struct State {
    var connections: [Connection] = []
    var isStopping = false
    var idleSince = Instant.now
    /// Before then nobody is accepted: there were no descriptors.
    var acceptAfter: Instant?
  }

  /// Begins to serve.
  /// - Parameters:
  ///   - paths: names for the socket; the first that can be made is used. What is there is replaced.
  ///   - note: the file that says which; nil: nobody needs to be told.
  public init(
    places: LocalPlaces, paths: [String], note: String? = nil,
    log: @escaping @Sendable (String) -> Void
  ) throws(SystemError) {
    self.places = places
    self.log = log
    lists = ListReader(places)
    number = try SharedNumber()
    number.raise(to: places.version)
    door = try Door(paths, note: note, log: log)
    clientsBell = try Wakeup()
    bell = try Wakeup()
    errands = try Errands(places: places)
    state = Mutex(State())
    lists.whenRead { [bell] in bell.ring() }
    places.observe(except: nil) { [weak self] notice in self?.tell(notice) }
    let worker = try WorkerThread(name: "prefs-server") { [self] in run() }
    thread.withLock { $0 = worker }
  }

  /// Ends every connection; no request is carried out any more when it returns.
  public func stop() {
    state.withLock { $0.isStopping = true }
    bell.ring()
    thread.withLock { $0.take() }?.join()
    errands.stop()
    // The name stays: the next owner, who may be there already, replaces it.
  }

  /// Since when there has been no client; nil: there is one.
  public var idleSince: Instant? {
    state.withLock { $0.connections.isEmpty ? $0.idleSince : nil }
  }

  /// Writes again where the socket is: the state directory was made anew.
  func writeNote() { door.writeNote() }

  // MARK: - Notices

  private func tell(_ notice: Notice) {
    let connections = state.withLock { $0.connections }
    if !connections.isEmpty {
      let frame = Message.notice(notice).frame(0)
      for connection in connections { connection.tell(frame, notice.origin) }
    }
    number.raise(to: notice.changeset.version)
  }

  // MARK: - The server's thread

  private func run() {
    var lastRequest = Instant.now
    while !state.withLock({ $0.isStopping }) {
      let connections = state.withLock { $0.connections }
      // A wake-up costs more than most requests: see ReceiveLoop.
      let isBusy = Instant.now.nanoseconds(after: lastRequest) < Self.patience
      var entries = [pollfd(fd: bell.number, events: Int16(POLLIN), revents: 0)]
      let isFull = state.withLock { $0.acceptAfter.map { $0 > .now } ?? false }
      entries.append(pollfd(fd: isFull ? -1 : door.number, events: Int16(POLLIN), revents: 0))
      entries.append(pollfd(fd: door.watchNumber, events: Int16(POLLIN), revents: 0))
      entries += connections.map(\.pollEntry)
      let isHolding = connections.contains(where: \.holdsRequests)
      let timeout = isBusy ? 0 : isFull || isHolding ? CInt(Self.shortPause) : door.pause
      let count = poll(&entries, nfds_t(entries.count), timeout)
      if entries[2].revents != 0 || (count == 0 && !isBusy) { door.look() }
      if isHolding { serveHeld(connections) }
      guard count > 0 else { continue }
      if entries[0].revents != 0 { bell.clear() }
      if entries[1].revents != 0 { accept() }
      for (connection, entry) in zip(connections, entries.dropFirst(3)) where entry.revents != 0 {
        connection.flush()
        if connection.serve() { lastRequest = .now }
      }
      removeEnded()
    }
    // Who connects from now on is refused at once.
    door.close()
    let last = state.withLock { $0.connections }
    for connection in last { connection.endReceiving() }
    for connection in last {
      connection.drain()
      connection.end()
    }
    removeEnded()
  }

  /// Nanoseconds.
  private static let patience: Int64 = 50_000
  /// Milliseconds without accepting, where there are no descriptors left, and between two looks whether a list
  /// that requests wait for is late.
  private static let shortPause: Int64 = 200

  private func serveHeld(_ connections: [Connection]) {
    for connection in connections { connection.serveHeld() }
    lists.forget()
  }

  private func accept() {
    do throws(SystemError) {
      while let socket = try door.accept() {
        guard let peer = socket.peer, peer.user == geteuid() else {
          log("a connection of another user was refused")
          continue
        }
        let connection = Connection(
          SharedSocket(socket), server: self, bell: bell, errands: errands)
        state.withLock { state in
          state.connections.append(connection)
          places.noteClients(state.connections.count)
          if state.connections.count == 1 { clientsBell.ring() }
        }
      }
    } catch {
      log("a connection could not be taken: \(error)")
      state.withLock { $0.acceptAfter = Instant.now.advanced(milliseconds: Self.shortPause) }
    }
  }

  private func removeEnded() {
    let ended = state.withLock { state in
      let ended = state.connections.filter(\.hasEnded)
      guard !ended.isEmpty else { return ended }
      state.connections.removeAll(where: \.hasEnded)
      places.noteClients(state.connections.count)
      if state.connections.isEmpty {
        state.idleSince = .now
        clientsBell.ring()
      }
      return ended
    }
    for connection in ended { connection.leave() }
  }
}
