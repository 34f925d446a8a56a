import Foundation
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls
import Testing

@testable import PreferenceProtocol

@Suite("Messages") struct MessageTests {
  static let location = Location(.anyUser, "com.example.app")
  static let requests: [Request] = [
    .hello(version: 1, client: .max, clock: Instant(nanoseconds: 9)), .load(location),
    .domains(.host), .modified(location),
    .apply(
      serial: 7, Author(number: 3), deadline: Instant(nanoseconds: 5), .whenSettled,
      [
        .set("K", "d", ["a", 1.5, ["k": true]], .exact([0, 255])), .set("", "d", "é", .unknown),
        .set("N", "d", .data([]), .canonical), .describe("K", "d", Description(mode: 0o640)),
        .describe("K", "d", Description(modified: Timestamp(nanoseconds: -1))), .remove("K", "d"),
        .createDomain("new"), .removeDomain("old"), .renameDomain("a", to: "b"),
      ]),
    .apply(
      serial: 1, Author(number: 1), deadline: Instant(nanoseconds: 1), .inTwoSteps, []),
    .synchronize(mounts: true), .synchronize(mounts: false), .mount(Author(number: 9)),
    .settle(.attributes, through: 5, Author(number: 9)),
    .ping, .unmount(Author(number: 9)),
    .loadLists(
      ListLoad([location, Location(.user, .global)], changing: [location], evenIfAbsent: true)),
    .loadLists(ListLoad([], evenIfAbsent: false)), .loadAll([location]), .find("K", [location]),
    .save(nil), .save(location), .report(.status), .report(.profiles), .report(.check([1, 255])),
    .report(.fragments), .load(Location(.vendor, "com.example.app")),
    .apply(
      serial: 2, Author(number: 1), deadline: Instant(nanoseconds: 1), .atOnce,
      [.remove("K", "d"), .judged, .set("K", "d", 1, .canonical)]),
  ]

  static var contents: LocationSnapshot.Contents {
    var contents = LocationSnapshot.Contents()
    contents.exists = true
    contents.modified = Timestamp(nanoseconds: 17)
    contents.list = .decoded(["K": 5, "": "", "Plain": [1, 2.5]])
    contents.listModified = Timestamp(nanoseconds: 4)
    contents.metadata["K"] = Metadata(
      text: Array(" 5\n".utf8), modified: Timestamp(nanoseconds: 3), mode: 0o600)
    let stored = StoredValue("text", Metadata(text: nil, modified: Timestamp(nanoseconds: 6)))
    contents.changes.updateValue(stored, forKey: "New")
    contents.changes.updateValue(nil, forKey: "Plain")
    contents.additions["P"] = StoredValue(
      true,
      Metadata(text: nil, modified: Timestamp(nanoseconds: 7), setter: .profile("org.example")))
    return contents
  }

  static var notice: Notice {
    var changeset = Changeset(
      [
        .init(location, .set("K", [1], .canonical)), .init(location, .remove("L")),
        .init(location, .createDomain), .init(location, .removeDomain),
        .init(location, .describe("M", Description(mode: 0o400))),
      ], time: Timestamp(nanoseconds: 99))
    changeset.version = 1 << 63
    return Notice(
      changeset: changeset, events: [KeyEvent("d", "K", .created), KeyEvent("d", "L", .removed)],
      author: Author(number: 2), origin: Origin(client: 1, serial: 2))
  }

  @Test("an answer that is larger than the client accepts says so")
  func largeAnswer() throws {
    let frame = Message.snapshot(Self.contents, version: 5).answer(7, largest: 100)
    var reader = FrameReader(largest: 1000)
    reader.bytes = frame
    let read = try #require(try reader.next())
    guard case .failed(let error) = try Message(read) else {
      Issue.record("not a failure")
      return
    }
    #expect(read.number == 7 && error.reason == .system(.fileTooLarge))
  }

  static let messages: [Message] = [
    .welcome(version: 12, isReadOnly: true, StoreIdentity(numbers: [1, 2, 0, 0]), protocol: 9),
    .snapshot(contents, version: 5),
    .snapshot(LocationSnapshot.Contents(), version: 0), .domains(["a", "é"]), .domains([]),
    .time(Timestamp(nanoseconds: -5)), .time(nil),
    .applied(notice.changeset, isSettled: true), .applied(Changeset(), isSettled: false),
    .settled(through: 7), .done,
    .failed(EngineError(.forced, domain: "d", key: "K", "because")),
    .failed(EngineError(.system(.noSpace), "full")), .failed(EngineError(.ownerGone, "")),
    .notice(notice), .notice(Notice(changeset: Changeset(), author: nil)),
    .lists([
      .contents(contents, version: 5), .missing,
      .failed(EngineError(.unreadable, domain: "d", "why"), modified: Timestamp(nanoseconds: 1)),
      .failed(EngineError(.ownerGone, ""), modified: nil),
    ]), .lists([]), .snapshots([contents], version: 6), .report(["a": 1]),
    .found(StoredValue("t", Metadata(text: [9], modified: Timestamp(nanoseconds: 2))), index: 3),
    .found(nil, index: 0),
    .found(
      StoredValue(
        1, Metadata(text: nil, modified: Timestamp(nanoseconds: 2), setter: .file("/etc/x.plist"))),
      index: 1), .failed(EngineError(.unfit, domain: "d", key: "K", "99 is more than 16")),
  ]

  private func frame(_ bytes: [UInt8]) throws -> Frame {
    var reader = FrameReader(largest: 1 << 20)
    reader.bytes = bytes
    return try #require(try reader.next())
  }

  @Test("a request is decoded as it was encoded", arguments: requests)
  func request(_ request: Request) throws {
    let frame = try frame(request.frame(77))
    #expect(try Request(frame) == request && frame.number == 77)
  }

  @Test("a message is decoded as it was encoded", arguments: messages)
  func message(_ message: Message) throws {
    let frame = try frame(message.frame(1))
    #expect(try Message(frame) == message && frame.number == 1)
  }

  @Test("what a client hears of, and which number says it, is sent")
  func hearing() throws {
    let hello = Request.hello(version: 11, client: 1, clock: .now, hearsAll: false)
    #expect(try Request(frame(hello.frame(1))) == hello)
    let welcome = Message.welcome(
      version: 1, isReadOnly: false, StoreIdentity(numbers: []), protocol: 11, number: 7)
    #expect(try Message(frame(welcome.frame(1))) == welcome)
  }

  @Test("when a value was last changed is sent, of each value of each list")
  func lastChanged() throws {
    var contents = Self.contents
    contents.metadata["K"]?.changed = Timestamp(nanoseconds: 11)
    let kept = Metadata(
      text: nil, modified: Timestamp(nanoseconds: 6), changed: Timestamp(nanoseconds: 12))
    contents.changes.updateValue(StoredValue("text", kept), forKey: "New")
    let messages: [Message] = [
      .snapshot(contents, version: 5), .snapshots([Self.contents, contents], version: 6),
      .lists([.contents(Self.contents, version: 5), .missing, .contents(contents, version: 5)]),
      .found(StoredValue("t", kept), index: 3),
    ]
    for message in messages { #expect(try Message(frame(message.frame(1))) == message) }
  }

  @Test("what sets a value is sent, with its kind")
  func setters() throws {
    for setter in [Setter.profile("org.example"), .file("/etc/x.plist"), .group("/etc/@g/x.plist")]
    {
      let kept = Metadata(text: nil, modified: Timestamp(nanoseconds: 2), setter: setter)
      let message = Message.found(StoredValue(1, kept), index: 1)
      #expect(try Message(frame(message.frame(1))) == message, "\(setter)")
    }
  }

  @Test("that a change is worked at is said with the number of its request, and answers nothing")
  func working() throws {
    let frame = try frame(Message.working(on: 1 << 40).frame(0))
    #expect(try Message(frame) == .working(on: 1 << 40))
    #expect(!Message.mayIgnore(frame))
  }

  @Test("claims are sent; a mount of an earlier version has none")
  func claims() throws {
    let author = Author(number: 9)
    let requests: [Request] = [
      .mount(author, claims: ["d/K", "d/é", "d/e\u{301}"]), .claim("d/K", author),
      .release("d/K", author), .report(.effects),
    ]
    for request in requests {
      let frame = try frame(lengthened(request.frame(77)))
      #expect(try Request(frame) == request && frame.number == 77)
    }
  }

  @Test("frames are whole, however the stream is cut")
  func pieces() throws {
    let stream = Self.requests.flatMap { $0.frame(1) }
    for size in [1, 2, 13, 1000] {
      var reader = FrameReader(largest: 1 << 20)
      var found: [Request] = []
      for start in stride(from: 0, to: stream.count, by: size) {
        reader.bytes += stream[start..<min(start + size, stream.count)]
        while let frame = try reader.next() { found.append(try Request(frame)) }
      }
      #expect(found == Self.requests)
    }
  }

  @Test("what a later version has added to a message is ignored")
  func later() throws {
    // Changes without a reason end before that field.
    for request in Self.requests where request.frame(1)[4] != 5 {
      #expect(try Request(frame(lengthened(request.frame(1)))) == request)
    }
    for message in Self.messages {
      #expect(try Message(frame(lengthened(message.frame(1)))) == message)
    }
    let unknown = try frame(Frame.bytes(200, 0) { $0.append(7 as UInt64) })
    #expect(Message.mayIgnore(unknown))
    let answer = try frame(Frame.bytes(200, 5) { $0.append(7 as UInt64) })
    #expect(!Message.mayIgnore(answer))
    #expect(throws: ProtocolError.self) { _ = try Request(answer) }
  }

  private func lengthened(_ bytes: [UInt8]) -> [UInt8] {
    var longer = bytes + [9, 9, 9, 9, 9]
    let length = UInt32(longer.count - 4)
    longer.replaceSubrange(0..<4, with: withUnsafeBytes(of: length.littleEndian) { Array($0) })
    return longer
  }

  @Test("the conversations that earlier versions have recorded are understood", arguments: [11])
  func recorded(_ version: UInt32) throws {
    let file = try String(contentsOf: Self.recording(version), encoding: .utf8)
    var (requests, messages): ([Request], [Message]) = ([], [])
    for line in file.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split(separator: " ")
      let digits = Array(words[1].utf8)
      let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
        UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
      }
      let frame = try frame(bytes)
      if words[0] == "request" {
        requests.append(try Request(frame))
      } else {
        messages.append(try Message(frame))
      }
    }
    // Each version records those of the one before, and its own behind them.
    #expect(requests[...] == Self.requests.prefix(requests.count))
    #expect(messages[...] == Self.messages.prefix(messages.count))
    let isPresent = version == Request.version
    #expect((requests.count == Self.requests.count) == isPresent)
    #expect((messages.count == Self.messages.count) == isPresent)
  }

  /// A line for each of `requests` and `messages`, as that version sends them. It is never changed:
  /// a later version gets a file of its own beside it.
  private static func recording(_ version: UInt32) -> URL {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Fixtures/version-\(version).txt")
  }

  @Test("why a change is made is said behind all else, with and without a source")
  func reason() throws {
    for via in [ChangeSource.Via.unknown, .declaration] {
      var source = ChangeSource(via)
      source.because = "é: why"
      let request = Request.apply(
        serial: 1, Author(number: 2), deadline: Instant(nanoseconds: 3), .atOnce,
        [.remove("K", "d"), .judged, .set("K", "d", 1, .canonical)], source)
      #expect(try Request(frame(request.frame(1))) == request)
    }
  }

  @Test("messages that are cut or too long are refused, and changed bytes crash nothing")
  func garbage() throws {
    var random = SystemRandomNumberGenerator()
    let all =
      Self.requests.map { (bytes: $0.frame(1), isRequest: true) }
      + Self.messages.map { (bytes: $0.frame(1), isRequest: false) }
    for (bytes, isRequest) in all {
      // A hello without a clock is one of an earlier version, which is refused in words.
      for count in 13..<bytes.count where !(isRequest && bytes[4] == 1 && count >= 25) {
        var cut = Array(bytes[..<count])
        cut.replaceSubrange(0..<4, with: withUnsafeBytes(of: UInt32(count - 4)) { Array($0) })
        let frame = try frame(cut)
        // A mount without its last field is one of an earlier program.
        if isRequest, case .mount? = try? Request(frame) { continue }
        // A value or a welcome without its last field is one of an earlier program.
        if !isRequest, [1, 2, 9, 10, 13].contains(cut[4]), (try? Message(frame)) != nil {
          continue
        }
        #expect(throws: ProtocolError.self) {
          if isRequest { _ = try Request(frame) } else { _ = try Message(frame) }
        }
      }
      for _ in 0..<200 {
        var other = bytes
        other[Int.random(in: 4..<other.count, using: &random)] = .random(in: 0...255)
        let frame = try frame(other)
        _ = try? Request(frame)
        _ = try? Message(frame)
      }
    }
    for length in [0, 8, UInt32.max] {
      var reader = FrameReader(largest: 1 << 20)
      reader.bytes = withUnsafeBytes(of: length.littleEndian) { Array($0) } + [1, 2, 3]
      #expect(throws: ProtocolError.self) { _ = try reader.next() }
    }
  }
}
