import Testing

@testable import PreferenceServer

@Suite("Bytes that wait for a client")
struct OutgoingBytesTests {
  private static let large = [UInt8](repeating: 1, count: OutgoingBytes.most)
  private static let small = [UInt8](repeating: 2, count: 1 << 20)

  @Test("messages are sent in their order, in parts of any size")
  func order() {
    var outgoing = OutgoingBytes()
    var (expected, sent): ([UInt8], [UInt8]) = ([], [])
    for number in 0..<200 as Range<UInt8> {
      let message = Array(repeating: number, count: Int(number) + 1)
      outgoing.append(message, isAnswer: number % 2 == 0)
      expected += message
      let part = outgoing.next.prefix(90)
      sent += part
      outgoing.didSend(part.count)
    }
    sent += outgoing.next
    outgoing.didSend(outgoing.next.count)
    #expect(sent == expected && !outgoing.isWaiting)
  }

  @Test("large answers do not count; what the client has not asked for does")
  func notices() {
    var outgoing = OutgoingBytes()
    for _ in 0..<2 { outgoing.append(Self.large, isAnswer: true) }
    #expect(outgoing.isFull && !outgoing.isOverfull)
    for _ in 0..<64 { outgoing.append(Self.small, isAnswer: false) }
    #expect(!outgoing.isOverfull)
    outgoing.append(Self.small, isAnswer: false)
    #expect(outgoing.isOverfull)
  }

  @Test("an answer counts no longer when it was sent")
  func sent() {
    var outgoing = OutgoingBytes()
    outgoing.append(Self.large, isAnswer: true)
    outgoing.append(Self.small, isAnswer: false)
    outgoing.didSend(Self.large.count)
    #expect(!outgoing.isFull && !outgoing.isOverfull)
    for _ in 0..<64 { outgoing.append(Self.small, isAnswer: false) }
    #expect(outgoing.isFull && outgoing.isOverfull)
  }

  @Test("what was sent takes no memory")
  func trimmed() {
    var outgoing = OutgoingBytes()
    outgoing.append(Self.small, isAnswer: true)
    for _ in 0..<100 {
      outgoing.append(Self.small, isAnswer: true)
      outgoing.didSend(Self.small.count)
    }
    #expect(outgoing.next.elementsEqual(Self.small))
    #expect(outgoing.bytes.count <= 3 * Self.small.count)
  }
}
