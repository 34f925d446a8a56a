import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

// How a transaction is carried out.

extension LocalPlaces {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    try commit(intents, by: author, origin: nil)
  }

  /// A request that an earlier owner may have carried out: what it changed then. It is asked for in
  /// this process, which needs no answer that survives it.
  public func apply(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    if let known = store.outcome(of: origin) { return known }
    defer { store.noteProgress(origin) }
    return try commit(intents, by: author, origin: nil)
  }

  /// Another process's request: one that was carried out before gives what it changed then. It is kept
  /// until `noteAnswered`, for the next owner.
  public func serve(
    _ intents: [Intent], by author: Author, origin: Origin, until deadline: Instant
  ) throws(EngineError) -> Changeset {
    try commit(intents, by: author, origin: origin, until: deadline)
  }

  private func commit(
    _ intents: [Intent], by author: Author, origin: Origin?, until deadline: Instant? = nil
  ) throws(EngineError) -> Changeset {
    let (changeset, isFirstUnsaved) = try applying.withLock { _ throws(EngineError) in
      if let origin, let known = store.outcome(of: origin) { return (known, false) }
      defer { if let origin { store.noteProgress(origin) } }
      var items: [Changeset.Item] = []
      let rules = ChangeRules(self)
      for intent in intents { items += try rules.items(for: intent) }
      if let deadline, deadline <= .now {
        throw EngineError(.system(.timedOut), "the owner of the store was stopped for too long")
      }
      return try store.commit(items, by: author, origin: origin)
    }
    if isFirstUnsaved { writer.wake() }
    announce()
    return changeset
  }

  /// The client has its answer.
  public func noteAnswered(_ origin: Origin) { store.noteAnswered(origin) }
}
