import Synchronization

/// A block of memory that holds the bytes of many keys of a document, one after the other. A reader
/// allocates one block for hundreds of keys, instead of a `String` for each key.
///
/// Threads: any. Each key reserves bytes that no other key has, and they are written before the key
/// exists. After that they never change.
final class KeyBlock: Sendable {
  private nonisolated(unsafe) let base: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  /// How many bytes were reserved, including requests that did not fit.
  private let taken = Atomic(0)

  init(capacity: Int) {
    self.capacity = capacity
    base = .allocate(capacity: capacity)
  }

  deinit { base.deallocate() }

  /// Copies the bytes into the block.
  /// - Returns: the offset of the copy; nil if the block is full or the bytes are empty.
  @inline(__always)
  func add(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    let end = taken.add(bytes.count, ordering: .relaxed).newValue
    guard end <= capacity, let source = bytes.baseAddress else { return nil }
    (base + (end - bytes.count)).initialize(from: source, count: bytes.count)
    return end - bytes.count
  }

  /// The bytes of a key. They are valid while the block is alive.
  @inline(__always)
  func bytes(_ start: UInt32, _ count: UInt32) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: base + Int(start), count: Int(count))
  }
}

/// Makes the keys of one document, or other keys with about the same lifetime. A block is released
/// with the last of its keys. Copies of a `KeyMaker` share a block.
public struct KeyMaker: Sendable {
  /// The largest block in bytes. A key that is longer is stored as a `String`.
  private let largest: Int
  private var block: KeyBlock?
  /// The capacity of the next block in bytes.
  private var capacity = 64

  /// - Parameter largest: the largest block in bytes: what one key may keep in memory.
  public init(largest: Int = 1 << 16) { self.largest = largest }

  /// Returns the same key, stored in this maker's block. A key that is short, or lies in a block
  /// already, is returned as it is.
  public mutating func copy(_ key: Key) -> Key {
    key.utf8Count > 15 && key.isString ? key.withBytes { self.key($0) } : key
  }

  /// Returns a key of the bytes, which must be valid UTF-8. A key of up to 15 bytes is stored as a
  /// `String`, because that needs no allocation; a longer key is stored in the block.
  @inline(__always)
  package mutating func key(_ bytes: UnsafeBufferPointer<UInt8>) -> Key {
    let hash = KeyHash.of(bytes)
    if bytes.count <= 15 { return Key(String(valid: bytes), hash: hash) }
    if let block, let start = block.add(bytes) {
      return Key(block, start, bytes.count, hash: hash)
    }
    return keyInNewBlock(bytes, hash)
  }

  @inline(never)
  private mutating func keyInNewBlock(_ bytes: UnsafeBufferPointer<UInt8>, _ hash: UInt32) -> Key {
    let whole = { Key(String(valid: bytes), hash: hash) }
    guard bytes.count <= largest else { return whole() }
    let next = KeyBlock(capacity: max(capacity, bytes.count))
    (block, capacity) = (next, min(4 * capacity, largest))
    return next.add(bytes).map { Key(next, $0, bytes.count, hash: hash) } ?? whole()
  }
}
