import PreferenceModel
import StoreAccess
import Support
import Testing

@testable import CloudCarrier

@Suite("The program prefs-cloud") struct CloudProgramTests {
  @Test("clones, with one name and one machine-id, have names of their own, and keep them")
  func hosts() throws {
    try withSandbox { sandbox in
      let states = ["one", "two"].map { sandbox.root + "/" + $0 }
      sandbox.shell("mkdir -p \(states.joined(separator: " "))")
      let first = states.map(CloudProgram.host)
      #expect(Set(first).count == 2)
      #expect(first.allSatisfy { $0.hasPrefix(Surroundings.hostName + "-") })
      #expect(states.map(CloudProgram.host) == first, "a carrier that starts again")
      // Where the number cannot be kept, two hosts do not take one name.
      let nowhere = "/proc/nowhere"
      #expect(CloudProgram.host(nowhere) != CloudProgram.host(nowhere))
    }
  }
}
