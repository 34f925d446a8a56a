import PropertyList
import SystemCalls
import Testing

@testable import PreferenceCloud

@Suite("Pace of pushes") struct PushPaceTests {
  private static let (key, other) = (CloudKey("d", "K"), CloudKey("d", "Other"))
  private static func time(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: 1_000_000_000).advanced(milliseconds: milliseconds)
  }

  @Test("a key in turns is held for a second after its eleventh push, until it is quiet for 10 s")
  func slow() {
    var pace = PushPace()
    var asked = 0
    for number in 0..<11 {
      #expect(pace.held(at: Self.time(Int64(number))).isEmpty)
      pace.note([Self.key, Self.other], at: Self.time(Int64(number))) { key in
        asked += 1
        return key == Self.key
      }
    }
    #expect(asked == 2)
    #expect(pace.held(at: Self.time(1009)) == [Self.key])
    #expect(pace.deadline(at: Self.time(10)) == Self.time(1010))
    #expect(pace.held(at: Self.time(1010)).isEmpty && pace.deadline(at: Self.time(1010)) == nil)
    pace.note([Self.key], at: Self.time(1010)) { _ in false }
    #expect(pace.held(at: Self.time(2009)) == [Self.key])
    pace.note([Self.key], at: Self.time(12_000)) { _ in false }
    #expect(pace.held(at: Self.time(12_001)).isEmpty)
  }

  @Test("a key that is held waits with its whole change; others are pushed before it")
  func held() throws {
    var machine = Synchroniser(CloudState(host: "here"))
    _ = machine.handle(.connected, wall: 1)
    _ = machine.handle(.listed([:], revision: 5, account: "a"), wall: 1)
    machine.held = [Self.key]
    let both: [CloudKey: Value?] = [Self.key: 1, CloudKey("d", "Beside"): 2]
    #expect(machine.handle(.set(both), wall: 2) == [])
    let actions = machine.handle(.set([Self.other: 3]), wall: 3)
    guard case .push(let first)? = actions.first else { throw PushPaceFailure() }
    #expect(first.map(\.key) == [Self.other])
    _ = machine.handle(.pushed(revision: 6), wall: 4)
    guard case .push(let second)? = machine.release(holding: []).first else {
      throw PushPaceFailure()
    }
    #expect(Set(second.map(\.key)) == Set(both.keys))
  }

  private struct PushPaceFailure: Error {}
}
