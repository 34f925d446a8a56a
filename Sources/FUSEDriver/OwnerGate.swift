import CFUSE
import Glibc
import PreferenceModel
import SystemCalls

/// Holds requests that change something while the owner of the store does not answer, in order and
/// for at most 5 s each; the loop goes on with other requests. The tree has not seen a held
/// request.
///
/// Threads: the loop's alone.
final class OwnerGate {
  private struct Waiting {
    var buffer: fuse_buf
    var deadline: Instant
  }

  private var waiting: [Waiting] = []
  private var lastLook = Instant.now

  /// Milliseconds that the loop itself waits for the owner before the first request is held.
  private static let patience: Int64 = 20
  /// Milliseconds between two checks whether the owner answers.
  private static let pause: Int64 = 50
  /// Milliseconds that a request is held.
  private static let longest: Int64 = 5000

  deinit {
    for request in waiting { free(request.buffer.mem) }
  }

  /// When `serve` must be called; nil: no request is held.
  var nextLook: Instant? {
    waiting.isEmpty ? nil : lastLook.advanced(milliseconds: Self.pause)
  }

  /// Takes over a request that must wait for the owner, together with its buffer. Requests of the
  /// announcer's thread do not wait, because they change nothing.
  /// - Returns: whether it did; `buffer` is empty then.
  func keeps(
    _ buffer: inout fuse_buf, _ store: any MountCoordinator, _ now: Instant, announcer: Announcer
  ) -> Bool {
    guard let request = RequestHeader(buffer), request.isChange,
      !announcer.isThread(request.thread),
      !waiting.isEmpty || !store.isAnswering(within: Self.patience)
    else { return false }
    waiting.append(
      Waiting(buffer: buffer, deadline: now.advanced(milliseconds: Self.longest)))
    buffer = fuse_buf()
    return true
  }

  /// Carries out the held requests if the owner answers; else refuses with ETIMEDOUT those that
  /// have waited for 5 s.
  func serve(_ driver: Driver) {
    guard !waiting.isEmpty, let next = nextLook, next <= .now else { return }
    lastLook = .now
    if driver.store.services.isAnswering(within: 1) {
      while !waiting.isEmpty { process(driver) }
    } else {
      driver.refusal = .timedOut
      defer { driver.refusal = nil }
      while let first = waiting.first, first.deadline <= .now { process(driver) }
    }
  }

  /// Answers every held request with ETIMEDOUT, when the mount ends.
  func refuse(_ driver: Driver) {
    driver.refusal = .timedOut
    defer { driver.refusal = nil }
    while !waiting.isEmpty { process(driver) }
  }

  /// Carries out the first request, unless it must wait for a list by now.
  private func process(_ driver: Driver) {
    var request = waiting.removeFirst()
    if driver.refusal == nil, driver.gate.keeps(&request.buffer, driver.forest, .now) { return }
    driver.process(&request.buffer)
    free(request.buffer.mem)
  }
}
