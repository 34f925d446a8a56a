import CFUSE
import Glibc
import PreferenceModel
import SystemCalls

/// Requests that change something, while the owner of the store does not answer: they wait here, in
/// order, at most 5 s, and the loop goes on with the others. The tree has not seen them.
///
/// Threads: the loop's alone.
final class Parking {
  private struct Parked {
    var buffer: fuse_buf
    var deadline: Instant
  }

  private var parked: [Parked] = []
  private var lastLook = Instant.now

  /// Milliseconds that the loop waits for the owner, once for a row of requests.
  private static let patience: Int64 = 20
  /// Milliseconds between two looks whether he answers.
  private static let pause: Int64 = 50
  private static let longest: Int64 = 5000
  deinit {
    for request in parked { free(request.buffer.mem) }
  }

  /// When `serve` must be called.
  var nextLook: Instant? {
    parked.isEmpty ? nil : lastLook.advanced(milliseconds: Self.pause)
  }

  /// Takes the request, and its memory, where it must wait. Those of the announcer's thread change
  /// nothing.
  func parks(
    _ buffer: inout fuse_buf, _ engine: any Engine, _ now: Instant, announcer: Announcer
  ) -> Bool {
    guard let request = RequestHeader(buffer), request.isChange,
      !announcer.isThread(request.thread),
      !parked.isEmpty || !engine.isAnswering(within: Self.patience)
    else { return false }
    parked.append(
      Parked(buffer: buffer, deadline: now.advanced(milliseconds: Self.longest)))
    buffer = fuse_buf()
    return true
  }

  /// Has the requests carried out when the owner answers, and refused with ETIMEDOUT when they have
  /// waited long enough.
  func serve(_ driver: Driver) {
    guard !parked.isEmpty, let next = nextLook, next <= .now else { return }
    lastLook = .now
    if driver.engine.isAnswering(within: 1) {
      while !parked.isEmpty { process(driver) }
    } else {
      driver.refusal = .timedOut
      defer { driver.refusal = nil }
      while let first = parked.first, first.deadline <= .now { process(driver) }
    }
  }

  /// At the end: nobody is left without an answer.
  func refuse(_ driver: Driver) {
    driver.refusal = .timedOut
    defer { driver.refusal = nil }
    while !parked.isEmpty { process(driver) }
  }

  private func process(_ driver: Driver) {
    var request = parked.removeFirst()
    fuse_session_process_buf(driver.session.raw, &request.buffer)
    free(request.buffer.mem)
  }
}
