import CLinux
import Glibc
import SystemCalls
import Testing

@Suite("Memory") struct MemoryTests {
  /// Bytes of the blocks that are mapped on their own.
  private var mapped: Int { Int(mallinfo2().hblkhd) }

  @Test("a large block is mapped on its own, also after others were freed")
  func largeBlocks() {
    Memory.keepLittle()
    // Without `keepLittle` the C library keeps the next block of that size.
    free(malloc(16 << 20))
    // The blocks are freed at the end only: the first ones may fill what other tests have left free.
    // And another thread may free a large block meanwhile.
    var blocks: [UnsafeMutableRawPointer?] = []
    defer { for block in blocks { free(block) } }
    let isMapped = (0..<10).contains { _ in
      let before = mapped
      blocks.append(malloc(16 << 20))
      return mapped - before >= 16 << 20
    }
    #expect(isMapped)
  }
}
