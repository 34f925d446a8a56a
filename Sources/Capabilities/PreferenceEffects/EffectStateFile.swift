import Glibc
import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// The file of an `EffectState`, and the locks beside it, in `effects` of the state directory.
///
/// Promises: what `update` has changed is on the disk when it returns. The file is replaced in one
/// step. One that is missing, damaged or of another machine stands for a machine on which no rule
/// has been carried out.
///
/// Threads: any, and several processes. Calls wait for a disk. Lock: flock(2) of `state.lock`, which
/// is held while the file is replaced.
public struct EffectStateFile: Sendable {
  private let directory: String
  private let host: String

  /// The largest file that is read, in bytes.
  private static let largest = 1 << 28

  /// Finds the file of a store.
  public init(_ layout: StoreLayout) {
    self.init(directory: layout.stateDirectory + "/effects", host: layout.hostIdentifier)
  }

  package init(directory: String, host: String) {
    (self.directory, self.host) = (directory, host)
  }

  private var path: String { directory + "/state" }

  /// What the file says; nil means nothing. Throws where it cannot be read.
  public func read() throws(EngineError) -> EffectState? {
    let bytes = try EngineError.wrapping { () throws(SystemError) in
      try Files.regularContents(path, limit: Self.largest)
    }
    return bytes.flatMap { EffectState($0, host: host) }
  }

  /// Changes the state, and saves it durably if that has changed something, or there was none.
  @discardableResult
  public func update(
    _ body: (inout EffectState) -> Void = { _ in }
  ) throws(EngineError) -> EffectState {
    let lock = try lock("state.lock")
    defer { lock.unlock() }
    let old = try read()
    let state = changed(old, body)
    if state == old { return state }
    try EngineError.wrapping { () throws(SystemError) in
      try Files.replaceDurably(path, with: state.bytes(host: host), by: path + ".new")
    }
    return state
  }

  private func changed(_ old: EffectState?, _ body: (inout EffectState) -> Void) -> EffectState {
    var state = old ?? EffectState()
    body(&state)
    return state
  }

  /// Throws where there is no room for what `update` would save, as on a full disk. It writes a file
  /// with that, which need not reach the disk.
  func checkRoom(for body: (inout EffectState) -> Void) throws(EngineError) {
    let lock = try lock("state.lock")
    defer { lock.unlock() }
    let state = changed(try read(), body)
    try EngineError.wrapping { () throws(SystemError) in
      defer { unlink(path + ".new") }
      try Descriptor(opening: path + ".new", O_WRONLY | O_CREAT).write(state.bytes(host: host))
    }
  }

  /// Takes the lock with which one process at a time carries out rules by itself. Waits.
  public func lockServing() throws(EngineError) -> Descriptor { try lock("serving.lock") }

  /// Takes the lock with which one process at a time carries out the rule. Waits.
  public func lock(rule name: String) throws(EngineError) -> Descriptor {
    try lock("rule-\(StableHash.text(of: name.utf8)).lock")
  }

  private func lock(_ name: String) throws(EngineError) -> Descriptor {
    try EngineError.wrapping { () throws(SystemError) in
      try Files.makeDirectories(directory, mode: 0o700)
      let file = try Descriptor(opening: "\(directory)/\(name)", O_RDWR | O_CREAT)
      _ = try file.lockExclusively(waiting: true)
      return file
    }
  }
}
