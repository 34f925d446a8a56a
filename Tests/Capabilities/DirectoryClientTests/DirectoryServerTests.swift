import PreferenceCloud
import PreferenceModel
import PropertyList
import Testing

@testable import DirectoryClient
@testable import PreferenceCloud

@Suite("What the files of all hosts have together") struct DirectoryServerTests {
  private static let coding = EtcdCoding(prefix: "dir:")
  private static let day: Int64 = 86_400_000

  private static func server() -> DirectoryServer {
    DirectoryServer(prefix: "dir:", identity: "i")
  }

  private static func list(
    _ server: inout DirectoryServer, now: Int64 = 100
  ) -> [CloudKey: CloudState.Known] {
    guard case .answer(let bytes) = server.handle("dir:/x/v3/kv/range", coding.list, now: now),
      case .event(.listed(let all, let revision, let account), _) = coding.listed(bytes)
    else { return [:] }
    #expect(revision == server.revision && account == " dir: i")
    return all
  }

  private static func values(_ server: inout DirectoryServer, now: Int64 = 100) -> [String: Value?]
  {
    Dictionary(
      uniqueKeysWithValues: list(&server, now: now).map { ($0.key.string, $1.record.value) })
  }

  @Test("files that arrive in any order, in parts and twice, give the same", arguments: 0..<50)
  func order(_ seed: Int) {
    let all: [(String, HostFile.Record)] = [
      ("a", .sample("A", 1, 5, "a")), ("a", .sample("A", 2, 9, "a")),
      ("b", .sample("A", 3, 7, "b")),
      ("b", .sample("B", 4, 7, "b")), ("c", .sample("B", nil, 8, "c")),
      ("c", .sample("C", 5, 1, "c")),
      ("a", .sample("C", 6, 1, "c")), ("b", .sample("D", 7, 2, "b")),
    ]
    var server = Self.server()
    for (file, record) in all.shuffled() + all.shuffled() {
      server.hear([record], in: file)
      if Bool.random() { server.settle() }
    }
    server.settle()
    var values = Self.values(&server)
    let third = values.removeValue(forKey: "C")
    #expect(values == ["A": 2, "B": nil, "D": 7])
    #expect(third == (all[6].1.wins(over: all[5].1) ? 6 : 5), "one stamp, two values")
  }

  @Test("a push is appended where the revisions fit, and refused with what is there where not")
  func push() {
    var server = Self.server()
    server.hear([.sample("A", 1, 5)], in: "b")
    server.settle()
    let key = CloudKey("d", "A")
    let known = Self.list(&server)[key]
    let stamp = Stamp(milliseconds: 9, counter: 0, host: "a")
    let record = CloudRecord(value: 2, stamp: stamp, replaced: known?.record.stamp, ancestors: [])
    for (revision, isFit) in [(0, false), (1, false), (known?.revision ?? -1, true)]
      as [(Int64, Bool)]
    {
      let push = Synchroniser.Push(key: key, record: record, revision: revision)
      let outcome = server.handle("kv/txn", Self.coding.push([push]) ?? [], now: 100)
      if isFit {
        #expect(
          outcome
            == .append([
              .init(
                name: Self.coding.name(key), stamp: stamp, isRemoval: false, bytes: record.bytes)
            ]))
      } else if case .answer(let bytes) = outcome {
        #expect(
          Self.coding.pushed(bytes, [push])
            == .event(.refused([key: known], revision: server.revision)))
      } else {
        Issue.record("\(outcome)")
      }
    }
  }

  @Test("the watch tells of each change once, and of nothing that lost")
  func watch() {
    var server = Self.server()
    server.watch(Self.coding.watch(from: server.revision + 1))
    #expect(server.removeLines() == [])
    server.hear([.sample("A", 1, 5), .sample("B", 2, 5)], in: "b")
    server.settle()
    let answers = server.removeLines().flatMap { Self.coding.watched($0) }
    guard case .event(.changed(let changes, let revision), _)? = answers.first else {
      Issue.record("\(answers)")
      return
    }
    #expect(answers.count == 1 && revision == server.revision)
    #expect(changes.mapValues { $0?.value } == [CloudKey("d", "A"): 1, CloudKey("d", "B"): 2])
    server.hear([.sample("A", 0, 4), .sample("B", 2, 5)], in: "c")
    server.settle()
    #expect(server.removeLines() == [])
  }

  @Test("a record that the host knows keeps its revision")
  func revisions() {
    let records: [HostFile.Record] = [.sample("A", 1, 5), .sample("B", 2, 6)]
    var server = DirectoryServer(
      prefix: "dir:", identity: "i", revision: 40,
      known: [records[0].name: (records[0].stamp, 33), records[1].name: (records[0].stamp, 34)])
    server.hear(records, in: "b")
    server.settle()
    let all = Self.list(&server)
    #expect(all[CloudKey("d", "A")]?.revision == 33)
    #expect(all[CloudKey("d", "B")]?.revision == 41)
  }

  @Test("an old removal goes, unless a file has an earlier value, which would come back")
  func removals() {
    let removal = HostFile.Record.sample("A", nil, 1000)
    let now = 1000 + 31 * Self.day
    var server = Self.server()
    server.hear([removal], in: "a")
    server.settle()
    #expect(Self.values(&server, now: 1000) == ["A": nil])
    #expect(Self.values(&server, now: now) == [:])
    #expect(server.needed(in: "a", now: 1000) == [removal])
    #expect(server.needed(in: "a", now: now) == [])
    server.watch(Self.coding.watch(from: server.revision + 1))
    _ = server.handle("kv/txn", Self.coding.purge(CloudKey("d", "A"), revision: 1), now: now)
    _ = server.handle(
      "kv/txn", Self.coding.purge(CloudKey("d", "A"), revision: server.revision), now: now)
    let answers = server.removeLines().flatMap { Self.coding.watched($0) }
    #expect(
      answers == [.event(.changed([CloudKey("d", "A"): nil], revision: server.revision))])
    server.hear([.sample("A", 1, 900)], in: "b")
    server.settle()
    #expect(Self.values(&server, now: now) == ["A": nil], "the value does not come back")
    #expect(server.needed(in: "a", now: now) == [removal])
  }

  @Test("a file needs what nobody has replaced; what is gone with a file stays")
  func needed() {
    var server = Self.server()
    let records: [HostFile.Record] = [.sample("A", 1, 5), .sample("B", 2, 6), .sample("C", 3, 4)]
    server.hear(records, in: "a")
    server.hear([.sample("A", 9, 8, "b")], in: "b")
    server.settle()
    #expect(server.needed(in: "a", now: 10) == [records[2], records[1]])
    server.hear([], in: "a", isWhole: true)
    server.forget(file: "b")
    server.settle()
    #expect(Self.values(&server) == ["A": 9, "B": 2, "C": 3])
  }

  @Test(
    "requests of nobody are refused",
    arguments: [
      ("kv/txn", "[]"), ("kv/txn", ""), ("auth/authenticate", "{}"), ("kv/range", "x"),
      ("kv/txn", #"{"success": [{"request_put": {"key": "!", "value": ""}}]}"#),
      ("kv/txn", #"{"success": [{"request_put": {"key": "QQ==", "value": "QQ=="}}]}"#),
    ])
  func refused(_ path: String, _ body: String) {
    var server = Self.server()
    #expect(server.handle(path, Array(body.utf8), now: 0) == .refused)
  }
}
