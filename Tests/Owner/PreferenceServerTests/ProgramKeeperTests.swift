import Glibc
import PreferenceModel
import PropertyList
import Support
import Synchronization
import SystemCalls
import Testing

@testable import PreferenceServer

@Suite("Programs that the owner runs") struct ProgramKeeperTests {
  @Test("one that runs goes on while nobody can read whether it is wanted")
  func unreadable() throws {
    try withServedStore { (served: ServedStore) throws -> Void in
      let answer = Mutex<Bool?>(true)
      let (asked, running) = (Monitor(0), Monitor(Set<pid_t>()))
      let program = KeptProgram(
        name: "sleep", thread: "test", path: "/bin/sleep", arguments: ["100"], endsByItself: false,
        isConcerned: { _ in true },
        isWanted: { () throws(EngineError) in
          asked.change { $0 += 1 }
          guard let isWanted = answer.withLock({ $0 }) else { throw EngineError(.unreadable, "") }
          return isWanted
        })
      let keeper = try ProgramKeeper(program, for: served.places) { _ in
      } onProcess: { process, isThere in
        running.change { if isThere { $0.insert(process) } else { $0.remove(process) } }
      }
      defer { keeper.stop() }
      let end = Instant.now.advanced(milliseconds: 10_000)
      let process = try #require(running.wait(until: end) { $0.first })
      func say(_ said: Bool?, _ value: Value) throws {
        answer.withLock { $0 = said }
        let before = asked.withLock { $0 }
        let author = Author(number: 5)
        _ = try served.places.apply([.set("K", "d", value, .unknown)], by: author)
        #expect(asked.wait(until: end) { $0 > before ? true : nil } == true)
      }
      try say(nil, 1)
      try say(true, 2)
      #expect(running.withLock { $0 } == [process])
      try say(false, 3)
      #expect(running.wait(until: end) { $0.isEmpty ? true : nil } == true)
    }
  }
}
