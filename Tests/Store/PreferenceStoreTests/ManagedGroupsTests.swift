import Glibc
import PreferenceModel
import StoreAccess
import Support
import Synchronization
import SystemCalls
import Testing

@Suite("Directories of groups") struct ManagedGroupsTests {
  /// Calls the body with the layout of a user whose machine has directories of groups.
  private func withLayout(_ body: (StoreLayout) throws -> Void) throws {
    try withSandbox { sandbox in
      for name in ["@b", "@a", "@", "ada", "@a.d"] {
        try Files.makeDirectories("\(sandbox.system)/managed/\(name)", mode: 0o755)
      }
      try body(
        StoreLayout(
          userDirectory: sandbox.config, systemDirectory: sandbox.system,
          stateDirectory: sandbox.state, hostIdentifier: "HOST", userName: "ada"))
    }
  }

  @Test("while the name service does not answer, its last answer counts; before, none is known")
  func silent() throws {
    try withLayout { layout in
      let answer = Mutex<[String: Bool]?>(nil)
      let groups = ManagedGroups(layout, lifetime: 0) { names in
        #expect(names == ["a", "b", "a.d"])
        return answer.withLock { $0 }
      }
      // A group that is no longer known is as it was, and "a.d" is never known.
      let steps: [(said: [String: Bool]?, found: [String]?)] = [
        (nil, nil), (["b": true, "a": true], ["@a", "@b"]), (nil, ["@a", "@b"]),
        ([:], ["@a", "@b"]), (["a": false], ["@b"]), (["a": false, "b": false], []), (nil, []),
      ]
      for (index, step) in steps.enumerated() {
        answer.withLock { $0 = step.said }
        let hasAsked = Monitor(0)
        _ = groups.directories { hasAsked.change { $0 += 1 } }
        let end = Instant.now.advanced(milliseconds: 10_000)
        #expect(hasAsked.wait(until: end) { $0 == 1 ? true : nil } == true)
        groups.awaitAnswer()
        answer.withLock { $0 = nil }
        #expect(groups.directories {} == step.found, "step \(index)")
        groups.awaitAnswer()
        #expect(groups.places == Set((step.found ?? []).map { Place.managedFor($0) }))
      }
    }
  }

  @Test("names that are equal strings, of different bytes, are one group")
  func equal() throws {
    try withLayout { layout in
      for name in ["@\u{E9}", "@e\u{301}"] {
        try Files.makeDirectories("\(layout.directory(.managed))/\(name)", mode: 0o755)
      }
      let groups = ManagedGroups(layout, lifetime: 3600) { names in
        Dictionary(uniqueKeysWithValues: names.map { ($0, $0 == "\u{E9}") })
      }
      _ = groups.directories {}
      groups.awaitAnswer()
      #expect(groups.directories {}?.count == 2)
    }
  }

  @Test("it is asked again when a directory comes, or the answer is old, and not without one")
  func asking() throws {
    try withLayout { layout in
      let count = Mutex(0)
      let groups = ManagedGroups(layout, lifetime: 3600) { names in
        count.withLock { $0 += 1 }
        return Dictionary(uniqueKeysWithValues: names.map { ($0, true) })
      }
      func look() -> [String]? {
        _ = groups.directories {}
        groups.awaitAnswer()
        return groups.directories {}
      }
      #expect(look() == ["@a", "@a.d", "@b"] && look()?.count == 3)
      #expect(count.withLock { $0 } == 1 && groups.deadline != nil)
      let directory = layout.directory(.managed)
      try Files.makeDirectories("\(directory)/@c", mode: 0o755)
      #expect(look()?.last == "@c" && count.withLock { $0 } == 2)
      for name in ["@a", "@b", "@c", "@a.d"] { #expect(rmdir("\(directory)/\(name)") == 0) }
      #expect(look() == [] && groups.deadline == nil && count.withLock { $0 } == 2)
    }
  }
}
