import SystemCalls
import Testing

/// A number that one process writes and others read.
@Suite("Shared numbers") struct SharedNumberTests {
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
      isBound.ring()
      mayEnd.wait(until: Instant.now.advanced(milliseconds: 10_000))
    }
    isBound.wait(until: Instant.now.advanced(milliseconds: 10_000))
    #expect(reader.isKept && number.isKept)
    mayEnd.ring()
    thread.join()
    #expect(!reader.isKept && !number.isKept && reader.value == 7)
  }
}
