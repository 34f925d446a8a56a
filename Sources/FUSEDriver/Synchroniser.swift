import PreferenceModel
import SystemCalls

/// Answers fsync(2) on a thread of its own. One wait for the disk serves all requests that came
/// before it began.
final class Synchroniser: Sendable {
  private let worker = BatchWorker<[HeldReply]>()

  /// - Parameter ended: rung when the thread ends.
  init(
    store: any DurabilityService, ownership: FileOwnership, ended: Wakeup
  ) throws(SystemError) {
    try worker.start(name: "prefs-sync", ended: { ended.ring() }) { requests in
      let answer = Self.synchronize(store)
      for request in requests { request.send(answer, ownership) }
    }
  }

  /// Hands a request over, to be answered when the disk has everything that was changed before.
  func put(_ reply: consuming Reply) {
    let request = HeldReply(reply)
    worker.put { $0.append(request) }
  }

  /// Asks the thread to end once it has answered the requests that wait.
  func beginStop() { worker.beginStop() }

  var hasEnded: Bool { worker.hasEnded }

  func join() { worker.join() }

  private static func synchronize(_ store: any DurabilityService) -> Answer {
    do {
      try store.makeDurable()
      return .done
    } catch {
      if case .system(let errno) = error.reason { return .error(errno) }
      return .error(.inputOutput)
    }
  }
}
