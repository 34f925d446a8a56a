import PreferenceModel
import PropertyList
import Support
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceEngine

@Suite("What changes wait for") struct SettlementsTests {
  private let settlements = Settlements { _ in }
  private let mount = Author(number: 1)
  private let writer = Author(number: 2)

  init() {
    settlements.add(mount, at: 10)
    settlements.expect(11, of: [mount], except: writer)
  }

  /// Begins to wait for version 11, and returns whether that is over.
  private func wait() -> () -> Bool {
    let isOver = Mutex(false)
    settlements.whenSettled(.attributes, through: 11, except: writer) {
      isOver.withLock { $0 = true }
    }
    return { isOver.withLock { $0 } }
  }

  private func later(_ milliseconds: Int64) -> Instant {
    Instant.now.advanced(milliseconds: milliseconds)
  }

  @Test("a change waits until the mount has settled, and not for one that is removed")
  func settled() {
    let isOver = wait()
    #expect(!isOver())
    settlements.settle(.attributes, through: 11, by: mount)
    #expect(isOver() && wait()())
    settlements.expect(12, of: [mount], except: writer)
    settlements.remove(mount)
    #expect(wait()())
  }

  @Test("a mount without a driver is waited for until its successor has settled, but not by that")
  func lost() {
    settlements.lose(mount)
    let isOver = wait()
    #expect(!isOver() && settlements.hasLost)
    // The successor is a mount of its own, and has one too.
    let (successor, next) = (Author(number: 3), Author(number: 4))
    settlements.add(successor, at: 11)
    settlements.succeed(mount, by: successor)
    #expect(!isOver())
    #expect(settlements.isSettled(.attributes, through: 11, except: successor))
    settlements.settle(.attributes, through: 12, by: successor)
    #expect(!isOver())
    settlements.add(next, at: 11)
    settlements.succeed(successor, by: next)
    settlements.settle(.entries, through: 1, by: next)
    #expect(isOver() && !settlements.hasLost)
  }

  @Test("a mount whose driver has no successor is waited for a second, and then never again")
  func gone() {
    settlements.lose(mount)
    let isOver = wait()
    #expect(settlements.expire(later(900)) != nil && !isOver())
    #expect(settlements.expire(later(1100)) == nil)
    #expect(isOver() && !settlements.hasLost && !settlements.hasMounts)
    settlements.expect(12, of: [mount], except: writer)
    #expect(wait()())
  }

  @Test("a change waits for a mount that is told of it, or lost, and for none that is not")
  func concerned() {
    settlements.settle(.attributes, through: 11, by: mount)
    let isSettled = { [self] in settlements.isSettled(.attributes, through: 12, except: writer) }
    settlements.expect(12, except: writer)
    settlements.expect(12, of: [writer], except: nil)
    #expect(isSettled())
    settlements.expect(12, of: [mount], except: mount)
    #expect(isSettled())
    settlements.lose(mount)
    settlements.expect(12, except: writer)
    #expect(!isSettled())
  }

  @Test("the mounts of an owner that has ended are lost for the next one, until they come back")
  func nextOwner() throws {
    try withSandbox { sandbox in
      let path = sandbox.root + "/mounts"
      let first = Settlements(note: path) { _ in }
      let others = [Author(number: 3), Author(number: .max)]
      for other in others { first.add(other, at: 1) }
      first.add(mount, at: 1)
      first.remove(mount)
      first.writeNote()
      let next = Settlements(note: path) { _ in }
      #expect(next.hasLost && next.hasMounts)
      next.expect(5, except: writer)
      let isOver = Mutex(false)
      next.whenSettled(.attributes, through: 5, except: writer) { isOver.withLock { $0 = true } }
      next.add(others[0], at: 5)
      next.remove(others[1])
      // It is back, and goes on showing what it showed until it has settled.
      #expect(!isOver.withLock { $0 })
      next.settle(.attributes, through: 5, by: others[0])
      #expect(isOver.withLock { $0 } && !next.hasLost)
      next.remove(others[0])
      next.writeNote()
      #expect(!Settlements(note: path) { _ in }.hasMounts)
      sandbox.shell("head -c 100000 /dev/urandom > \(path)")
      #expect(!Settlements(note: path) { _ in }.hasMounts)
    }
  }

  /// Claims a name, and returns whether the mount has it; nil if that is not known yet.
  private func claim(
    _ author: Author, _ name: Key = "d/K", in settlements: Settlements? = nil
  ) -> () -> Bool? {
    let answer = Mutex<Bool?>(nil)
    (settlements ?? self.settlements).claim(name, by: author) { isGiven in
      answer.withLock { $0 = isGiven }
    }
    return { answer.withLock { $0 } }
  }

  /// How the claim of a mount ends.
  enum End: CaseIterable { case release, removal, loss }

  @Test("a name is one mount's until it releases it or ends", arguments: End.allCases)
  func claims(_ end: End) {
    let other = Author(number: 3)
    settlements.add(other, at: 10)
    #expect(claim(mount)() == true && claim(mount)() == true)
    #expect(claim(other)() == false && claim(other, "d/L")() == true)
    // What another mount releases is no claim of this one.
    settlements.release("d/K", by: other)
    #expect(claim(other)() == false)
    switch end {
    case .release: settlements.release("d/K", by: mount)
    case .removal: settlements.remove(mount)
    case .loss:
      settlements.lose(mount)
      #expect(claim(other)() == false, "a successor may come")
      _ = settlements.expire(later(1100))
    }
    #expect(claim(other)() == true)
  }

  @Test("a driver that goes on for another one has its claims, as far as it claims them again")
  func succeededClaims() {
    let (successor, other) = (Author(number: 3), Author(number: 4))
    settlements.add(other, at: 10)
    for name in ["kept", "removed", "forgotten"] as [Key] { #expect(claim(mount, name)() == true) }
    settlements.lose(mount)
    settlements.add(successor, at: 11)
    settlements.succeed(mount, by: successor)
    for name in ["kept", "removed"] as [Key] { #expect(claim(successor, name)() == true) }
    settlements.release("removed", by: successor)
    #expect(claim(other, "removed")() == true)
    #expect(claim(other, "kept")() == false && claim(other, "forgotten")() == false)
    settlements.settle(.entries, through: 1, by: successor)
    #expect(claim(other, "kept")() == false && claim(other, "forgotten")() == true)
  }

  @Test("the next owner gives no name before it knows what mounts have claimed, or a second")
  func claimsOfNextOwner() throws {
    try withSandbox { sandbox in
      let path = sandbox.root + "/mounts"
      let (other, gone) = (Author(number: 3), Author(number: 4))
      let first = Settlements(note: path) { _ in }
      for author in [mount, other, gone] { first.add(author, at: 1) }
      first.writeNote()
      let next = Settlements(note: path) { _ in }
      next.add(other, at: 1)
      let (claimed, free) = (claim(other, in: next), claim(other, "d/L", in: next))
      next.add(mount, at: 1, claims: ["d/K"])
      #expect(claimed() == nil && free() == nil)
      _ = next.expire(later(1100))
      #expect(claimed() == false && free() == true)
    }
  }

  @Test("who expires the waiting is told of an earlier end, and only of that")
  func earlier() {
    let rings = Atomic(0)
    settlements.onEarlierExpiry { rings.add(1, ordering: .relaxed) }
    #expect(settlements.expire(.now) == nil)
    for _ in 0..<3 { _ = wait() }
    #expect(rings.load(ordering: .relaxed) == 1)
    let next = settlements.expire(.now)
    #expect(next.map { $0 > .now && $0 <= later(1000) } == true)
    settlements.settle(.attributes, through: 11, by: mount)
    #expect(settlements.expire(later(1100)) == nil)
    settlements.lose(mount)
    #expect(rings.load(ordering: .relaxed) == 2 && settlements.expire(.now) != nil)
  }

  @Test("who notes the mounts is told of each that comes, is lost, or is forgotten")
  func noted() {
    let changes = Atomic(0)
    let settlements = Settlements(changed: { changes.add(1, ordering: .relaxed) }) { _ in }
    settlements.add(mount, at: 10)
    #expect(changes.load(ordering: .relaxed) == 1)
    settlements.lose(mount)
    #expect(changes.load(ordering: .relaxed) == 2 && settlements.hasMounts)
    _ = settlements.expire(later(1100))
    #expect(changes.load(ordering: .relaxed) == 3 && !settlements.hasMounts)
  }

  @Test("a mount with another connection is not lost")
  func reconnected() {
    settlements.add(mount, at: 11)
    settlements.lose(mount)
    #expect(!settlements.hasLost && wait()())
  }
}
