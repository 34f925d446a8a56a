import Foundation
import Fuzzing
import Testing

/// Tries every input of the kept corpus, `Tests/Base/Fuzzing/Corpus`, and mutations of them.
/// `scripts/fuzz` searches for as long as one likes, guided by coverage. It adds an input that
/// breaks a promise to the corpus, and with `--keep` the inputs that reach new code.
@Suite("Fuzzing") struct CorpusTests {
  private func corpus(_ target: FuzzTarget) throws -> [[UInt8]] {
    let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Fuzzing/Corpus/\(target.rawValue)")
    let files = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    return try files.map { Array(try Data(contentsOf: directory.appendingPathComponent($0))) }
  }

  @Test("no kept input breaks a promise", arguments: FuzzTarget.allCases)
  func kept(_ target: FuzzTarget) throws {
    let inputs = try corpus(target)
    #expect(inputs.count > 10)
    for input in inputs {
      if let fault = target.fault(input) { Issue.record("\(fault): \(input)") }
    }
  }

  @Test("no mutation breaks a promise in two seconds", arguments: FuzzTarget.allCases)
  func mutations(_ target: FuzzTarget) throws {
    let inputs = try corpus(target)
    let seed = UInt64.random(in: 0...(.max))
    print("seed of the mutations of \(target): \(seed)")
    var mutator = Mutator(seed: seed)
    let end = Date().addingTimeInterval(2)
    while Date() < end {
      let input = mutator.mutate(
        inputs[mutator.number(below: inputs.count)],
        with: inputs[mutator.number(below: inputs.count)])
      if let fault = target.fault(input) { Issue.record("\(fault): \(input), seed \(seed)") }
    }
  }
}
