import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

@Suite("RemovedNames") struct RemovedNamesTests {
  private let path = KeyPath(domain: "d", key: "K")
  private let other = KeyPath(domain: "d", key: "L")
  private let holder = NodeID(rawValue: 7)

  private func at(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: 0).advanced(milliseconds: milliseconds)
  }

  @Test("a removed name is hidden for a second, and remembered until it was ended")
  func removed() {
    let removedNames = RemovedNames()
    removedNames.noteRemoval(path, .init(kind: .integer, mode: 0o400), at: at(0))
    #expect(removedNames.hides(path, at: at(999)))
    #expect(!removedNames.hides(path, at: at(1000)))
    #expect(removedNames.former(path) == .init(kind: .integer, mode: 0o400))
    #expect(removedNames.deadline == at(1000))
    #expect(removedNames.endNextDue(at: at(999)) == nil)
    #expect(removedNames.endNextDue(at: at(1000)) == .show(path))
    #expect(!removedNames.contains(path))
    #expect(removedNames.endNextDue(at: at(1000)) == nil)
    #expect(removedNames.deadline == nil)
  }

  @Test("a key that was moved away is hidden until the move is completed")
  func movedAway() {
    let removedNames = RemovedNames()
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    #expect(removedNames.isMovedAway(path))
    #expect(removedNames.source(of: holder) == path)
    #expect(removedNames.hides(path, at: at(9000)))
    #expect(removedNames.endNextDue(at: at(4999)) == nil)
    #expect(removedNames.endNextDue(at: at(5000)) == .completeMove(path, holder: holder))
    #expect(removedNames.source(of: holder) == nil)
    #expect(!removedNames.hides(path, at: at(5000)))
  }

  @Test("a key that is made again leaves an ordinary scratch file behind")
  func madeAgain() {
    let removedNames = RemovedNames()
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    removedNames.forget(path)
    #expect(removedNames.source(of: holder) == nil)
    #expect(removedNames.endNextDue(at: at(9000)) == nil)
  }

  @Test("a second removed of the same name takes the place of the first")
  func again() {
    let removedNames = RemovedNames()
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    removedNames.noteRemoval(path, .init(kind: .data), at: at(500))
    #expect(removedNames.source(of: holder) == nil)
    #expect(removedNames.endNextDue(at: at(1400)) == nil)
    #expect(removedNames.endNextDue(at: at(1500)) == .show(path))
  }

  @Test("endings come oldest first, and each once")
  func order() {
    let removedNames = RemovedNames()
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    removedNames.noteRemoval(other, .init(kind: .string), at: at(10))
    removedNames.noteRemoval(KeyPath(domain: "e", key: "K"), .init(kind: .string), at: at(4500))
    #expect(removedNames.endNextDue(at: at(9000)) == .show(other))
    #expect(removedNames.endNextDue(at: at(9000)) == .completeMove(path, holder: holder))
    #expect(removedNames.endNextDue(at: at(9000)) == .show(KeyPath(domain: "e", key: "K")))
    #expect(removedNames.endNextDue(at: at(9000)) == nil)
  }

  @Test("moves of one domain end without those of others, and without removals")
  func movesOfDomain() {
    let removedNames = RemovedNames()
    let elsewhere = KeyPath(domain: "e", key: "K")
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    removedNames.noteMove(elsewhere, .init(kind: .string), to: NodeID(rawValue: 8), at: at(0))
    removedNames.noteRemoval(other, .init(kind: .string), at: at(0))
    #expect(removedNames.endNextMove(from: "d") == .completeMove(path, holder: holder))
    #expect(removedNames.endNextMove(from: "d") == nil)
    #expect(removedNames.contains(other))
    #expect(removedNames.endNextMove() == .completeMove(elsewhere, holder: NodeID(rawValue: 8)))
  }

  @Test("all of a domain are forgotten at once")
  func forgetAll() {
    let removedNames = RemovedNames()
    removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(0))
    removedNames.noteRemoval(other, .init(kind: .string), at: at(0))
    removedNames.noteRemoval(KeyPath(domain: "e", key: "K"), .init(kind: .string), at: at(0))
    #expect(Set(removedNames.forgetAll(in: "d")) == ["K", "L"])
    #expect(removedNames.source(of: holder) == nil)
    #expect(removedNames.contains(KeyPath(domain: "e", key: "K")))
  }

  @Test("many removedNames, forgotten and made again in any order, end in the order of their times")
  func many() {
    let removedNames = RemovedNames()
    var expected: [KeyPath: Instant] = [:]
    var generator = SystemRandomNumberGenerator()
    var now: Int64 = 0
    for round in 0..<20_000 {
      now += .random(in: 0...3, using: &generator)
      let path = KeyPath(domain: "d", key: Key("\(Int.random(in: 0..<500, using: &generator))"))
      switch Int.random(in: 0..<8, using: &generator) {
      case 0:
        removedNames.forget(path)
        expected[path] = nil
      case 1:
        let holder = NodeID(rawValue: UInt64(round))
        removedNames.noteMove(path, .init(kind: .string), to: holder, at: at(now))
        #expect(removedNames.move(to: holder)?.source == path)
        expected[path] = at(now + RemovedNames.moveDuration)
      default:
        removedNames.noteRemoval(path, .init(kind: .string), at: at(now))
        expected[path] = at(now + RemovedNames.duration)
      }
      #expect(removedNames.deadline == expected.values.min())
      while let ending = removedNames.endNextDue(at: at(now)) {
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
    let removedNames = RemovedNames()
    removedNames.noteRemoval(path, .init(kind: .string), at: Instant(nanoseconds: .max))
    #expect(removedNames.endNextDue(at: Instant(nanoseconds: .max)) == .show(path))
  }
}
