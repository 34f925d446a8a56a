import Synchronization
import SystemCalls

/// How far this process is behind the owner of a store, told without a lock or a system call.
final class Gauge: Sendable {
  private let number: SharedNumber
  private let last: Atomic<UInt64>

  /// - Parameters:
  ///   - number: the owner's last change.
  ///   - version: the last one that is known here.
  init(_ number: SharedNumber, version: UInt64) {
    self.number = number
    last = Atomic(version)
  }

  /// The number of the owner's last change.
  var present: UInt64 { number.value }

  /// The number of the last change that everyone here who must know knows.
  var known: UInt64 { last.load(ordering: .acquiring) }

  var isFresh: Bool { number.value <= known }

  /// Everyone in this process who must know of the change knows.
  func pass(_ version: UInt64) { last.store(max(version, known), ordering: .releasing) }
}
