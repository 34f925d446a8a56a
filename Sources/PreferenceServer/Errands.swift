import PreferenceEngine
import PreferenceModel
import SystemCalls

/// What waits for a disk, on threads of its own: one reads lists, one waits for fsync(2), once for all
/// who asked before it began.
final class Errands: Sendable {
  typealias Reading = @Sendable (LocalPlaces) -> Void
  typealias Synchronised = @Sendable (EngineError?) -> Void

  private struct State {
    var readings: [Reading] = []
    var synchronisations: [Synchronised] = []
    var isStopping = false
  }

  private let state = Monitor(State())
  private let threads: [WorkerThread]

  init(places: LocalPlaces) throws(SystemError) {
    threads = [
      try WorkerThread(name: "prefs-reading") { [state] in
        while let readings = Self.next(state, \.readings) {
          for reading in readings { reading(places) }
        }
      },
      try WorkerThread(name: "prefs-durable") { [state] in
        while let waiting = Self.next(state, \.synchronisations) {
          let failure = Self.synchronize(places)
          for answer in waiting { answer(failure) }
        }
      },
    ]
  }

  func put(_ reading: @escaping Reading) { state.change { $0.readings.append(reading) } }

  func synchronize(_ body: @escaping Synchronised) {
    state.change { $0.synchronisations.append(body) }
  }

  /// Carries out what waits, and ends.
  func stop() {
    state.change { $0.isStopping = true }
    for thread in threads { thread.join() }
  }

  /// All that wait; nil: the end.
  private static func next<Errand>(
    _ state: Monitor<State>, _ list: WritableKeyPath<State, [Errand]>
  ) -> [Errand]? {
    let found = state.wait { state -> [Errand]? in
      guard state[keyPath: list].isEmpty else {
        defer { state[keyPath: list] = [] }
        return state[keyPath: list]
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
