import Synchronization

/// A Bloom filter of 65,536 bits, two for each key: it tells without a lock that a key is certainly
/// not there. Keys are never taken out. With more than some ten thousand it can rule out few, but
/// it is never wrong.
final class KeyFilter: Sendable {
  private static let words = 1024
  private let bits: Words
  private let isWhole = Atomic<Bool>(false)

  /// Memory of atomics, which no array can hold.
  private struct Words: @unchecked Sendable {
    // Sendable, because the words are atomics and live as long as the filter.
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

  /// Whether every key has been put into the filter. Until then it rules out none.
  var isComplete: Bool { isWhole.load(ordering: .acquiring) }

  /// Says that every key has been put into the filter.
  func complete() { isWhole.store(true, ordering: .releasing) }

  /// Says that keys may be missing in the filter.
  func reopen() { isWhole.store(false, ordering: .releasing) }

  /// The word that holds the bits of a key.
  private func word(_ hash: UInt32) -> UnsafeMutablePointer<Atomic<UInt64>> {
    bits.start + (Int(hash >> 6) & (Self.words - 1))
  }

  /// The two bits of a key, which are in one word.
  private static func mask(_ hash: UInt32) -> UInt64 {
    1 << UInt64(hash & 63) | 1 << UInt64(hash >> 16 & 63)
  }

  /// Puts the key with the hash into the filter.
  func insert(_ hash: UInt32) {
    _ = word(hash).pointee.bitwiseOr(Self.mask(hash), ordering: .releasing)
  }

  /// Whether there is certainly no key with the hash.
  func lacks(_ hash: UInt32) -> Bool {
    let mask = Self.mask(hash)
    return isComplete && word(hash).pointee.load(ordering: .relaxed) & mask != mask
  }
}
