import Foundation
import PreferenceModel
import PropertyList
import Testing

@testable import PreferenceCloud

/// The messages of etcd's gateway, as etcd 3.4.23 was seen to send them.
@Suite("Messages of etcd") struct EtcdCodingTests {
  private static let prefix = "/prefsfs/ada/"
  private static let key = CloudKey("com.example.editor", "A/B")
  private static let record = CloudRecord(
    value: [1, "x"], stamp: Stamp(milliseconds: 5, counter: 1, host: "h"), replaced: nil)
  private static let header =
    #""header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"7","raft_term":"2"}"#

  private static func text(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// A kv of etcd's with the record.
  private static func pair(revision: Int = 4, record: CloudRecord = record) -> String {
    let name = text(EtcdCoding.name(key, prefix))
    return
      #"{"key":"\#(name)","create_revision":"2","mod_revision":"\#(revision)","version":"1","value":"\#(text(record.bytes))"}"#
  }

  @Test("a name gives its key again; names of others give none")
  func names() {
    for key in [Self.key, CloudKey("d", ""), CloudKey(.global, "Ä/%")] {
      #expect(EtcdCoding.key(EtcdCoding.name(key, Self.prefix), Self.prefix) == key)
    }
    for name in ["/prefsfs/ada", "/prefsfs/bob/d/K", "/prefsfs/ada/d", "/prefsfs/ada//K"] {
      #expect(EtcdCoding.key(Array(name.utf8), Self.prefix) == nil, "\(name)")
    }
    #expect(EtcdCoding.key(Array("/prefsfs/ada/d/".utf8) + [0xFF], Self.prefix) == nil)
    #expect(EtcdCoding.end(of: "/p/") == Array("/p0".utf8))
    #expect(EtcdCoding.end(of: "") == [0])
  }

  @Test("a push compares the revision of each key, and asks for the present ones if one differs")
  func push() throws {
    let push = Synchroniser.Push(key: Self.key, record: Self.record, revision: 4)
    let body = EtcdCoding.push([push], Self.prefix)
    let root = try #require(
      try JSONSerialization.jsonObject(with: Data(body)) as? [String: [[String: Any]]])
    let name = Self.text(EtcdCoding.name(Self.key, Self.prefix))
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
    #expect(EtcdCoding.pushed(succeeded, [push], Self.prefix) == .event(.pushed(revision: 7)))
    for (kvs, known) in [
      ("", CloudState.Known?.none),
      (#","kvs":[\#(Self.pair())],"count":"1""#, .some(.init(Self.record, revision: 4))),
    ] {
      let refused = Array(
        #"{\#(Self.header),"responses":[{"response_range":{"header":{"revision":"7"}\#(kvs)}}]}"#
          .utf8)
      #expect(
        EtcdCoding.pushed(refused, [push], Self.prefix)
          == .event(.refused([Self.key: known], revision: 7)))
    }
  }

  @Test("a list and the lines of a watch become events")
  func events() {
    let list = Array(#"{\#(Self.header),"kvs":[\#(Self.pair())],"count":"1"}"#.utf8)
    #expect(
      EtcdCoding.listed(list, Self.prefix)
        == .event(.listed([Self.key: .init(Self.record, revision: 4)], revision: 7)))
    #expect(
      EtcdCoding.listed(Array("{\(Self.header)}".utf8), Self.prefix)
        == .event(.listed([:], revision: 7)))
    let name = Self.text(EtcdCoding.name(Self.key, Self.prefix))
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
      #expect(EtcdCoding.watched(Array(line.utf8), Self.prefix) == answers, "\(line)")
    }
    #expect(
      EtcdCoding.authenticated(Array(#"{\#(Self.header),"token":"abc.9"}"#.utf8)) == .token("abc.9")
    )
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
        _ = EtcdCoding.listed(bytes, Self.prefix)
        _ = EtcdCoding.pushed(bytes, [push], Self.prefix)
        _ = EtcdCoding.watched(bytes, Self.prefix)
        _ = EtcdCoding.authenticated(bytes)
      }
      if case .event? = EtcdCoding.watched(cut, Self.prefix).first {
        Issue.record("a line that is cut at \(index) is an event")
      }
    }
  }
}
