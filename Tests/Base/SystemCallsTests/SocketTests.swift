import Foundation
import SystemCalls
import Testing

@Suite("Sockets") struct SocketTests {
  @Test("what is received is appended, in memory that is used again")
  func receive() throws {
    let (near, far) = try Socket.pair()
    var (bytes, file): ([UInt8], SharedDescriptor?) = ([], nil)
    #expect(far.value.receive(into: &bytes, &file) == .later && bytes.isEmpty)
    #expect(near.value.send([1, 2, 3]) == .moved(3))
    #expect(far.value.receive(into: &bytes, &file) == .moved(3))
    #expect(near.value.send([4]) == .moved(1))
    #expect(far.value.receive(into: &bytes, &file) == .moved(1) && bytes == [1, 2, 3, 4])
    bytes.removeFirst(4)
    let address = bytes.withUnsafeBytes { $0.baseAddress }
    #expect(near.value.send([5]) == .moved(1))
    #expect(far.value.receive(into: &bytes, &file) == .moved(1) && bytes == [5])
    #expect(bytes.withUnsafeBytes { $0.baseAddress } == address)
    near.value.end()
    #expect(far.value.receive(into: &bytes, &file) == .ended && bytes == [5] && file == nil)
  }

  @Test("the memory of a long message is given back")
  func long() throws {
    let (near, far) = try Socket.pair()
    var (bytes, file): ([UInt8], SharedDescriptor?) = ([], nil)
    let piece = [UInt8](repeating: 7, count: 50_000)
    for _ in 0..<20 {
      #expect(near.value.send(piece[...]) == .moved(piece.count))
      #expect(far.value.receive(into: &bytes, &file) == .moved(piece.count))
    }
    #expect(bytes.count == 1_000_000 && bytes.allSatisfy { $0 == 7 })
    bytes.removeFirst(bytes.count)
    #expect(far.value.receive(into: &bytes, &file) == .later && bytes.capacity < 200_000)
  }

  @Test("a receiver that wants no descriptor gets none")
  func descriptor() throws {
    let (near, far) = try Socket.pair()
    let directory = try Descriptor(opening: "/proc/self/fd", O_RDONLY | O_DIRECTORY)
    let open = { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
    let before = try open()
    var (bytes, file): ([UInt8], SharedDescriptor?) = ([], nil)
    #expect(near.value.send([1], with: directory) == .moved(1))
    #expect(far.value.receive(into: &bytes) == .moved(1))
    #expect(try bytes == [1] && open() == before)
    #expect(near.value.send([2], with: directory) == .moved(1))
    #expect(far.value.receive(into: &bytes, &file) == .moved(1))
    #expect(try file != nil && open() == before + 1)
  }
}
