import PreferenceCloud
import PropertyList

/// What the files of all hosts have together, for one host, and the server that a session speaks
/// with: requests and answers are those of etcd's gateway (`EtcdCoding`). It is a pure state
/// machine.
///
/// Promises:
/// - The record of a key is the one with the latest stamp in any file: hosts that have read the
///   same files have the same records, in whatever order and however often they have read them.
/// - A record never goes back to an earlier one while `prefs-cloud` runs, also where a file is
///   gone.
/// - Revisions are this host's own, and go on from those that its state has.
struct DirectoryServer: Sendable {
  typealias Record = HostFile.Record

  private struct Entry {
    var record: Record
    /// 0 if the watch was not told of it yet.
    var revision: Int64 = 0
  }

  private let prefix: String
  private let identity: String
  /// The records of each file.
  private(set) var files: [String: [[UInt8]: Record]] = [:]
  private var entries: [[UInt8]: Entry] = [:]
  /// The names whose entries have no revision yet, in the order in which they came.
  private var fresh: [[UInt8]] = []
  private(set) var revision: Int64
  /// What the host knew when `prefs-cloud` began: a record that it knew keeps its revision.
  private var known: [[UInt8]: (stamp: Stamp, revision: Int64)]
  /// Names whose records were forgotten, and the revisions of that.
  private var removals: [(name: [UInt8], revision: Int64)] = []
  /// The first revision that the watch was not told of; nil if there is no watch.
  private var watched: Int64?

  /// Creates a server that has read no file.
  /// - Parameters:
  ///   - prefix: what names begin with.
  ///   - identity: what tells the values of this cloud from those of others.
  ///   - revision: the last one that the host has heard of.
  init(
    prefix: String, identity: String, revision: Int64 = 0,
    known: [[UInt8]: (stamp: Stamp, revision: Int64)] = [:]
  ) {
    (self.prefix, self.identity) = (prefix, identity)
    self.revision = max(1, known.values.reduce(revision) { max($0, $1.revision) })
    self.known = known
  }

  // MARK: - Files

  /// Takes over records that were read in a file, or appended to it.
  /// - Parameter isWhole: whether they are all that the file has.
  mutating func hear(_ records: [Record], in file: String, isWhole: Bool = false) {
    if isWhole { files[file] = [:] }
    for record in records {
      if files[file]?[record.name].map({ record.wins(over: $0) }) ?? true {
        files[file, default: [:]][record.name] = record
      }
      guard let entry = entries[record.name] else {
        // A removal that was forgotten may still be in another file.
        entries[record.name] = Entry(record: latest(record.name) ?? record)
        fresh.append(record.name)
        continue
      }
      guard record.wins(over: entry.record) else { continue }
      if entry.revision != 0 { fresh.append(record.name) }
      entries[record.name] = Entry(record: record)
    }
  }

  private func latest(_ name: [UInt8]) -> Record? {
    files.values.compactMap { $0[name] }.reduce(nil) { best, record in
      best.map { record.wins(over: $0) ? record : $0 } ?? record
    }
  }

  /// Forgets which records were in a file that is gone. The records stay.
  mutating func forget(file: String) { files[file] = nil }

  /// Bytes of records that have one revision: the store takes them over in one transaction.
  private static let largestStep = 4 << 20

  /// Gives revisions to what has been heard since the last call.
  mutating func settle() {
    var room = 0
    for name in fresh {
      guard let record = entries[name]?.record else { continue }
      if let known = known[name], known.stamp == record.stamp {
        entries[name]?.revision = known.revision
        continue
      }
      if room < record.size {
        revision = Self.next(revision)
        room = Self.largestStep
      }
      room -= record.size
      entries[name]?.revision = revision
    }
    (fresh, known) = ([], [:])
  }

  private static func next(_ revision: Int64) -> Int64 {
    let (next, overflow) = revision.addingReportingOverflow(1)
    return overflow ? .max : next
  }

  /// The records of a file that no other record has replaced, the earliest first. The file needs no
  /// others.
  func needed(in file: String, now: Int64) -> [Record] {
    let own = files[file] ?? [:]
    return own.values.filter { $0 == entries[$0.name]?.record && !canForget($0, now) }
      .sorted { $0.stamp < $1.stamp }
  }

  /// Whether a removal is older than 30 days, and no file has an earlier record, which would come
  /// back.
  private func canForget(_ record: Record, _ now: Int64) -> Bool {
    let (age, overflow) = now.subtractingReportingOverflow(record.stamp.milliseconds)
    guard record.isRemoval, !overflow, age > Self.removalAge else { return false }
    return files.values.allSatisfy { $0[record.name].map { $0 == record } ?? true }
  }

  /// Milliseconds.
  private static let removalAge: Int64 = 30 * 86_400_000

  // MARK: - Requests

  /// What becomes of a request.
  enum Outcome: Equatable {
    /// The answer, as the gateway would send it.
    case answer([UInt8])
    /// The records belong into the host's file. Then `pushed` is the answer.
    case append([Record])
    /// It is not a request of a session.
    case refused
  }

  /// Carries out a request, but for writing.
  /// - Parameter now: the time of day, in milliseconds since 1970.
  mutating func handle(_ path: some StringProtocol, _ body: [UInt8], now: Int64) -> Outcome {
    guard let root = Self.dictionary(body) else { return .refused }
    if path.hasSuffix("kv/range") {
      return .answer(answer(["kvs": .array(range(root, now))]))
    }
    guard path.hasSuffix("kv/txn") else { return .refused }
    let isFit = root.items("compare").allSatisfy { comparison in
      let revision = comparison.name("key").flatMap { entries[$0]?.revision } ?? 0
      return comparison["mod_revision"] == .string("\(revision)")
    }
    var (records, responses): ([Record], [Value]) = ([], [])
    for operation in root.items(isFit ? "success" : "failure") {
      if let range = operation["request_range"]?.dictionary {
        responses.append(["response_range": ["kvs": .array(self.range(range, now))]])
      } else if let put = operation["request_put"]?.dictionary {
        guard let name = put.name("key"), let bytes = put.name("value"),
          let record = Record(name: name, bytes: bytes)
        else { return .refused }
        records.append(record)
      } else if let name = operation["request_delete_range"]?.dictionary?.name("key") {
        remove(name, now)
      }
    }
    if !records.isEmpty { return .append(records) }
    return .answer(answer(["succeeded": .boolean(isFit), "responses": .array(responses)]))
  }

  /// The answer when the records of a request are in the host's file.
  var pushed: [UInt8] { answer(["succeeded": true]) }

  private mutating func remove(_ name: [UInt8], _ now: Int64) {
    guard let record = entries[name]?.record, canForget(record, now) else { return }
    entries[name] = nil
    revision = Self.next(revision)
    removals.append((name, revision))
  }

  private func range(_ request: ValueDictionary, _ now: Int64) -> [Value] {
    guard let name = request.name("key") else { return [] }
    let account = Array("\(prefix)account".utf8)
    let ofAccount: Value = [
      "key": .string(Base64.encode(account)), "mod_revision": "1",
      "value": .string(Base64.encode(Array(identity.utf8))),
    ]
    if name == account { return [ofAccount] }
    if request["range_end"] != nil {
      return [ofAccount]
        + entries.compactMap { canForget($1.record, now) ? nil : pair($0, $1) }
    }
    guard let entry = entries[name] else { return [] }
    let limit = request["revision"]?.string.flatMap { Int64($0) } ?? .max
    // Nobody keeps what was there before.
    return entry.revision <= limit ? [pair(name, entry)] : []
  }

  private func pair(_ name: [UInt8], _ entry: Entry) -> Value {
    [
      "key": .string(Base64.encode(name)), "mod_revision": .string("\(entry.revision)"),
      "value": .string(Base64.encode(entry.record.bytes)),
    ]
  }

  private func answer(_ fields: ValueDictionary) -> [UInt8] {
    var root = fields
    root["header"] = ["revision": .string("\(revision)")]
    return Document.json(.dictionary(root))
  }

  private static func dictionary(_ bytes: [UInt8]) -> ValueDictionary? {
    guard case (.dictionary(let root), .json)? = try? Document.read(bytes) else { return nil }
    return root
  }

  // MARK: - The watch

  /// Begins a watch, from the revision that the request names on.
  mutating func watch(_ body: [UInt8]) {
    let create = Self.dictionary(body)?["create_request"]?.dictionary
    watched = create?["start_revision"]?.string.flatMap { Int64($0) } ?? 1
  }

  /// Ends the watch.
  mutating func endWatch() { watched = nil }

  /// Removes and returns the lines of the watch, one for each revision. Cost: O(all records) where
  /// there is one.
  mutating func removeLines() -> [[UInt8]] {
    guard let from = watched, revision >= from else { return [] }
    var changes: [Int64: [Value]] = [:]
    for (name, entry) in entries where entry.revision >= from {
      changes[entry.revision, default: []].append(["kv": pair(name, entry)])
    }
    for (name, revision) in removals where revision >= from {
      let pair: Value = [
        "key": .string(Base64.encode(name)), "mod_revision": .string("\(revision)"),
      ]
      changes[revision, default: []].append(["type": "DELETE", "kv": pair])
    }
    removals = []
    watched = Self.next(revision)
    return changes.sorted { $0.key < $1.key }.map { revision, events in
      let header: Value = ["revision": .string("\(revision)")]
      return Document.json(["result": ["header": header, "events": .array(events)]])
    }
  }
}

extension ValueDictionary {
  fileprivate func items(_ key: Key) -> [ValueDictionary] {
    guard case .array(let items)? = self[key] else { return [] }
    return items.compactMap(\.dictionary)
  }

  /// Bytes, which are base64.
  fileprivate func name(_ key: Key) -> [UInt8]? {
    self[key]?.string.flatMap { Base64.decode(Array($0.utf8)) }
  }
}
