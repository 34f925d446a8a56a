import PreferenceModel
import PreferenceSchemas
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

// Transactions.

extension LocalPlaces {
  public func apply(_ intents: [Intent], by author: Author) throws(EngineError) -> Changeset {
    // In the owner's own process only the settings of profiles are made.
    try serve(intents, by: author, origin: nil, from: ChangeSource(.once), until: nil)
  }

  /// Carries the intents out, and returns when observers were notified. A refusal because the value
  /// changed meanwhile is thrown then too: a caller that computes its change again reads the new
  /// value. Of a request that was carried out before, returns what it changed. Throws ETIMEDOUT,
  /// with nothing changed, after the deadline.
  /// - Parameter origin: the request of another process, whose record is kept for the next owner
  ///   until `Store.noteAnswered`; nil means a change of this process.
  public func serve(
    _ intents: [Intent], by author: Author, origin: Origin?,
    from source: ChangeSource = ChangeSource(.unknown), until deadline: Instant?
  ) throws(EngineError) -> Changeset {
    do throws(EngineError) {
      let (changeset, wakesWriter) = try transact(intents, by: author, origin, source, deadline)
      if wakesWriter { writer.wake() }
      notifyObservers()
      return changeset
    } catch  where error.reason == .changedMeanwhile {
      notifyObservers()
      throw error
    }
  }

  private func transact(
    _ intents: [Intent], by author: Author, _ origin: Origin?, _ source: ChangeSource,
    _ deadline: Instant?
  ) throws(EngineError) -> (change: Changeset, wakesWriter: Bool) {
    try applying.withLock { _ throws(EngineError) in
      if let origin, let known = store.outcome(of: origin) { return (known, false) }
      defer { if let origin { store.noteProgress(origin) } }
      var items: [Changeset.Item] = []
      // What comes from other machines, and what a profile sets once, waits until it counts.
      let rules = ChangeRules(self, heedsLocks: ![.cloud, .once].contains(source.via))
      try rules.requireUnlocked(intents)
      var foreign: Set<Int> = []
      var judging: PatternBudget?
      for intent in intents {
        if [.command, .undo].contains(source.via) { try requireUnmade(intent) }
        let edits = try rules.items(for: intent)
        if intent == .judged { judging = judging ?? PatternBudget() }
        if let judging { try judge(edits, within: judging) }
        if case .edit(let location, _) = intent, location.place == .cloud {
          foreign.formUnion(items.count..<items.count + edits.count)
        }
        items += edits
      }
      let usage = try usage(after: items, foreign: foreign)
      items += removals(items)
      if let deadline, deadline <= .now {
        throw EngineError(
          .system(.timedOut), "not changed: the owner of the store was stopped for too long")
      }
      let (changeset, wakesWriter) = try store.commit(
        items, by: author, origin: origin, from: source, until: deadline)
      note(usage, items, foreign: foreign)
      if source.via == .library { logUnfit(changeset.items) }
      noteTurns(changeset.items, Turns.Writer(source, by: author))
      return (changeset, wakesWriter)
    }
  }

  private func noteTurns(_ items: [Changeset.Item], _ writer: Turns.Writer) {
    let new = turns.withLock { $0.note(items, by: writer, at: .now) }
    for quarrel in new { log(.notice("\(quarrel.sentence)")) }
  }

  /// Throws `.domainNotEmpty` where a command would take an empty domain away that was made without
  /// keys. Commands do that with a domain whose last key they have removed; `rmdir` may take any.
  private func requireUnmade(_ intent: Intent) throws(EngineError) {
    let locations: [Location]
    switch intent {
    case .removeDomain(let domain): locations = Place.own.map { Location($0, domain) }
    case .at(let place, .removeDomain(let domain)): locations = [Location(place, domain)]
    default: return
    }
    for location in locations where try isMade(location) {
      throw EngineError(
        .domainNotEmpty, domain: location.domain,
        "it was made without keys, and stays without them; rmdir in a mount removes it")
    }
  }
}
