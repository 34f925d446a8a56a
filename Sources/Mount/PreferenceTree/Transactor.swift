import PreferenceModel
import SystemCalls

/// The only way in which a tree changes the engine.
///
/// Promises: a request's intents are one transaction. The reply waits until the other mounts have
/// settled (`Effect.awaitSettlement`). When `transact` returns, the tree's nodes show the change,
/// and effects invalidate what the kernel has cached of it; after `apply` the caller does that.
///
/// Threads: the tree's alone.
final class Transactor {
  /// The author of the tree's own changes, whose notices it ignores.
  let author: Author
  private let engine: any Engine
  private let options: TreeOptions
  private let log: TreeLog
  private let values: ValueReader
  private let kernel: KernelCache
  /// The changes that were made through the tree and that other trees of the mount have not seen.
  private var changes: [Changeset] = []
  /// Told before each change whether it is the one that the request asks for; nil if nobody is.
  var setDecisive: ((Bool) -> Void)?
  /// The change that the present request asks for, if a predecessor of this driver has made it: the
  /// request asks for none, and only the nodes follow. The engine has what came of it, and what was
  /// there before is not known (`KeyFiles+Made`).
  var made: Changeset?

  init(_ parts: TreeParts, _ values: ValueReader, _ kernel: KernelCache, author: Author) {
    (engine, options, log) = (parts.engine, parts.options, parts.log)
    (self.values, self.kernel, self.author) = (values, kernel, author)
  }

  /// Carries out the intents as one transaction, invalidates what the kernel has cached of their
  /// keys, and asks the driver to delay the reply until the other mounts have settled.
  /// - Parameters:
  ///   - touched: the keys of the request: what the kernel has cached of them is right already.
  ///   - changesNames: whether keys may come or go in their directories.
  ///   - isDecisive: whether it is the change that the request asks for: if it was made and the
  ///     request was not answered, a successor has the nodes follow it (`made`). At most one change
  ///     of a request is. Pass false for others, and for a request whose repetition has the same
  ///     effect and the same answer.
  ///   - isJudged: whether schemas may refuse it.
  ///   - isNew: whether the intents expect that a key is not there (`KeyFiles.expectNone`). Throws
  ///     EEXIST where it is: somebody else was first.
  ///   - update: brings the tree's nodes up to date with the change. It is called before anything
  ///     is invalidated.
  /// - Throws: the engine's refusal, which has been logged. Then nothing was changed, and `update`
  ///   was not called.
  @discardableResult
  func transact(
    _ intents: [Intent], touching touched: Set<KeyPath>, changesNames: Bool = true,
    isDecisive: Bool = false, isJudged: Bool = true, isNew: Bool = false,
    _ update: (Changeset) throws(TreeError) -> Void = { _ in }
  ) throws(TreeError) -> Changeset {
    let makesDomain = changesNames && touched.contains { engine.isUnmade($0.domain) }
    let made: Changeset
    do {
      made = try apply(isJudged ? judged(intents) : intents, isDecisive: isDecisive)
    } catch {
      throw isNew && error == .changedMeanwhile ? .exists : error
    }
    if options.isGenerated { values.forgetLast() }
    let changeset = engine.shown(made)
    if makesDomain { kernel.rootChanged(at: changeset.time) }
    try update(changeset)
    kernel.propagate(changeset, touched: touched, changesNames: changesNames)
    if self.made != nil {
      // What the owner kept of the change may lack what was set: the names change in any case.
      for path in touched { kernel.entriesChanged(path.domain, at: changeset.time) }
    }
    if options.isGenerated {
      // Other texts of the same thing: X.plist where X.json was written.
      let others = engine.notice(of: made).events.filter {
        !touched.contains(KeyPath(domain: $0.domain, key: $0.key))
      }
      kernel.announce(others, .now)
    }
    return changeset
  }

  /// The intents, for schemas to judge where the mount has them do so.
  func judged(_ intents: [Intent]) -> [Intent] { (options.judges ? [.judged] : []) + intents }

  /// Has the engine carry out the intents, and logs a refusal. Invalidates nothing: use `transact`
  /// for changes of keys.
  /// - Parameter isDecisive: see `transact`.
  func apply(_ intents: [Intent], isDecisive: Bool = false) throws(TreeError) -> Changeset {
    do {
      let changeset = try carryOut(intents, isDecisive: isDecisive)
      guard !changeset.isEmpty else { return changeset }
      kernel.append(.awaitSettlement(version: changeset.version))
      changes.append(changeset)
      return changeset
    } catch  where error.reason == .changedMeanwhile {
      throw .changedMeanwhile
    } catch {
      throw log.refused(TreeError(error))
    }
  }

  private func carryOut(
    _ intents: [Intent], isDecisive: Bool
  ) throws(EngineError) -> Changeset {
    if isDecisive, let made { return made }
    setDecisive?(isDecisive)
    values.forgetTold()
    return try engine.apply(intents, by: author)
  }

  /// Removes and returns the changes that were made through the tree since the last call, in the
  /// terms of the store.
  func removeChanges() -> [Changeset] {
    defer { changes = [] }
    return changes
  }
}
