import Foundation
import Support
import Testing

/// Runs suites of `Tests/Suites`, a few seconds each; `scripts/conformance` gives them more time.
@Suite("Python suites on a mount") struct SuiteTests {
  private static let suites = [
    "posix.py $M", "fsx.py $M/fsx/Data 5", "stress.py $M/stress 4 5",
  ]

  @Test("a suite finds no fault", arguments: suites)
  func suite(_ command: String) throws {
    try withMount(["-o", "new=string"]) { (sandbox: Sandbox, _: Mount) throws -> Void in
      let prepared = sandbox.shell(
        "mkdir $M/fsx $M/stress; echo x > $M/fsx/Data; setfattr -n user.prefs.type -v data $M/fsx/Data"
      )
      #expect(prepared.status == 0, "\(prepared.errors)")
      let outcome = sandbox.shell("/usr/bin/python3 \(Program.suite(command))")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("mounts, a program and `defaults` at once find no fault, and no memory is kept")
  func soak() throws {
    try withSandbox { sandbox in
      let programs = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
      let outcome = sandbox.shell("/usr/bin/python3 \(Program.suite("soak.py")) \(programs) 4")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("owners that are killed around deadlines of declarations meet them, and leave nothing")
  func deadlines() throws {
    try withSandbox { sandbox in
      let programs = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
      let outcome = sandbox.shell(
        "/usr/bin/python3 \(Program.suite("deadlines.py")) \(programs) 36 6")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }

  @Test("the history keeps what a user may expect of it")
  func history() throws {
    try withSandbox { sandbox in
      let programs = URL(fileURLWithPath: Program.path).deletingLastPathComponent().path
      let outcome = sandbox.shell(
        "/usr/bin/python3 \(Program.suite("history.py")) \(programs) 1")
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    }
  }
}
