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
    let before = mapped
    let block = malloc(16 << 20)
    #expect(mapped - before >= 16 << 20)
    free(block)
    #expect(mapped <= before)
  }
}
