import Synchronization

/// The bytes of many keys of a document, one after the other: a reader makes a block for hundreds of keys
/// where each as a `String` would be an allocation of its own.
///
/// Threads: any. Each key takes bytes that nobody took, writes them before anybody has the key, and they do
/// not change from then on.
final class KeyBlock: Sendable {
  private nonisolated(unsafe) let base: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  /// Bytes that were taken, or asked for in vain.
  private let taken = Atomic(0)

  init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(capacity: capacity)
  }

  deinit { base.deallocate() }

  /// Puts the bytes into the block.
  /// - Returns: where they begin; nil where there is no room.
  @inline(__always)
  func add(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    let end = taken.add(bytes.count, ordering: .relaxed).newValue
    guard end <= capacity, let source = bytes.baseAddress else { return nil }
    (base + (end - bytes.count)).initialize(from: source, count: bytes.count)
    return end - bytes.count
  }

  @inline(__always)
  func bytes(_ start: UInt32, _ count: UInt32) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: base + Int(start), count: Int(count))
  }
}

/// Makes the keys of one document. Copies share a block.
struct KeyMaker: Sendable {
  /// A longer key is a string of its own.
  private static let largest = 1 << 16
  private var block: KeyBlock?
  /// Of the next block.
  private var capacity = 64

  /// A key of bytes that are known to be UTF-8. Those that fit a `String` without an allocation are one.
  @inline(__always)
  mutating func key(_ bytes: UnsafeBufferPointer<UInt8>) -> Key {
    if bytes.count <= 15 { return Key(String(valid: bytes)) }
    if let block, let start = block.add(bytes) { return Key(block, start, bytes.count) }
    return keyInNewBlock(bytes)
  }

  @inline(never)
  private mutating func keyInNewBlock(_ bytes: UnsafeBufferPointer<UInt8>) -> Key {
    guard bytes.count <= Self.largest else { return Key(String(valid: bytes)) }
    let next = KeyBlock(capacity: max(capacity, bytes.count))
    (block, capacity) = (next, min(4 * capacity, Self.largest))
    return next.add(bytes).map { Key(next, $0, bytes.count) } ?? Key(String(valid: bytes))
  }
}
