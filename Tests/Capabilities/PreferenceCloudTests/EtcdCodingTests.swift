import Foundation
import PreferenceModel
import PropertyList
import Synchronization
import Testing

@testable import PreferenceCloud

/// The messages of etcd's gateway, as etcd 3.4.23 was seen to send them.
@Suite("Messages of etcd") struct EtcdCodingTests {
  private static let coding = EtcdCoding(user: "ada", prefix: "/prefsfs/ada/")
  private static let key = CloudKey("com.example.editor", "A/B")
  private static let record = CloudRecord(
    value: [1, "x"], stamp: Stamp(milliseconds: 5, counter: 1, host: "h"), replaced: nil)
  private static let account = "ada /prefsfs/ada/ f00d"
  private static let header =
    #""header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"7","raft_term":"2"}"#

  private static func text(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// A kv of etcd's with the record.
  private static func pair(revision: Int = 4, record: CloudRecord = record) -> String {
    let name = text(coding.name(key))
    return
      #"{"key":"\#(name)","create_revision":"2","mod_revision":"\#(revision)","version":"1","value":"\#(text(record.bytes))"}"#
  }

  @Test("a name gives its key again; names of others give none")
  func names() {
    for key in [Self.key, CloudKey("d", ""), CloudKey(.global, "Ä/%")] {
      #expect(Self.coding.key(Self.coding.name(key)) == key)
    }
    for name in [
      "/prefsfs/ada", "/prefsfs/bob/d/K", "/prefsfs/ada/d", "/prefsfs/ada//K",
      "/prefsfs/ada/prefsfs.cloud/K", "/prefsfs/ada/prefsfs.effects/K",
      "/prefsfs/ada/prefsfs/K",
    ] {
      #expect(Self.coding.key(Array(name.utf8)) == nil, "\(name)")
    }
    #expect(Self.coding.key(Array("/prefsfs/ada/d/".utf8) + [0xFF]) == nil)
    let dropped = Mutex<[DomainName]>([])
    let coding = EtcdCoding(prefix: "/p/") { domain in dropped.withLock { $0.append(domain) } }
    #expect(coding.key(Array("/p/prefsfs.effects/K".utf8)) == nil)
    #expect(dropped.withLock { $0 } == ["prefsfs.effects"])
    #expect(EtcdCoding(prefix: "/p/").end == Array("/p0".utf8))
    #expect(EtcdCoding(prefix: "").end == [0])
  }

  @Test("a push compares the revision of each key, and asks for the present ones if one differs")
  func push() throws {
    let push = Synchroniser.Push(key: Self.key, record: Self.record, revision: 4)
    let body = try #require(Self.coding.push([push]))
    let root = try #require(
      try JSONSerialization.jsonObject(with: Data(body)) as? [String: [[String: Any]]])
    let name = Self.text(Self.coding.name(Self.key))
    #expect(
      root["compare"]?.first as? [String: String] == [
        "key": name, "target": "MOD", "mod_revision": "4",
      ])
    #expect(
      root["success"]?.first as? [String: [String: String]] == [
        "request_put": ["key": name, "value": Self.text(Self.record.bytes)]
      ])
    #expect(
      root["failure"]?.first as? [String: [String: String]] == [
        "request_range": ["key": name]
      ])
    let succeeded = Array(
      #"{\#(Self.header),"succeeded":true,"responses":[{"response_put":{"header":{"revision":"7"}}}]}"#
        .utf8)
    #expect(Self.coding.pushed(succeeded, [push]) == .event(.pushed(revision: 7)))
    for (kvs, known) in [
      ("", CloudState.Known?.none),
      (#","kvs":[\#(Self.pair())],"count":"1""#, .some(.init(Self.record, revision: 4))),
    ] {
      let refused = Array(
        #"{\#(Self.header),"responses":[{"response_range":{"header":{"revision":"7"}\#(kvs)}}]}"#
          .utf8)
      #expect(
        Self.coding.pushed(refused, [push])
          == .event(.refused([Self.key: known], revision: 7)))
    }
  }

  @Test("a list and the lines of a watch become events")
  func events() {
    let identity =
      #"{"key":"\#(Self.text(Self.coding.accountName))","mod_revision":"2","value":"\#(Self.text(Array("f00d".utf8)))"}"#
    let list = Array(#"{\#(Self.header),"kvs":[\#(identity),\#(Self.pair())],"count":"2"}"#.utf8)
    #expect(
      Self.coding.listed(list)
        == .event(
          .listed([Self.key: .init(Self.record, revision: 4)], revision: 7, account: Self.account)))
    #expect(
      Self.coding.listed(Array(#"{\#(Self.header),"kvs":[\#(identity)]}"#.utf8))
        == .event(.listed([:], revision: 7, account: Self.account)))
    #expect(Self.coding.listed(Array("{\(Self.header)}".utf8)) == .unfounded)
    let name = Self.text(Self.coding.name(Self.key))
    let lines: [(line: String, answers: [EtcdCoding.Answer])] = [
      (#"{"result":{\#(Self.header),"created":true}}"#, [.alive]),
      (
        #"{"result":{\#(Self.header),"events":[{"kv":\#(Self.pair())},{"type":"DELETE","kv":{"key":"\#(name)","mod_revision":"6"}}]}}"#,
        [
          .event(.changed([Self.key: Self.record], revision: 4)),
          .event(.changed([Self.key: nil], revision: 6)),
        ]
      ),
      (
        #"{"result":{\#(Self.header),"canceled":true,"compact_revision":"3"}}"#,
        [.event(.compacted)]
      ),
      (
        #"{"result":{\#(Self.header),"canceled":true,"cancel_reason":"denied"}}"#,
        [.failed(code: 0, "the server ended the watch: denied")]
      ),
      (
        #"{"error":"etcdserver: invalid auth token","code":16}"#,
        [.failed(code: 16, "etcdserver: invalid auth token")]
      ),
    ]
    for (line, answers) in lines {
      #expect(Self.coding.watched(Array(line.utf8)) == answers, "\(line)")
    }
    #expect(
      Self.coding.authenticated(Array(#"{\#(Self.header),"token":"abc.9"}"#.utf8))
        == .token("abc.9")
    )
  }

  @Test("the past of a key tells whether the server has it, and whose it is")
  func past() {
    let identity =
      #"{"key":"\#(Self.text(Self.coding.accountName))","mod_revision":"2","value":"\#(Self.text(Array("f00d".utf8)))"}"#
    func ranges(_ kvs: String...) -> [UInt8] {
      let ranges = kvs.map { #"{"response_range":{"kvs":[\#($0)]}}"# }.joined(separator: ",")
      return Array(#"{\#(Self.header),"succeeded":true,"responses":[\#(ranges)]}"#.utf8)
    }
    let known = CloudState.Known(Self.record, revision: 4)
    let compacted = #"{"error":"etcdserver: mvcc: required revision has been compacted","code":11}"#
    let answers: [([UInt8], EtcdCoding.Answer)] = [
      (ranges(identity, Self.pair()), .event(.history(Self.key, known, account: Self.account))),
      (ranges(identity, ""), .event(.history(Self.key, nil, account: Self.account))),
      (ranges("", Self.pair()), .event(.history(Self.key, known, account: nil))),
      (Array(compacted.utf8), .event(.history(Self.key, nil, account: nil))),
      (
        Array(#"{"error":"etcdserver: invalid auth token","code":16}"#.utf8),
        .failed(code: 16, "etcdserver: invalid auth token")
      ),
    ]
    for (bytes, answer) in answers {
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(Self.coding.resumed(bytes, Self.key) == answer, "\(text)")
    }
    let body = String(decoding: Self.coding.resume(Self.key, revision: 4), as: UTF8.self)
    #expect(body.contains(#""revision""#) && body.contains(Self.text(Self.coding.name(Self.key))))
  }

  @Test("answers that are cut at any byte, or changed, are failures or events, and trap nothing")
  func garbage() {
    let push = Synchroniser.Push(key: Self.key, record: Self.record, revision: 4)
    let whole = Array(
      #"{"result":{\#(Self.header),"events":[{"kv":\#(Self.pair())}]},"kvs":[\#(Self.pair())],\#(Self.header)}"#
        .utf8)
    for index in whole.indices {
      let cut = Array(whole.prefix(index))
      var changed = whole
      changed[index] ^= 0x41
      for bytes in [cut, changed] {
        _ = Self.coding.listed(bytes)
        _ = Self.coding.pushed(bytes, [push])
        _ = Self.coding.watched(bytes)
        _ = Self.coding.authenticated(bytes)
        _ = Self.coding.resumed(bytes, Self.key)
      }
      if case .event? = Self.coding.watched(cut).first {
        Issue.record("a line that is cut at \(index) is an event")
      }
    }
  }
}
