import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

@Suite("Directories of users, and of fragments") struct ManagedDirectoriesTests {
  /// Calls the body with a layout that has an empty directory martin.d of managed lists: a user's if
  /// there is such a user, else one of fragments.
  private func withLayout(_ body: (StoreLayout) throws -> Void) throws {
    try withSandbox { sandbox in
      try Files.makeDirectories(sandbox.system + "/managed/martin.d", mode: 0o755)
      try body(
        StoreLayout(
          userDirectory: sandbox.config, systemDirectory: sandbox.system,
          stateDirectory: sandbox.state, hostIdentifier: "HOST", userName: "ada"))
    }
  }

  @Test("while the name service does not answer, its last answer counts")
  func silent() throws {
    try withLayout { layout in
      let answer = Mutex<Set<String>?>(nil)
      let directories = ManagedDirectories(layout, lifetime: 0) { _ in answer.withLock { $0 } }
      let steps: [(Set<String>?, ManagedDirectories.Kind)] = [
        (nil, .fragments), (["martin.d"], .user), (nil, .user), (nil, .user), ([], .fragments),
        (nil, .fragments),
      ]
      for (index, (said, kind)) in steps.enumerated() {
        answer.withLock { $0 = said }
        let found = directories.kinds(of: ["martin.d"], asking: .now)
        #expect(found == ["martin.d": kind], "step \(index)")
      }
    }
  }

  @Test("one that asks later waits for no answer, and hears of one that is new")
  func later() throws {
    try withLayout { layout in
      let (gate, news) = (Monitor(false), Monitor(0))
      let directories = ManagedDirectories(layout, lifetime: 0) { names in
        let end = Instant.now.advanced(milliseconds: 10_000)
        return gate.wait(until: end) { $0 ? true : nil } == true ? names : nil
      }
      let asking = ManagedDirectories.Asking.later { news.change { $0 += 1 } }
      for _ in 0..<2 {
        #expect(directories.kinds(of: ["martin.d"], asking: asking) == ["martin.d": .fragments])
      }
      gate.change { $0 = true }
      let end = Instant.now.advanced(milliseconds: 10_000)
      #expect(news.wait(until: end) { $0 == 1 ? true : nil } == true)
      directories.awaitAnswer()
      #expect(directories.kinds(of: ["martin.d"], asking: .never) == ["martin.d": .user])
      // The same answer again is no news.
      _ = directories.kinds(of: ["martin.d"], asking: asking)
      directories.awaitAnswer()
      #expect(news.withLock { $0 } == 1)
    }
  }
}
