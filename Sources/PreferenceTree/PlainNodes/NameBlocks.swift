import PropertyList

/// Many short names in blocks of memory, at one byte a name beside its bytes.
///
/// A block is freed with the last of its names.
struct NameBlocks {
  /// Where a name lies: the number of a block, and the offset in it.
  struct Reference: Equatable {
    fileprivate let rawValue: UInt32

    /// Refers to no name.
    static let none = Reference(rawValue: .max)

    fileprivate init(rawValue: UInt32) { self.rawValue = rawValue }

    fileprivate init(block: Int, offset: Int) {
      rawValue = UInt32(block << NameBlocks.offsetBits | offset)
    }

    fileprivate var block: Int { Int(rawValue >> UInt32(NameBlocks.offsetBits)) }
    fileprivate var offset: Int { Int(rawValue) & (NameBlocks.size - 1) }
  }

  private struct Block {
    /// A byte with the number of its bytes precedes each name.
    var bytes: [UInt8] = []
    var names = 0
  }

  private static let offsetBits = 12
  /// Bytes of a block.
  private static let size = 1 << offsetBits
  /// Bytes of a block's names: the array that has them has a header of 32 bytes.
  private static let capacity = size - 32
  /// The most bytes of a name.
  static let longest = Int(UInt8.max)
  /// The last number is left out, because of `Reference.none`.
  private static let mostBlocks = 1 << (32 - offsetBits) - 1

  private var blocks: [Block] = []
  /// The numbers of blocks that are empty.
  private var free: [Int] = []
  /// The number of the block that names are added to.
  private var current: Int?

  /// Adds a name.
  /// - Returns: nil if the name is too long, or there is no room: the blocks have 4 GiB at most.
  mutating func add(_ name: UnsafeBufferPointer<UInt8>) -> Reference? {
    guard let count = UInt8(exactly: name.count), let block = block(with: name.count + 1) else {
      return nil
    }
    let offset = blocks[block].bytes.count
    blocks[block].bytes.append(count)
    blocks[block].bytes.append(contentsOf: name)
    blocks[block].names += 1
    return Reference(block: block, offset: offset)
  }

  /// Returns the number of a block with room for as many bytes; nil if there is none.
  private mutating func block(with count: Int) -> Int? {
    if let current, blocks[current].bytes.count + count <= Self.capacity { return current }
    if let last = free.popLast() {
      current = last
    } else {
      guard blocks.count < Self.mostBlocks else { return nil }
      blocks.append(Block())
      current = blocks.count - 1
    }
    if let current { blocks[current].bytes.reserveCapacity(Self.capacity) }
    return current
  }

  /// Removes a name, whose memory is free once all names of its block are removed.
  mutating func remove(_ reference: Reference) {
    let block = reference.block
    blocks[block].names -= 1
    guard blocks[block].names == 0 else { return }
    blocks[block].bytes = []
    if current == block { current = nil }
    free.append(block)
  }

  /// Returns a name as a key of the maker.
  func key(_ reference: Reference, of maker: inout KeyMaker) -> Key {
    withBytes(reference) { maker.key($0) }
  }

  /// Whether the name is that of the key.
  func isEqual(_ reference: Reference, to key: Key) -> Bool {
    withBytes(reference) { name in key.hasBytes(name) }
  }

  /// Calls the body with the bytes of a name, which are valid during the call.
  private func withBytes<Result>(
    _ reference: Reference, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    blocks[reference.block].bytes.withUnsafeBufferPointer { bytes in
      let offset = reference.offset
      return body(UnsafeBufferPointer(rebasing: bytes[(offset + 1)...].prefix(Int(bytes[offset]))))
    }
  }
}
