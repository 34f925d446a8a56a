import ConfigurationProfiles
import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceStore
import StoreAccess
import SystemCalls

/// A store that this process owns, and serves to other processes.
///
/// One that is opened for reading only, because it is another user's or its state directory cannot
/// be written, writes nothing, neither lists nor state. It gives the store up (`whenGivenUp`) as
/// soon as a client asks for a change, or another process listens at its socket: that one owns the
/// store, and clients go on with it. It also does within 5 s of the moment at which the state
/// directory can be written. One of another user's store reads with the rights of that user: what
/// the user cannot read does not count.
public final class OwnedStore: Sendable {
  /// The persistent places of the store.
  public let places: LocalPlaces
  private let store: Store
  private let server: Server
  private let keepers: [ProgramKeeper]
  /// nil if it writes nothing, or the store is mounted beside the user's own, as a backup is, whose
  /// declarations stay as they are.
  private let deadlines: DeadlineKeeper?
  /// Whether the lists or the state lie on a home that is a mount of its own.
  private let isHomeMounted: Bool
  private let askers = BlockingThreads(name: "prefs-waiting", most: 3)

  /// Takes the store's lock, replays its journal and begins to serve. Throws `.owned` when another
  /// process holds the lock. A store that is opened for reading is not locked.
  /// - Parameter writeback: seconds from the first unsaved change of a list to its rewrite.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, writeback: Double = 1,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    let layout = StoreLayout(surroundings)
    isHomeMounted = surroundings.isHomeMounted
    if let other = surroundings.other {
      // Before the threads start that read: they have the rights of this one.
      try EngineError.wrapping { () throws(SystemError) in try FileRights.take(of: other) }
    }
    // Root reads another user's store beside its owner, which serves that user alone.
    if readOnly, surroundings.other == nil, Store.isOwned(layout) {
      throw EngineError(
        .owned, "another process owns the store, and serves those who only read too")
    }
    store = try Store(
      layout, profiles: ProfileFolder(layout), readOnly: readOnly, keepsHistory: true,
      awaitsHome: surroundings.awaitedMount != nil, log: log)
    places = try LocalPlaces(
      store: store, writeback: writeback,
      mountNote: readOnly ? surroundings.readersNote : layout.stateDirectory + "/mounts",
      readersNote: readOnly ? nil : surroundings.readersNote,
      isFirstAfterLogin: !readOnly && surroundings.noteOwner(), log: log)
    deadlines = readOnly || !layout.isUsersOwn ? nil : DeadlineKeeper(places, log: log)
    deadlines?.begin()
    do throws(SystemError) {
      let server = try Self.listen(places, surroundings, readOnly: readOnly, log)
      store.onRevival { [weak server] in server?.writeNote() }
      do throws(SystemError) {
        let programs: [KeptProgram] =
          readOnly ? [] : [.cloud(places, layout), .effects(places, layout)]
        keepers = try programs.map { [places] program throws(SystemError) in
          try ProgramKeeper(program, for: places, log: log) {
            [weak server] process, isThere in server?.setCompanion(process, isThere)
          }
        }
      } catch {
        server.stop()
        throw error
      }
      self.server = server
    } catch {
      places.close()
      store.unlock()
      throw EngineError(error)
    }
    if !readOnly { _ = askers.run { [store] in store.removeFormerMachines() } }
    if layout.isUserUnknown {
      log("the system does not know the name of this user; managed lists of users cannot be read")
      giveUp(when: { Account.present != nil })
    }
    if readOnly, surroundings.other == nil, surroundings.stateObstacle != nil {
      giveUp(when: { surroundings.stateObstacle == nil })
    }
  }

  /// Gives the store up once the next owner can do more: read the user's managed lists, whose name
  /// the system knows then, or write. A thread of its own asks every 5 s.
  private func giveUp(when canDoMore: @escaping @Sendable () -> Bool) {
    _ = askers.run { [weak server] in
      // It is not held while this waits: nil, once it has ended.
      while server != nil {
        Instant.sleep(milliseconds: 5000)
        guard canDoMore() else { continue }
        server?.giveUp()
        return
      }
    }
  }

  private static func listen(
    _ places: LocalPlaces, _ surroundings: Surroundings, readOnly: Bool,
    _ log: @escaping @Sendable (LogLine) -> Void
  ) throws(SystemError) -> Server {
    let note = readOnly ? nil : surroundings.socketNote
    do throws(SystemError) {
      return try Server(places: places, paths: surroundings.socketPaths, note: note, log: log)
    } catch {
      guard readOnly, surroundings.other == nil, surroundings.stateObstacle != nil else {
        throw error
      }
      return try Server(
        places: places, paths: [surroundings.lastSocketPath], note: nil, log: log)
    }
  }

  /// Since when there has been no client; nil if there is one, or a declaration has a deadline.
  public var idleSince: Instant? {
    deadlines?.hasDeadline == true ? nil : server.idleSince
  }

  /// What becomes of the owner once it has no clients.
  public enum Rest: Sendable {
    /// It ends soon: it holds nothing that the next one has not at once, or the home, which is a
    /// mount of its own, may be about to go.
    case short
    /// It ends soon if what it holds has been saved, or is forgotten, by then.
    case passing
    /// It stays for a while.
    case long
  }

  /// What becomes of the owner if it has no clients now.
  public var rest: Rest {
    if server.hasCompanion { return .long }
    return switch store.endCost {
    case .changes: .passing
    case .little: .short
    case .memory: isHomeMounted ? .short : .passing
    case .reading: isHomeMounted ? .short : .long
    }
  }

  /// Has the body called, by any thread, each time when a client has left and there has been none
  /// for a second since.
  public func whenIdle(_ body: @escaping @Sendable () -> Void) { server.whenIdle(body) }

  /// Has the body called, by any thread, when a store that is only read must be given up: call
  /// `close` then.
  public func whenGivenUp(_ body: @escaping @Sendable () -> Void) { server.whenGivenUp(body) }

  /// Ends every connection, saves every list and releases the lock, so that another process can own
  /// the store.
  public func close() {
    for keeper in keepers { keeper.stop() }
    server.stop()
    places.close()
    store.unlock()
  }
}
