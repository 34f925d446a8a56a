import PreferenceEngine
import PreferenceModel
import SystemCalls

/// The server's work that waits for a disk, on threads of its own: up to 16 read lists, one makes
/// the journal durable, once for all the requests that came before it began.
final class Errands: Sendable {
  typealias Reading = @Sendable (LocalPlaces) -> Void
  typealias Synchronised = @Sendable (EngineError?) -> Void

  private let places: LocalPlaces
  private let readers = BlockingThreads(name: "prefs-reading", most: 16)
  private let durable = BatchWorker<[Synchronised]>()

  init(places: LocalPlaces) throws(SystemError) {
    self.places = places
    try durable.start(name: "prefs-durable") { waiting in
      let failure = Self.synchronize(places)
      for answer in waiting { answer(failure) }
    }
  }

  /// Has a thread call the body, which may wait for a disk.
  /// - Returns: whether a thread will; false where all of them are busy.
  func read(_ reading: @escaping Reading) -> Bool {
    readers.run { [places] in reading(places) }
  }

  /// Has the journal made durable; a thread then calls the body, with the error or nil.
  func synchronize(_ body: @escaping Synchronised) {
    durable.put { $0.append(body) }
  }

  /// Calls the bodies that wait for the journal, and ends that thread. Threads that are reading are
  /// not waited for: their clients are gone.
  func stop() {
    durable.beginStop()
    durable.join()
  }

  private static func synchronize(_ places: LocalPlaces) -> EngineError? {
    do throws(EngineError) {
      try places.makeDurable()
      return nil
    } catch {
      return error
    }
  }
}
