import SystemCalls
import Testing

/// Numbers that one process writes and others read.
@Suite("Shared numbers") struct SharedNumberTests {
  @Test("each reader sees its own number, and there is none beyond the last")
  func several() throws {
    let numbers = try SharedNumber()
    let file = try #require(numbers.descriptor)
    let indices = [0, 1, 2, SharedNumber.count - 1]
    let readers = try indices.map { try SharedNumber(reading: file.value, at: $0) }
    numbers.bindToThread()
    for (value, index) in indices.enumerated() { numbers.raise(to: UInt64(value + 5), at: index) }
    #expect(readers.map(\.value) == [5, 6, 7, 8] && numbers.value == 5)
    #expect(readers.map(\.isKept) == [true, true, true, true])
    for index in [-1, SharedNumber.count] {
      #expect((try? SharedNumber(reading: file.value, at: index)) == nil)
    }
  }

  @Test("a reader sees the number, and whether the thread that it is bound to has ended")
  func life() throws {
    let number = try SharedNumber()
    let descriptor = try #require(number.descriptor)
    let reader = try SharedNumber(reading: descriptor.value)
    #expect(reader.value == 0 && reader.isKept)
    number.raise(to: 7)
    number.raise(to: 5)
    #expect(reader.value == 7 && reader.isKept)
    let (isBound, mayEnd) = (try Wakeup(), try Wakeup())
    let thread = try WorkerThread(name: "test-keeper") {
      number.bindToThread()
      isBound.signal()
      mayEnd.wait(until: Instant.now.advanced(milliseconds: 10_000))
    }
    isBound.wait(until: Instant.now.advanced(milliseconds: 10_000))
    #expect(reader.isKept && number.isKept)
    mayEnd.signal()
    thread.join()
    #expect(!reader.isKept && !number.isKept && reader.value == 7)
  }
}
