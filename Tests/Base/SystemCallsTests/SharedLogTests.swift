import Glibc
import SystemCalls
import Testing

@Suite("Logs in shared memory") struct SharedLogTests {
  @Test("what was appended is what another owner of the memory reads")
  func adopt() throws {
    let log = try SharedLog(name: "test")
    #expect(log.append([1, 2, 3]) && log.append([]) && log.append([4]))
    log[3] = 7
    log.setSlot(5, 8)
    log.message = [9, 9]
    let copy = Descriptor(owning: dup(log.descriptor.number))
    let other = try SharedLog(adopting: copy)
    #expect(other.contents == [1, 2, 3, 4] && other.count == 4)
    #expect(other[3] == 7 && other.slot(5) == 8 && other.message == [9, 9])
    #expect(other.append([5]))
    #expect(log.contents == [1, 2, 3, 4, 5])
  }

  @Test("a replacement has only the new bytes, again and again, and gives memory back")
  func replace() throws {
    let log = try SharedLog(name: "test")
    for round in 1...5 {
      let bytes = [UInt8](repeating: UInt8(round), count: 1 << 20)
      #expect(log.replace(with: [bytes]) && log.append([0]))
      #expect(log.contents == bytes + [0])
      // Blocks of 512 bytes: one half, and some pages.
      #expect(try log.descriptor.status().st_blocks < (1 << 21) / 512)
    }
  }

  @Test("the pieces of a replacement stand one behind the other, also for another owner")
  func pieces() throws {
    let log = try SharedLog(name: "test")
    #expect(log.append([1, 2]) && log.replace(with: [[3], [], [4, 5]]))
    #expect(log.contents == [3, 4, 5] && log.append([6]) && log.contents == [3, 4, 5, 6])
    let next = try SharedLog(adopting: Descriptor(owning: dup(log.descriptor.number)))
    #expect(next.replace(with: [[7]]) && log.contents == [7])
  }

  @Test("a replacement without room changes nothing, and what is appended still goes to the log")
  func full() throws {
    let log = try SharedLog(name: "test", largest: 8 << 20)
    let most = [UInt8](repeating: 1, count: log.room)
    #expect(log.room == 8 << 20 && log.append([1]))
    #expect(!log.replace(with: [most, [4]]) && log.contents == [1] && log.append([2, 3]))
    #expect(log.contents == [1, 2, 3] && !log.append(most) && log.contents == [1, 2, 3])
    #expect(try log.descriptor.status().st_blocks < (1 << 20) / 512)
    #expect(log.replace(with: [most]) && log.contents == most)
    #expect(log.replace(with: [[5]]) && log.contents == [5])
  }

  @Test("the size is sealed, and a file that is no log is refused")
  func sealed() throws {
    let log = try SharedLog(name: "test")
    #expect(ftruncate(log.descriptor.number, 0) != 0)
    #expect(throws: SystemError.self) {
      try SharedLog(adopting: Descriptor(opening: "/dev/null", O_RDWR))
    }
  }
}

extension SharedLog {
  fileprivate func append(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes(append) }
}
