import ConfigurationProfiles
import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceStore
import SystemCalls

/// A store that this process owns and serves to other processes; or that it only reads.
public final class OwnedStore: Sendable {
  /// The persistent places of the store.
  public let places: LocalPlaces
  private let store: Store
  private let server: Server?
  private let cloud: CloudKeeper?

  /// Takes the store's lock, replays its journal and begins to serve. Throws `.owned` when another
  /// process holds the lock. A store that is opened for reading is neither locked nor served.
  /// - Parameter writeback: seconds from the first unsaved change of a list to its rewrite.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, writeback: Double = 1,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    let layout = StoreLayout(surroundings)
    store = try Store(layout, profiles: ProfileFolder(layout), readOnly: readOnly, log: log)
    places = try LocalPlaces(
      store: store, writeback: writeback,
      mountNote: readOnly ? nil : layout.stateDirectory + "/mounts",
      isFirstAfterLogin: !readOnly && surroundings.noteOwner(), log: log)
    do throws(SystemError) {
      guard !readOnly else {
        (server, cloud) = (nil, nil)
        return
      }
      let server = try Server(
        places: places, paths: surroundings.socketPaths, note: surroundings.socketNote, log: log)
      store.onRevival { [weak server] in server?.writeNote() }
      do throws(SystemError) {
        cloud = try CloudKeeper(places, store: surroundings.userDirectory, log: log) {
          [weak server] process in server?.setCompanion(process)
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
  }

  /// Since when there has been no client; nil: there is one, or the store is not served.
  public var idleSince: Instant? { server?.idleSince }

  /// The locations whose lists have been read, as they are at this moment.
  public var loaded: [Location: DomainSnapshot] {
    var loaded: [Location: DomainSnapshot] = [:]
    for location in store.loadedLocations { loaded[location] = try? store.snapshot(of: location) }
    return loaded
  }

  /// Ends every connection, saves every list and releases the lock, so that another process can own
  /// the store.
  public func close() {
    cloud?.stop()
    server?.stop()
    places.close()
    store.unlock()
  }
}
