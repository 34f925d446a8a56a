import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("Departures") struct DeparturesTests {
  private let path = KeyPath(domain: "d", key: "K")
  private let other = KeyPath(domain: "d", key: "L")
  private let holder = NodeID(rawValue: 7)

  private func at(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: 0).advanced(milliseconds: milliseconds)
  }

  @Test("a removed name is hidden for a second, and remembered until it was ended")
  func removed() {
    let departures = Departures()
    departures.noteRemoval(path, .init(kind: .integer, mode: 0o400), at: at(0))
    #expect(departures.hides(path, at: at(999)))
    #expect(!departures.hides(path, at: at(1000)))
    #expect(departures.former(path) == .init(kind: .integer, mode: 0o400))
    #expect(departures.deadline == at(1000))
    #expect(departures.endNextDue(at: at(999)) == nil)
    #expect(departures.endNextDue(at: at(1000)) == .show(path))
    #expect(!departures.contains(path))
    #expect(departures.endNextDue(at: at(1000)) == nil)
    #expect(departures.deadline == nil)
  }

  @Test("a key that was moved away is hidden until the move is completed")
  func movedAway() {
    let departures = Departures()
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    #expect(departures.isMovedAway(path))
    #expect(departures.source(of: holder) == path)
    #expect(departures.hides(path, at: at(9000)))
    #expect(departures.endNextDue(at: at(4999)) == nil)
    #expect(departures.endNextDue(at: at(5000)) == .completeMove(path, holder: holder))
    #expect(departures.source(of: holder) == nil)
    #expect(!departures.hides(path, at: at(5000)))
  }

  @Test("a key that is made again leaves an ordinary scratch file behind")
  func madeAgain() {
    let departures = Departures()
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    departures.forget(path)
    #expect(departures.source(of: holder) == nil)
    #expect(departures.endNextDue(at: at(9000)) == nil)
  }

  @Test("a second departure of the same name takes the place of the first")
  func again() {
    let departures = Departures()
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    departures.noteRemoval(path, .init(kind: .data), at: at(500))
    #expect(departures.source(of: holder) == nil)
    #expect(departures.endNextDue(at: at(1400)) == nil)
    #expect(departures.endNextDue(at: at(1500)) == .show(path))
  }

  @Test("endings come oldest first, and each once")
  func order() {
    let departures = Departures()
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    departures.noteRemoval(other, .init(kind: .string), at: at(10))
    departures.noteRemoval(KeyPath(domain: "e", key: "K"), .init(kind: .string), at: at(4500))
    #expect(departures.endNextDue(at: at(9000)) == .show(other))
    #expect(departures.endNextDue(at: at(9000)) == .completeMove(path, holder: holder))
    #expect(departures.endNextDue(at: at(9000)) == .show(KeyPath(domain: "e", key: "K")))
    #expect(departures.endNextDue(at: at(9000)) == nil)
  }

  @Test("moves of one domain end without those of others, and without removals")
  func movesOfDomain() {
    let departures = Departures()
    let elsewhere = KeyPath(domain: "e", key: "K")
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    departures.noteMove(elsewhere, .init(kind: .string), to: NodeID(rawValue: 8), at: at(0))
    departures.noteRemoval(other, .init(kind: .string), at: at(0))
    #expect(departures.endNextMove(from: "d") == .completeMove(path, holder: holder))
    #expect(departures.endNextMove(from: "d") == nil)
    #expect(departures.contains(other))
    #expect(departures.endNextMove() == .completeMove(elsewhere, holder: NodeID(rawValue: 8)))
  }

  @Test("all of a domain are forgotten at once")
  func forgetAll() {
    let departures = Departures()
    departures.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    departures.noteRemoval(other, .init(kind: .string), at: at(0))
    departures.noteRemoval(KeyPath(domain: "e", key: "K"), .init(kind: .string), at: at(0))
    #expect(Set(departures.forgetAll(in: "d")) == ["K", "L"])
    #expect(departures.source(of: holder) == nil)
    #expect(departures.contains(KeyPath(domain: "e", key: "K")))
  }

  @Test("many departures, forgotten and made again in any order, end in the order of their times")
  func many() {
    let departures = Departures()
    var expected: [KeyPath: Instant] = [:]
    var generator = SystemRandomNumberGenerator()
    var now: Int64 = 0
    for round in 0..<20_000 {
      now += .random(in: 0...3, using: &generator)
      let path = KeyPath(domain: "d", key: Key("\(Int.random(in: 0..<500, using: &generator))"))
      switch Int.random(in: 0..<8, using: &generator) {
      case 0:
        departures.forget(path)
        expected[path] = nil
      case 1:
        let holder = NodeID(rawValue: UInt64(round))
        departures.noteMove(path, .init(kind: .string), to: holder, at: at(now))
        #expect(departures.move(to: holder)?.source == path)
        expected[path] = at(now + Departures.moveDuration)
      default:
        departures.noteRemoval(path, .init(kind: .string), at: at(now))
        expected[path] = at(now + Departures.duration)
      }
      #expect(departures.deadline == expected.values.min())
      while let ending = departures.endNextDue(at: at(now)) {
        let ended =
          switch ending {
          case .show(let path), .completeMove(let path, _): path
          }
        #expect(expected.removeValue(forKey: ended).map { $0 <= at(now) } == true)
      }
      #expect(expected.values.allSatisfy { $0 > at(now) })
    }
  }

  @Test("the last moment of the clock does not trap")
  func lastMoment() {
    let departures = Departures()
    departures.noteRemoval(path, .init(kind: .string), at: Instant(nanoseconds: .max))
    #expect(departures.endNextDue(at: Instant(nanoseconds: .max)) == .show(path))
  }
}
