import SystemCalls
import Testing

@testable import FUSEDriver

@Suite("Requests under way, where the kernel does not send them again")
struct OutstandingRequestsTests {
  @Test("those that were noted are handed out, and those that a driver ended before noting")
  func removed() throws {
    let log = try SharedLog(name: "test")
    let requests = OutstandingRequests(log, after: 2)
    requests.begin(4, needsAnswer: true)
    requests.begin(6, needsAnswer: true)
    requests.begin(8, needsAnswer: false)
    requests.begin(7, needsAnswer: false)
    requests.end(6)
    #expect(removeAll(log).prefix(3) == [4, 10, 12])
    // What comes between this end and the next is noted anew.
    #expect(removeAll(log).prefix(2) == [10, 12])
  }

  @Test("a driver that ends before its first request")
  func first() throws {
    let log = try SharedLog(name: "test")
    _ = OutstandingRequests(log, after: 2)
    #expect(removeAll(log).first == 4)
    // A successor keeps what its predecessor has noted.
    OutstandingRequests(log, after: 2).begin(20, needsAnswer: true)
    _ = OutstandingRequests(log, after: 2)
    #expect(removeAll(log).prefix(2) == [20, 22])
  }

  private func removeAll(_ log: SharedLog) -> [UInt64] {
    var removed: [UInt64] = []
    OutstandingRequests.removeAll(from: log) { removed.append($0) }
    return removed
  }
}
