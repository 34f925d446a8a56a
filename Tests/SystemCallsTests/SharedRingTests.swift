import Glibc
import SystemCalls
import Testing

@Suite("Rings in shared memory") struct SharedRingTests {
  private func pair() throws -> (writer: SharedRing, reader: SharedRing) {
    let writer = try SharedRing()
    return (writer, try SharedRing(reading: #require(writer.descriptor).value))
  }

  @Test("bytes come in their order, over the end of the memory too")
  func order() throws {
    let (writer, reader) = try pair()
    var (sent, received): ([UInt8], [UInt8]) = ([], [])
    for round in 0..<200 {
      let piece = (0..<(round * 37)).map { UInt8(truncatingIfNeeded: $0 &* round) }
      #expect(writer.write(piece[...]) == piece.count)
      sent += piece
      #expect(reader.isEmpty == piece.isEmpty && reader.take(into: &received) && reader.isEmpty)
    }
    #expect(sent.count > 2 * SharedRing.capacity && sent == received)
  }

  @Test("a full ring takes nothing; of more than it holds, it takes what there is room for")
  func full() throws {
    let (writer, reader) = try pair()
    let most = [UInt8](repeating: 6, count: SharedRing.capacity - 1)
    #expect(writer.write(most[...]) == most.count && writer.write([1, 2]) == 0)
    var first: [UInt8] = []
    #expect(reader.take(into: &first) && first == most)
    let bytes = [UInt8](repeating: 7, count: SharedRing.capacity + 10)
    #expect(writer.write(bytes[...]) == SharedRing.capacity && writer.write([1]) == 0)
    var received: [UInt8] = []
    #expect(reader.take(into: &received) && received.count == SharedRing.capacity)
    #expect(writer.write([1, 2]) == 2 && reader.take(into: &received) && received.last == 2)
  }

  @Test("the writer has to wake a reader that waits, once, and none that is awake")
  func wake() throws {
    let (writer, reader) = try pair()
    #expect(writer.write([1]) == 1 && !writer.mustWake())
    #expect(!reader.beginWait(), "there is something to take")
    var received: [UInt8] = []
    #expect(reader.take(into: &received) && reader.beginWait())
    #expect(writer.write([2]) == 1 && writer.mustWake() && !writer.mustWake())
    #expect(reader.take(into: &received) && reader.beginWait())
    reader.endWait()
    #expect(writer.write([3]) == 1 && !writer.mustWake())
  }

  @Test("a reader that waits whenever there is nothing gets everything of a busy writer")
  func threads() throws {
    let (writer, reader) = try pair()
    let bell = try Wakeup()
    let count = 200_000
    let thread = try WorkerThread(name: "writer") {
      for number in 0..<count {
        let bytes = withUnsafeBytes(of: UInt32(number).littleEndian) { Array($0) }
        var rest = bytes[...]
        while !rest.isEmpty {
          rest = rest.dropFirst(writer.write(rest))
          if writer.mustWake() { bell.ring() }
        }
      }
    }
    var received: [UInt8] = []
    while received.count < 4 * count {
      // A reader that is not woken would miss its deadline.
      if reader.beginWait() {
        let before = Instant.now
        bell.wait(until: before.advanced(milliseconds: 10_000))
        try #require(Instant.now.nanoseconds(after: before) < 9_000_000_000, "it was not woken")
        reader.endWait()
      }
      #expect(reader.take(into: &received))
    }
    thread.join()
    let isInOrder = received.withUnsafeBytes { bytes in
      (0..<count).allSatisfy {
        bytes.loadUnaligned(fromByteOffset: 4 * $0, as: UInt32.self) == UInt32($0)
      }
    }
    #expect(isInOrder)
  }

  @Test("numbers that make no sense are refused on both sides, and so is memory of another kind")
  func nonsense() throws {
    let (writer, reader) = try pair()
    let file = try #require(writer.descriptor).value.number
    var number = UInt64.max
    // Where the number of bytes written lies, and that of bytes taken.
    #expect(pwrite(file, &number, 8, 0) == 8)
    var received: [UInt8] = []
    #expect(!reader.take(into: &received) && received.isEmpty)
    number = 5
    #expect(pwrite(file, &number, 8, 64) == 8)
    #expect(writer.write([1]) == 0)
    #expect(ftruncate(file, 0) != 0)
    let other = try SharedLog(name: "test")
    #expect(throws: SystemError.self) { try SharedRing(reading: other.descriptor) }
    #expect(throws: SystemError.self) {
      try SharedRing(reading: Descriptor(opening: "/dev/null", O_RDWR))
    }
  }
}
