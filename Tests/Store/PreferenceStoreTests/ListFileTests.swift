import PreferenceModel
import PropertyList
import Support
import Synchronization
import Testing

@testable import PreferenceStore
@testable import SystemCalls

@Suite("Lists that cannot be read", .serialized)
struct ListFileTests {
  private struct Example {
    let name: String
    let make: String
    /// A part of the error's text.
    let reason: String
  }

  private static let examples: [Example] = [
    Example(name: "larger than a gibibyte", make: "truncate -s 1073741825", reason: "too large"),
    Example(name: "a pipe", make: "mkfifo", reason: "not a regular file"),
    Example(name: "a directory", make: "mkdir", reason: "not a regular file"),
    Example(name: "an array", make: "printf '[1]' >", reason: "of type array"),
    Example(name: "torn", make: "printf 'bplist00\\320' >", reason: "expected a header"),
  ]

  @Test(
    "such a list is refused with the reason, and no set touches it",
    arguments: examples.indices)
  func refused(_ index: Int) throws {
    let example = Self.examples[index]
    try withSandbox { sandbox in
      sandbox.shell("\(example.make) \(sandbox.config)/d.plist")
      let look = "stat -c '%F %s %i' \(sandbox.config)/d.plist"
      let before = sandbox.shell(look).output
      let test = try TestStore(sandbox)
      let reads = Atomic(0)
      Interposition.with({ call in
        if call.name == "read", call.path.hasSuffix("d.plist") {
          reads.add(1, ordering: .relaxed)
        }
        return .proceed
      }) {
        let error = #expect(throws: EngineError.self) { try test.get("K") }
        #expect(error?.description.contains(example.reason) == true, "\(error?.description ?? "")")
        #expect(throws: EngineError.self) { try test.set("K", 1) }
      }
      // A list is read in one call, and one more finds its end; the large one is not read at all.
      #expect(reads.load(ordering: .relaxed) <= (example.make.hasPrefix("printf") ? 4 : 0))
      #expect(sandbox.shell(look).output == before)
    }
  }

  @Test("a pipe that takes the place of a list holds nobody")
  func pipe() throws {
    try withSandbox { sandbox in
      let path = sandbox.config + "/d.plist"
      sandbox.shell("mkfifo \(path)")
      // It would end the wait.
      let writer = try sandbox.start("sleep 5; echo >> \(path)")
      defer { sandbox.end(writer) }
      #expect(try ListFile(path: path).contents(limit: 100).isEmpty)
    }
  }
}
