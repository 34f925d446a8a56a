import Foundation
import Support
import Testing

/// Every case, in the order in which they run.
let allCases =
  ReadingCases.list + WritingCases.list + TextCases.list + NameCases.list
  + ScratchCases.list

@Suite("Behaviour of files") struct ConformanceTests {
  @Test("a case holds on the bare tree", arguments: allCases)
  func bareTree(_ example: Case) throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let files = try TreeFiles(sandbox)
      defer { files.finish() }
      try example.run(files)
    }
  }

  @Test("a case holds on trees of which each is replaced after a request", arguments: allCases)
  func replacedTrees(_ example: Case) throws {
    try withSandbox { sandbox in
      Fixture.make(sandbox)
      let files = try TreeFiles(sandbox, isReplaced: true)
      defer { files.finish() }
      try example.run(files)
    }
  }

  @Test("every case holds on a mount of its own")
  func mount() async throws {
    try await concurrently(allCases) { example in
      try withMount(prepare: Fixture.make) { _, mount in
        try example.run(MountedFiles(mount.path("")))
      }
    }
  }
}
