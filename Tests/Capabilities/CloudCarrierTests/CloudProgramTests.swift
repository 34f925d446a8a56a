import StoreAccess
import Testing

@testable import CloudCarrier

@Suite("The program prefs-cloud") struct CloudProgramTests {
  @Test("each carrier has a name of its own: the machine's, and eight random digits")
  func hosts() {
    let names = (0..<20).map { _ in CloudProgram.newHostName() }
    #expect(Set(names).count == names.count)
    for name in names {
      #expect(name.hasPrefix(Surroundings.hostName + "-"))
      let digits = name.dropFirst(Surroundings.hostName.count + 1)
      #expect(digits.count == 8 && UInt32(digits, radix: 16) != nil, "\(name)")
    }
  }
}
