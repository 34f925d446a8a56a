import PreferenceModel
import PropertyList

/// The names and messages of etcd's JSON gateway (etcd 3.4, api/v3): requests as JSON bodies, and
/// what their answers mean. Pure functions.
///
/// In that JSON numbers of 64 bits are strings, bytes are base64, and fields that are zero or false
/// are left out.
public struct EtcdCoding: Sendable {
  /// The user's name at the server; nil if it asks for none.
  let user: String?
  /// What etcd's names of this user's keys begin with.
  package let prefix: String
  /// Seals values before they leave this host; nil if they leave it as they are.
  let sealer: (any ValueSealer)?
  /// Is called for each record whose domain may not be in the cloud.
  let dropped: @Sendable (DomainName) -> Void

  /// Creates the coding for a user.
  public init(
    user: String? = nil, prefix: String, sealer: (any ValueSealer)? = nil,
    dropped: @escaping @Sendable (DomainName) -> Void = { _ in }
  ) {
    (self.user, self.prefix, self.sealer, self.dropped) = (user, prefix, sealer, dropped)
  }

  // MARK: - Names

  /// etcd's name of a key: the prefix, the domain, a slash and the key. A domain has no slash.
  package func name(_ key: CloudKey) -> [UInt8] {
    Array("\(prefix)\(key.domain)/\(key.key)".utf8)
  }

  /// The key of a name; nil for names of others.
  func key(_ name: [UInt8]) -> CloudKey? {
    guard name.starts(with: prefix.utf8),
      let rest = String(validating: name.dropFirst(prefix.utf8.count), as: UTF8.self),
      let slash = rest.firstIndex(of: "/")
    else { return nil }
    let domain = DomainName(String(rest[..<slash]))
    guard domain.canNameList else { return nil }
    guard domain.mayBeInCloud else {
      dropped(domain)
      return nil
    }
    return CloudKey(domain, Key(String(rest[rest.index(after: slash)...])))
  }

  /// The first name behind all that begin with the prefix (etcd's range_end).
  var end: [UInt8] {
    var end = Array(prefix.utf8)
    while let last = end.popLast() {
      if last < 0xFF { return end + [last + 1] }
    }
    return [0]
  }

  /// The name of the record that identifies the values of a prefix, on whatever server they are. It
  /// has no slash behind the prefix: it is no key's.
  var accountName: [UInt8] { Array("\(prefix)account".utf8) }

  // MARK: - Requests

  /// The body that makes the record which identifies the values, unless it is there: POST
  /// /v3/kv/txn.
  func found(_ identity: String) -> [UInt8] {
    let name = Self.base64(accountName)
    return Self.json([
      "compare": [["key": name, "target": "MOD", "mod_revision": "0"]],
      "success": [["request_put": ["key": name, "value": Self.base64(Array(identity.utf8))]]],
    ])
  }

  /// The body that asks for every record: POST /v3/kv/range.
  public var list: [UInt8] {
    Self.json(["key": Self.base64(Array(prefix.utf8)), "range_end": Self.base64(end)])
  }

  /// The body that asks whether the server is there, and knows the others of its cluster: POST
  /// /v3/kv/range. It costs the server one look-up.
  var heartbeat: [UInt8] { Self.json(["key": Self.base64(accountName)]) }

  /// The body that asks for the record that identifies the values, and for the one that the key had
  /// at that revision: POST /v3/kv/txn.
  func resume(_ key: CloudKey, revision: Int64) -> [UInt8] {
    Self.json([
      "success": [
        ["request_range": ["key": Self.base64(accountName)]],
        [
          "request_range": ["key": Self.base64(name(key)), "revision": .string("\(revision)")]
        ],
      ]
    ])
  }

  /// The body that hears of changes: POST /v3/watch.
  public func watch(from revision: Int64) -> [UInt8] {
    Self.json([
      "create_request": [
        "key": Self.base64(Array(prefix.utf8)), "range_end": Self.base64(end),
        "start_revision": .string("\(revision)"),
      ]
    ])
  }

  /// The body that writes records if none has changed: POST /v3/kv/txn. If one has, the answer has
  /// the present ones. Returns nil where a value could not be sealed.
  public func push(_ pushes: [Synchroniser.Push]) -> [UInt8]? {
    let records = pushes.compactMap { bytes($0) }
    guard records.count == pushes.count else { return nil }
    let names = pushes.map { Self.base64(name($0.key)) }
    return Self.json([
      "compare": .array(
        zip(names, pushes).map { name, push in
          ["key": name, "target": "MOD", "mod_revision": .string("\(push.revision)")]
        }),
      "success": .array(
        zip(names, records).map { name, record in
          ["request_put": ["key": name, "value": Self.base64(record)]]
        }),
      "failure": .array(names.map { ["request_range": ["key": $0]] }),
    ])
  }

  /// The body that deletes a record if it has that revision: POST /v3/kv/txn.
  public func purge(_ key: CloudKey, revision: Int64) -> [UInt8] {
    let name = Self.base64(name(key))
    return Self.json([
      "compare": [["key": name, "target": "MOD", "mod_revision": .string("\(revision)")]],
      "success": [["request_delete_range": ["key": name]]],
    ])
  }

  /// The body that asks for a token: POST /v3/auth/authenticate.
  public func authenticate(_ password: String) -> [UInt8] {
    Self.json(["name": .string(user ?? ""), "password": .string(password)])
  }

  // MARK: - Answers

  /// What a line of an answer means.
  public enum Answer: Equatable, Sendable {
    /// Something for the state machine, and the keys whose records cannot be read.
    case event(Synchroniser.Event, unreadable: Set<CloudKey> = [])
    /// The watch has begun, or is alive.
    case alive
    /// Nobody has kept anything under the prefix yet.
    case unfounded
    /// A token, for the header `Authorization`.
    case token(String)
    /// The server refused the request, or sent what it should not.
    case failed(code: Int64, String)
  }

  /// Reads the answer to `list`.
  public func listed(_ bytes: [UInt8]) -> Answer {
    Self.read(bytes) { root in
      guard let revision = root.header else { return nil }
      var records: [CloudKey: CloudState.Known] = [:]
      var unreadable: Set<CloudKey> = []
      var account: String?
      for pair in root.array("kvs") {
        if pair.bytes("key") == accountName { account = self.account(pair) }
        guard let (key, known) = record(pair) else { continue }
        records[key] = known
        if known == nil { unreadable.insert(key) }
      }
      guard let account else { return .unfounded }
      return .event(
        .listed(records, revision: revision, account: account), unreadable: unreadable)
    }
  }

  /// Reads the answer to `push`.
  public func pushed(_ bytes: [UInt8], _ pushes: [Synchroniser.Push]) -> Answer {
    Self.read(bytes) { root in
      guard let revision = root.header else { return nil }
      if root["succeeded"] == true { return .event(.pushed(revision: revision)) }
      var present: [CloudKey: CloudState.Known?] = [:]
      var unreadable: Set<CloudKey> = []
      for push in pushes { present[push.key] = .some(nil) }
      for answer in root.array("responses") {
        for pair in answer["response_range"]?.dictionary?.array("kvs") ?? [] {
          guard let (key, known) = record(pair), present[key] != nil else { continue }
          if known == nil { unreadable.insert(key) }
          present[key] = known.map { .some($0) }
        }
      }
      return .event(.refused(present, revision: revision), unreadable: unreadable)
    }
  }

  /// Reads the answer to `resume`. The server may no longer have that revision, or not yet.
  func resumed(_ bytes: [UInt8], _ key: CloudKey) -> Answer {
    let answer = Self.read(bytes) { root in
      guard root.header != nil else { return nil }
      var (account, known): (String?, CloudState.Known?)
      for range in root.array("responses") {
        for pair in range["response_range"]?.dictionary?.array("kvs") ?? [] {
          if pair.bytes("key") == accountName {
            account = self.account(pair)
          } else if let (found, record) = record(pair), found == key {
            known = record
          }
        }
      }
      return .event(.history(key, known, account: account))
    }
    // OutOfRange of gRPC.
    if case .failed(11, _) = answer { return .event(.history(key, nil, account: nil)) }
    return answer
  }

  /// Reads one line of the answer to `watch`. A line has the changes of one revision, or of
  /// several: then it gives an event for each.
  public func watched(_ line: [UInt8]) -> [Answer] {
    guard let root = Self.dictionary(line) else { return [Self.garbage] }
    let result = root["result"]?.dictionary ?? [:]
    if result["canceled"] == true {
      if result.number("compact_revision") != nil { return [.event(.compacted)] }
      let reason = (result["cancel_reason"]?.string ?? "").prefix(200)
      return [.failed(code: 0, "the server ended the watch: \(reason)")]
    }
    guard result["header"] != nil else { return [Self.failure(root)] }
    var changes: [Int64: [CloudKey: CloudRecord?]] = [:]
    var unreadable: [Int64: Set<CloudKey>] = [:]
    for event in result.array("events") {
      let pair = event["kv"]?.dictionary ?? [:]
      guard let name = pair.bytes("key"), let key = key(name),
        let revision = pair.number("mod_revision")
      else { continue }
      let isRemoval = event["type"] == "DELETE"
      let record = pair.bytes("value").flatMap { CloudRecord($0, sealer.map { ($0, name) }) }
      if !isRemoval, record == nil {
        unreadable[revision, default: []].insert(key)
        changes[revision, default: [:]] = changes[revision] ?? [:]
        continue
      }
      changes[revision, default: [:]][key] = .some(isRemoval ? nil : record)
    }
    if changes.isEmpty { return [.alive] }
    return changes.sorted { $0.key < $1.key }.map { revision, changes in
      .event(.changed(changes, revision: revision), unreadable: unreadable[revision] ?? [])
    }
  }

  /// Reads the answer to `authenticate`.
  public func authenticated(_ bytes: [UInt8]) -> Answer {
    Self.read(bytes) { root in
      guard case .string(let token)? = root["token"], !token.isEmpty else { return nil }
      return .token(token)
    }
  }

  // MARK: - JSON

  private static func json(_ value: ValueDictionary) -> [UInt8] {
    Document.json(.dictionary(value))
  }

  private static func base64(_ bytes: [UInt8]) -> Value { .string(Base64.encode(bytes)) }

  private static func dictionary(_ bytes: [UInt8]) -> ValueDictionary? {
    guard case (.dictionary(let root), .json)? = try? Document.read(bytes) else { return nil }
    return root
  }

  private static let garbage = Answer.failed(code: 0, "the server sent what is no JSON object")

  private static func read(
    _ bytes: [UInt8], _ body: (ValueDictionary) -> Answer?
  ) -> Answer {
    guard let root = dictionary(bytes) else { return garbage }
    return body(root) ?? failure(root)
  }

  /// An error of the gateway: `error`, and gRPC's `code`.
  private static func failure(_ root: ValueDictionary) -> Answer {
    let text = root["error"]?.string ?? ""
    return .failed(
      code: root["code"]?.signed ?? 0,
      text.isEmpty ? "the server sent an unexpected answer" : String(text.prefix(200)))
  }

  /// Whose values these are, by the record that identifies them.
  private func account(_ pair: ValueDictionary) -> String {
    let identity = String(decoding: (pair.bytes("value") ?? []).prefix(100), as: UTF8.self)
    return "\(user ?? "") \(prefix) \(identity)"
  }

  /// A record and its key. The record is nil where it is of a later version, or sealed with another
  /// key; the whole is nil for names of others.
  private func record(_ pair: ValueDictionary) -> (CloudKey, CloudState.Known?)? {
    guard let name = pair.bytes("key"), let key = key(name),
      let revision = pair.number("mod_revision"), let bytes = pair.bytes("value")
    else { return nil }
    let record = CloudRecord(bytes, sealer.map { ($0, name) })
    return (key, record.map { CloudState.Known($0, revision: revision) })
  }

  /// The record as it is sent; nil where it could not be sealed.
  private func bytes(_ push: Synchroniser.Push) -> [UInt8]? {
    guard let sealer else { return push.record.bytes }
    return push.record.bytes(sealedBy: sealer, name: name(push.key))
  }
}

extension ValueDictionary {
  /// The revision of the answer's header.
  fileprivate var header: Int64? { self["header"]?.dictionary?.number("revision") }

  fileprivate func array(_ key: Key) -> [ValueDictionary] {
    guard case .array(let items)? = self[key] else { return [] }
    return items.compactMap(\.dictionary)
  }

  /// A number of 64 bits, which is a string; nil if it is not there.
  fileprivate func number(_ key: Key) -> Int64? {
    if case .string(let text)? = self[key] { Int64(text) } else { nil }
  }

  fileprivate func bytes(_ key: Key) -> [UInt8]? {
    guard case .string(let text)? = self[key] else { return nil }
    return Base64.decode(Array(text.utf8))
  }
}
