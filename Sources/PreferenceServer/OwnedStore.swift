import Glibc
import PreferenceEngine
import PreferenceModel
import PreferenceProtocol
import PreferenceStore
import SystemCalls

/// A store that this process owns, and serves to the others.
public final class OwnedStore: Sendable {
  /// Its places.
  public let places: LocalPlaces
  private let store: Store
  private let server: Server?

  /// Takes the store's lock, replays its journal and begins to serve. Throws `.owned` when another
  /// process has it. A store that is opened for reading is not locked, and not served.
  /// - Parameter writeback: seconds from the first unsaved change of a list to its rewrite.
  public init(
    _ surroundings: Surroundings, readOnly: Bool = false, writeback: Double = 1,
    log: @escaping @Sendable (String) -> Void
  ) throws(EngineError) {
    store = try Store(StoreLayout(surroundings), readOnly: readOnly, log: log)
    places = try LocalPlaces(store: store, writeback: writeback, log: log)
    do throws(SystemError) {
      guard !readOnly else {
        server = nil
        return
      }
      let server = try Server(
        places: places, paths: surroundings.socketPaths, note: surroundings.socketNote, log: log)
      store.onRevival { [weak server] in server?.writeNote() }
      self.server = server
    } catch {
      places.close()
      store.unlock()
      throw EngineError(error)
    }
  }

  /// Since when there has been no client; nil: there is one.
  public var idleSince: Instant? { server?.idleSince }

  /// Waits until the first client comes or the last one goes, at most until the deadline (nil: for ever),
  /// or until the descriptor can be read.
  public func waitForClients(until deadline: Instant?, or other: CInt) {
    server?.clientsBell.wait(until: deadline, or: other)
  }

  /// Every location that was asked for, as it is.
  public var loaded: [Location: DomainSnapshot] {
    var loaded: [Location: DomainSnapshot] = [:]
    for location in store.loadedLocations { loaded[location] = try? store.snapshot(of: location) }
    return loaded
  }

  /// Ends every connection, saves every list, and lets the store go: to the client that asks first.
  public func close() {
    server?.stop()
    places.close()
    store.unlock()
  }
}
