import Synchronization

/// A Bloom filter of 64 Ki bits, two for each key: tells without a lock that a key is certainly not there.
/// Keys are never taken out: with more than some ten thousand it tells little, and never wrongly.
final class KeyFilter: Sendable {
  private static let words = 1024
  private let bits: Words
  private let isWhole = Atomic<Bool>(false)

  /// Memory of atomics, which no array can hold.
  private struct Words: @unchecked Sendable {
    // The words are atomics, and live as long as the filter.
    let start = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: KeyFilter.words)
  }

  init() {
    bits = Words()
    for index in 0..<Self.words { (bits.start + index).initialize(to: Atomic(0)) }
  }

  deinit {
    bits.start.deinitialize(count: Self.words)
    bits.start.deallocate()
  }

  /// Whether every key has been put into it.
  var isComplete: Bool { isWhole.load(ordering: .acquiring) }

  /// Every key has.
  func complete() { isWhole.store(true, ordering: .releasing) }

  /// Keys may be missing again.
  func reopen() { isWhole.store(false, ordering: .releasing) }

  private func word(_ hash: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
    bits.start + Int(truncatingIfNeeded: hash >> 6 & UInt64(Self.words - 1))
  }

  /// Both bits of a key are in one word.
  private static func mask(_ hash: UInt64) -> UInt64 {
    1 << (hash & 63) | 1 << (hash >> 40 & 63)
  }

  func insert(_ hash: UInt64) {
    _ = word(hash).pointee.bitwiseOr(Self.mask(hash), ordering: .releasing)
  }

  /// Whether no key with the hash is there.
  func lacks(_ hash: UInt64) -> Bool {
    let mask = Self.mask(hash)
    return isComplete && word(hash).pointee.load(ordering: .relaxed) & mask != mask
  }
}
