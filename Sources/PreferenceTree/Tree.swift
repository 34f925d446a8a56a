import PreferenceModel
import PropertyList
import SystemCalls

/// Preferences as a file system, without the file system: nodes, names, attributes and bytes.
///
/// Promises: requests are Swift values; errors are `TreeError`s, each with its errno; what the
/// kernel must be told is in `takeEffects()` after every call, in order. A refused request changes
/// nothing, is logged with domain, key and reason, and the file shows the value as it was. Text
/// that was accepted is in the engine when the call returns, but for text that is held.
///
/// Threads: one, the caller's; there is no lock. `Notice`s of other threads must be handed over to
/// it (`changed`). Time is a parameter, so that tests need none to pass: the caller passes the
/// present moment, and calls `tick` when `nextDeadline` has come.
public final class Tree {
  let engine: any Engine
  let options: TreeOptions
  let log: (String) -> Void
  let author: Author
  var table = NodeTable()
  var effects: [Effect] = []
  var lastHandle: UInt64 = 0
  /// Nodes with an editor, and when one that is settled may be thrown away.
  var edited: [NodeID: Instant] = [:]
  /// Keys removed within the last second.
  var removals: [KeyPath: Removal] = [:]
  /// Scratch files that are still to be looked at, and when.
  var watchedScratch: [NodeID: Instant] = [:]
  /// Which names were answered as missing or inherited, and where.
  var answered = AnsweredNames()
  /// When `tick` must be called next, at the latest; nil: not before the next request.
  public internal(set) var nextDeadline: Instant?
  /// Bytes of all `cachedText`s.
  var cachedBytes = 0

  /// A key that was removed a moment ago.
  struct Removal {
    /// Until when the name is not there, whatever other places hold.
    var until: Instant
    /// What type the key had, for one that is made again.
    var kind: Kind
    /// Its permission bits, for one that is made again.
    var mode: UInt32?
    /// The scratch file that it was renamed to; the engine still has the key.
    var holder: NodeID?
  }

  /// Milliseconds for which a removed name is not there.
  static let removalTime: Int64 = 1000

  /// A tree over an engine.
  /// - Parameters:
  ///   - author: tells the tree's own changes from those of others.
  ///   - log: gets a line for each refusal.
  public init(
    engine: any Engine, options: TreeOptions = TreeOptions(), author: Author,
    log: @escaping (String) -> Void
  ) {
    self.engine = engine
    self.options = options
    self.author = author
    self.log = log
    table.addRoot().modified = .now
  }

  /// What the kernel must be told because of the calls since the last time.
  public func takeEffects() -> [Effect] {
    defer { effects.removeAll(keepingCapacity: true) }
    return effects
  }

  func node(_ id: NodeID) throws(TreeError) -> Node {
    guard let node = table[id] else { throw .missing }
    return node
  }

  func domain(_ id: NodeID) throws(TreeError) -> DomainName {
    switch try node(id).subject {
    case .domain(let domain): return domain
    case .root: throw .refused("files at the root: keys lie in the directory of their domain")
    case .key, .detached, .scratch: throw .notDirectory
    }
  }

  /// Logs a refusal and gives it back to be thrown.
  func refused(_ error: TreeError) -> TreeError {
    if let sentence = error.sentence { log(sentence) }
    return error
  }
}
