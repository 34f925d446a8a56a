import PreferenceEngine
import PreferenceModel
import SystemCalls

/// What waits for a disk, on threads of its own: some read lists, one waits for fsync(2), once for all
/// who asked before it began.
final class Errands: Sendable {
  typealias Reading = @Sendable (LocalPlaces) -> Void
  typealias Synchronised = @Sendable (EngineError?) -> Void

  private struct State {
    var synchronisations: [Synchronised] = []
    var isStopping = false
  }

  private let state = Monitor(State())
  private let places: LocalPlaces
  private let readers = BlockingThreads(name: "prefs-reading", most: 16)
  private let durable: WorkerThread

  init(places: LocalPlaces) throws(SystemError) {
    self.places = places
    durable = try WorkerThread(name: "prefs-durable") { [state] in
      while let waiting = Self.next(state) {
        let failure = Self.synchronize(places)
        for answer in waiting { answer(failure) }
      }
    }
  }

  /// Has something read.
  /// - Returns: whether it will be; false where every thread waits for a disk.
  func read(_ reading: @escaping Reading) -> Bool {
    readers.run { [places] in reading(places) }
  }

  func synchronize(_ body: @escaping Synchronised) {
    state.change { $0.synchronisations.append(body) }
  }

  /// Answers those who wait for fsync(2), and ends. What is being read is for nobody any more.
  func stop() {
    state.change { $0.isStopping = true }
    durable.join()
  }

  /// All that wait; nil: the end.
  private static func next(_ state: Monitor<State>) -> [Synchronised]? {
    let found = state.wait { state -> [Synchronised]? in
      guard state.synchronisations.isEmpty else {
        defer { state.synchronisations = [] }
        return state.synchronisations
      }
      return state.isStopping ? [] : nil
    }
    return found?.isEmpty == false ? found : nil
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
