import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceEngine

@Suite("What profiles set once") struct OnceSetterTests {
  @Test("settings for which there was no thread are set later")
  func busy() throws {
    try withPlaces { (_, places: LocalPlaces) throws -> Void in
      let thread = BlockingThreads(name: "once", most: 1, mostWaiting: 0)
      let isBusy = Monitor(true)
      let isTaken = thread.run { _ = isBusy.wait { $0 ? nil : true } }
      #expect(isTaken)
      let setter = OnceSetter(isFirstAfterLogin: true, thread: thread, pause: 0) { _ in }
      let location = Location(.user, "d")
      let setting = OnceSetting(identity: "i", time: nil, location: location, key: "K", value: 1)
      setter.set([setting], in: places)
      isBusy.change { $0 = false }
      let end = Instant.now.advanced(milliseconds: 5000)
      while try places.find("K", at: location) == nil, Instant.now < end {
        setter.set([setting], in: places)
        Instant.sleep(milliseconds: 10)
      }
      #expect(try places.find("K", at: location)?.value == 1)
    }
  }
}
