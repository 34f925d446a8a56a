import Synchronization
import SystemCalls

/// Tells whether this process knows every change of which the owner of a store tells it, without a
/// lock or a system call.
final class Gauge: Sendable {
  private let number: SharedNumber
  private let last: Atomic<UInt64>

  /// - Parameters:
  ///   - number: the version of the last change of which the owner tells it, in shared memory.
  ///   - version: the version of the last change that is known here.
  init(_ number: SharedNumber, version: UInt64) {
    self.number = number
    last = Atomic(version)
  }

  /// The version of the last change of which the owner tells this process.
  var present: UInt64 { number.value }

  /// The version of the last change that was published here and that every observer here has been
  /// notified of.
  var known: UInt64 { last.load(ordering: .acquiring) }

  /// Whether no change of the owner is missing here.
  var hasAll: Bool { number.value <= known }

  /// Whether the owner is still there. If not, another process may own the store already.
  var hasOwner: Bool { number.isKept }

  /// Whether no change is missing here: the owner is there, and all of its changes are known. Cost:
  /// four loads.
  var isFresh: Bool { hasOwner && hasAll }

  /// Notes that the change was published here, and that every observer here was notified of it. One
  /// thread at a time may call it.
  func pass(_ version: UInt64) { last.store(max(version, known), ordering: .releasing) }
}
