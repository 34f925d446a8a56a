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
  /// Saves the present values of keys before a request changes them; nil: nobody does.
  var remember: (([KeyPath: Resolution?]) -> Void)?

  init(_ parts: TreeParts, _ values: ValueReader, _ kernel: KernelCache, author: Author) {
    (engine, options, log) = (parts.engine, parts.options, parts.log)
    (self.values, self.kernel, self.author) = (values, kernel, author)
  }

  /// Carries out the intents as one transaction, invalidates what the kernel has cached of their
  /// keys, and asks the driver to delay the reply until the other mounts have settled.
  /// - Parameters:
  ///   - touched: the keys of the request: what the kernel has cached of them is right already.
  ///   - changesNames: whether keys may come or go in their directories.
  ///   - remembers: whether the keys' present values are saved for a successor, which repeats a
  ///     request with them if it was carried out and not answered. Pass false for write(2), and for
  ///     a request whose repetition has the same effect.
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
    remembers: Bool = true, isJudged: Bool = true, isNew: Bool = false,
    _ update: (Changeset) throws(TreeError) -> Void = { _ in }
  ) throws(TreeError) -> Changeset {
    if remembers, let remember { remember(try values.resolve(all: touched)) }
    let makesDomain = changesNames && touched.contains { engine.isUnmade($0.domain) }
    let judged: [Intent] = isJudged && options.judges ? [.judged] : []
    let made: Changeset
    do {
      made = try apply(judged + intents)
    } catch {
      throw isNew && error == .changedMeanwhile ? .exists : error
    }
    if options.isGenerated { values.forgetLast() }
    let changeset = engine.shown(made)
    if remembers { values.past = [:] }
    if makesDomain { kernel.rootChanged(at: changeset.time) }
    try update(changeset)
    kernel.propagate(changeset, touched: touched, changesNames: changesNames)
    if options.isGenerated {
      // Other texts of the same thing: X.plist where X.json was written.
      let others = engine.notice(of: made).events.filter {
        !touched.contains(KeyPath(domain: $0.domain, key: $0.key))
      }
      kernel.announce(others, .now)
    }
    return changeset
  }

  /// Has the engine carry out the intents, and logs a refusal. Invalidates nothing: use `transact`
  /// for changes of keys.
  func apply(_ intents: [Intent]) throws(TreeError) -> Changeset {
    do {
      let changeset = try engine.apply(intents, by: author)
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

  /// Removes and returns the changes that were made through the tree since the last call, in the
  /// terms of the store.
  func removeChanges() -> [Changeset] {
    defer { changes = [] }
    return changes
  }
}
