import Foundation
@testable import PreferenceClient
import PreferenceModel
import PreferenceProtocol
import PropertyList
import Support
import Synchronization
import SystemCalls
import Testing

private let user = Location(.user, "d")
private let author = Author(number: 5)

@Suite("Requests in memory that client and owner share") struct RingTests {
  /// A client that a test moves by hand.
  private struct Client {
    let socket: SharedSocket
    let ring: SharedRing

    init(_ served: ServedStore) throws {
      socket = try served.connection()
      ring = try SharedRing()
      send(Request.hello(version: Request.version, client: 9).frame(1))
      let message = Request.ring.frame(0)
      let file = try #require(ring.descriptor)
      #expect(socket.value.send(message, with: file.value) == .moved(message.count))
    }

    func send(_ bytes: [UInt8]) { #expect(socket.value.send(bytes[...]) == .moved(bytes.count)) }

    func write(_ bytes: [UInt8]) { #expect(ring.write(bytes[...]) == bytes.count) }

    /// Writes a change into the ring, without waking the owner.
    func set(_ value: Value, serial: UInt64) {
      let request = Request.apply(
        serial: serial | Origin.ordered, author, deadline: Instant(nanoseconds: .max),
        settles: false, [.set("K", "d", value, .unknown)])
      write(request.frame(serial))
    }
  }

  /// Receives until the other end closes the connection, or the frame of that number has come.
  /// - Returns: the frame; nil: the connection was closed, or nothing came for 5 s.
  private func answer(_ number: UInt64, _ socket: SharedSocket) throws -> Message? {
    var reader = FrameReader(largest: Message.largest)
    var file: SharedDescriptor?
    while socket.value.wait(until: Instant.now.advanced(milliseconds: 5000)) {
      if socket.value.receive(into: &reader.bytes, &file) == .ended { return nil }
      while let frame = try reader.next() {
        if frame.number == number { return try Message(frame) }
      }
    }
    Issue.record("nothing came for 5 s")
    return nil
  }

  @Test("what is in the ring is carried out before a request that is sent later")
  func order() throws {
    try withServedStore { served in
      // Reads overtake changes that wait for their lists to be read: the first change makes the
      // domain, the second has its lists read in every place.
      let first = try served.client()
      defer { first.close() }
      for _ in 0..<2 { _ = try first.apply([.set("K", "d", 0, .unknown)], by: author) }
      let client = try Client(served)
      for round in 1...100 as ClosedRange<UInt64> {
        client.set(.integer(WideInteger(round)), serial: round)
        client.send(Request.find("K", [user]).frame(1000 + round))
        guard case .found(let stored, _) = try answer(1000 + round, client.socket) else {
          Issue.record("no answer")
          return
        }
        #expect(stored?.value == .integer(WideInteger(round)))
      }
    }
  }

  @Test("what a client wrote is carried out although it ends without having woken the owner")
  func lastWords() throws {
    try withServedStore { served in
      for round in 1...20 as ClosedRange<UInt64> {
        let client = try Client(served)
        // The owner waits again.
        Instant.sleep(milliseconds: 2)
        client.set(.integer(WideInteger(round)), serial: round)
        client.socket.value.end()
        let end = Instant.now.advanced(milliseconds: 5000)
        while try served.places.find("K", at: user)?.value != .integer(WideInteger(round)) {
          try #require(Instant.now < end, "round \(round)")
          Instant.sleep(milliseconds: 1)
        }
      }
    }
  }

  @Test("values larger than the ring go through it, in order, with small ones")
  func large() throws {
    try withServedStore { served in
      let client = try served.client()
      defer { client.close() }
      let sizes = [1, SharedRing.capacity - 100, 3 * SharedRing.capacity, 5 << 20, 2]
      for (index, size) in sizes.enumerated() {
        let value = Value.data([UInt8](repeating: UInt8(index), count: size))
        let sent = client.post(
          [.set(Key("K\(index)"), "d", value, .unknown), .set("Last", "d", value, .unknown)],
          by: author, serial: UInt64(index + 1), until: Instant.now.advanced(milliseconds: 5000)
        ) { _ in }
        #expect(sent == .sent)
      }
      try client.makeDurable()
      for (index, size) in sizes.enumerated() {
        guard case .data(let bytes) = try served.places.find(Key("K\(index)"), at: user)?.value
        else { throw POSIXError(.EINVAL) }
        #expect(bytes == [UInt8](repeating: UInt8(index), count: size))
      }
      #expect(try served.places.find("Last", at: user)?.value == .data([4, 4]))
    }
  }

  /// What a client may do wrong, after its first request.
  private static let wrongs: [(name: String, act: @Sendable (Client) throws -> Void)] = [
    (
      "numbers that make no sense",
      { client in
        var number = UInt64.max
        let file = try #require(client.ring.descriptor).value.number
        #expect(pwrite(file, &number, 8, 0) == 8)
        client.send(Request.look.frame(0))
      }
    ),
    (
      "garbage",
      { client in
        client.write([UInt8](repeating: 0xFF, count: 1000))
        client.send(Request.look.frame(0))
      }
    ),
    ("a second ring without a descriptor", { $0.send(Request.ring.frame(0)) }),
    (
      "memory of another kind",
      { client in
        let log = try SharedLog(name: "test")
        _ = client.socket.value.send(Request.ring.frame(0), with: log.descriptor)
      }
    ),
  ]

  @Test("a ring that makes no sense ends its connection, and others go on")
  func hostile() throws {
    for (name, act) in Self.wrongs {
      try withServedStore { served in
        let good = try served.client()
        defer { good.close() }
        let client = try Client(served)
        client.set(1, serial: 1)
        client.send(Request.look.frame(0))
        #expect(try answer(1, client.socket) != nil)
        try act(client)
        #expect(try answer(77, client.socket) == nil, "\(name)")
        _ = try good.apply([.set("Other", "d", 2, .canonical)], by: author)
        #expect(try good.find("Other", at: user)?.value == 2)
      }
    }
  }

  @Test("garbage that the owner finds in a ring without having been woken ends the connection")
  func unseenGarbage() throws {
    try withServedStore { served in
      for _ in 0..<20 {
        let client = try Client(served)
        client.set(1, serial: 1)
        client.send(Request.look.frame(0))
        client.write([UInt8](repeating: 0xFF, count: 1000))
        // Mostly the owner has not fallen asleep again.
        if client.ring.mustWake() { client.send(Request.look.frame(0)) }
        #expect(try answer(77, client.socket) == nil)
      }
    }
  }

  @Test("an owner that stops answers what clients have posted before")
  func stop() throws {
    try withServedStore { served in
      let client = try served.client()
      defer { client.close() }
      for key in ["K", "K2"] as [Key] {
        _ = try client.apply([.set(key, "d", 0, .unknown)], by: author)
      }
      let answers = Mutex((answered: 0, lost: 0))
      let count = 2000
      for number in 1...count {
        let sent = client.post(
          [.set("K", "d", .integer(WideInteger(Int64(number))), .unknown)], by: author,
          serial: UInt64(number), until: Instant.now.advanced(milliseconds: 5000)
        ) { answer in
          answers.withLock { if answer == nil { $0.lost += 1 } else { $0.answered += 1 } }
        }
        #expect(sent == .sent)
      }
      served.server.stop()
      let end = Instant.now.advanced(milliseconds: 5000)
      while answers.withLock({ $0.answered + $0.lost }) < count, Instant.now < end {
        Instant.sleep(milliseconds: 1)
      }
      #expect(answers.withLock { $0.answered } == count)
      #expect(try served.places.find("K", at: user)?.value == .integer(WideInteger(Int64(count))))
    }
  }
}
