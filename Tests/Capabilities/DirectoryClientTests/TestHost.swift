import Foundation
import PreferenceCloud
import PreferenceModel
import PropertyList
import SystemCalls

@testable import DirectoryClient

/// Seals in a way that shows changes, and is quick.
struct TestSealer: ValueSealer {
  var key: UInt8 = 7

  func seal(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]? {
    let nonce = (0..<8).map { _ in UInt8.random(in: 0...255) }
    return nonce + bytes.map { $0 ^ key } + sum(nonce + bytes + context)
  }

  func open(_ bytes: [UInt8], context: [UInt8]) -> [UInt8]? {
    guard bytes.count >= 24 else { return nil }
    let content = bytes[8..<(bytes.count - 16)].map { $0 ^ key }
    return Array(bytes.suffix(16)) == sum(bytes.prefix(8) + content + context) ? content : nil
  }

  private func sum(_ bytes: [UInt8]) -> [UInt8] {
    var (left, right): (UInt64, UInt64) = (14_695_981_039_346_656_037, UInt64(key))
    for byte in bytes {
      left = (left ^ UInt64(byte)) &* 1_099_511_628_211
      right = (right &+ left) &* 6_364_136_223_846_793_005
    }
    return withUnsafeBytes(of: left) { Array($0) } + withUnsafeBytes(of: right) { Array($0) }
  }
}

/// A machine with the real state machine, session and transport, and a store in memory.
final class TestHost {
  let path: String
  let sealer: TestSealer
  private let name: String
  private var names = 0
  private(set) var machine = Synchroniser(CloudState(host: ""))
  private var session: CloudSession?
  private var transport: DirectoryTransport?
  private var saved = SavedCloud()
  private(set) var file: HostFileIdentity
  private(set) var values: [CloudKey: Value] = [:]
  /// What was logged, and why there is no connection.
  private(set) var lines: [String] = []
  private(set) var error: String?
  /// The session's clock. Its pauses cost no time.
  private var clock = Instant.now
  /// The time of day is that many milliseconds ahead.
  var skew: Int64 = 0
  private static let coding = EtcdCoding(prefix: "dir:")

  init(_ path: String, _ name: String, key: UInt8 = 7) {
    (self.path, self.name, sealer) = (path, name, TestSealer(key: key))
    file = HostFileIdentity(host: name)
    begin()
  }

  /// A machine with a copy of another one's state, whose directory is at the path.
  init(cloneOf host: TestHost, _ path: String, _ name: String) {
    (self.path, self.name, sealer, file) = (path, name, host.sealer, host.file)
    (saved, values) = (host.saved, host.values)
    begin()
  }

  /// The file of this machine.
  var ownFile: String { "\(path)/\(HostFileName.name(of: file.host))" }

  /// The values that lost here.
  var replacedValues: [Value] { machine.state.replacedValues.compactMap(\.value) }

  /// Begins as a new process does. What an earlier one was doing is forgotten.
  func begin() {
    machine = Synchroniser(CloudState(saved, host: newName()))
    machine.notesAncestors = true
    session = CloudSession(Self.coding, endpoints: ["dir:\(path)"], password: nil)
    transport = DirectoryTransport(
      path, Self.coding, sealer, identity: "test", machine.state, file: file,
      newHost: { [unowned self] in newName() }, save: { [unowned self] in file = $0 },
      settling: 0, log: { [unowned self] in lines.append($0.text) })
    handle(.timeout)
  }

  private func newName() -> String {
    names += 1
    return "\(name)-\(names)"
  }

  /// Sets a key, or removes it. The answer to what is sent comes with `run`.
  func set(_ key: CloudKey, _ value: Value?) {
    values[key] = value
    carryOut(feed(.set([key: value]), nil))
  }

  /// Looks at the directory, and goes on until nothing is left to do.
  func run() {
    clock = clock.advanced(milliseconds: 100_000)
    handle(.timeout)
    serve()
    handle(.probe)
    serve()
  }

  private func serve() {
    for _ in 0..<100 {
      let inputs = transport?.wait(until: .now, or: []) ?? []
      if inputs.isEmpty { return }
      for input in inputs {
        handle(input)
        if session?.isPaused == true { break }
      }
    }
  }

  private func handle(_ input: CloudSession.Input) {
    carryOut(session?.handle(input, now: clock, random: 0.5) ?? [])
  }

  private func carryOut(_ first: [CloudSession.Command]) {
    var waiting = first[...]
    while let command = waiting.popFirst() {
      switch command {
      case .call(let url, let body, let token, let patience):
        transport?.call(url, body, token: token, patience: patience)
      case .watch(let url, let body, let token): transport?.watch(url, body, token: token)
      case .endWatch: transport?.endWatch()
      case .disconnect: transport?.disconnect()
      case .status(let status): error = status.error
      case .silent: break
      case .event(let event, let server): waiting += feed(event, server)
      }
    }
  }

  private func feed(_ event: Synchroniser.Event, _ server: Int64?) -> [CloudSession.Command] {
    let wall = Timestamp.now.nanoseconds / 1_000_000 + skew
    let actions = machine.handle(
      event, wall: wall, now: HostTime(wall: wall, steady: HostTime.now.steady),
      server: server.map { $0 + skew })
    saved.apply(machine.removeUnsaved())
    for action in actions {
      if case .edit(let edits) = action { for (key, value) in edits { values[key] = value } }
      if case .drawName = action { machine.rename(host: newName()) }
    }
    return session?.perform(actions) ?? []
  }
}

/// Runs the body with a directory that is removed afterwards.
func withDirectory(_ body: (String) throws -> Void) throws {
  let path = FileManager.default.temporaryDirectory.path + "/prefsfs-\(UUID().uuidString)"
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: path) }
  try body(path)
}
