import CAllocations
import PreferenceModel
import PropertyList
import SystemCalls
import Testing

@testable import PreferenceTree

/// How often a request that was made before allocates memory, in the tree, the engine and places in
/// memory, in a build without optimisation. One more means that something is copied, or looked up,
/// once more for each request.
@Suite("Allocations of a request") struct AllocationTests {
  private typealias Bench = EffectsTests.Bench
  private typealias Act = @Sendable (Bench, _ key: NodeID) throws -> Void

  private static let requests: [(name: String, most: Int, act: Act)] = [
    ("stat", 3, { bench, key in _ = try bench.tree.attributes(key) }),
    ("look-up", 4, { bench, _ in _ = try bench.tree.lookup(bench.domain, [0x4B], now: bench.now) }),
    (
      "look-up of a missing name", 4,
      { bench, _ in _ = try bench.tree.lookup(bench.domain, [0x4C], now: bench.now) }
    ),
    ("read", 3, { bench, key in _ = try bench.tree.read(key, at: 0, count: 4096) }),
    (
      "overwrite", 28,
      { bench, key in
        var truncation = AttributeChange()
        truncation.size = 0
        _ = try bench.tree.setAttributes(key, truncation, now: bench.now)
        try bench.tree.write(key, [0x35, 0x0A], at: 0, now: bench.now)
      }
    ),
  ]

  @Test("a request that was made before allocates memory a few times", arguments: requests.indices)
  func count(_ index: Int) throws {
    let (name, most, act) = Self.requests[index]
    let bench = try Bench()
    let key = try bench.key("K")
    for _ in 0..<3 { try act(bench, key) }
    let counts = try (0..<10).map { _ in
      _ = bench.tree.removeEffects()
      prefsfs_begin_counting_allocations()
      try act(bench, key)
      return prefsfs_end_counting_allocations()
    }
    let least = try #require(counts.min())
    #expect(least > 0 && least <= most, "\(name): \(counts)")
  }
}
