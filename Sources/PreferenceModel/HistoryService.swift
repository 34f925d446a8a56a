import PropertyList
import SystemCalls

/// What must be in memory before the history of a store can be asked.
public enum HistoryNeed: Hashable, Sendable {
  /// The changes that were acknowledged, with their numbers and times: all that moments need.
  case moments
  /// As `moments`, with an index by domain and key.
  case changes
  /// The state that a change has left: its domains; or of one domain, its values.
  case moment(UInt64, DomainName?)
}

/// What the control directory `.prefs` of a mount shows of the history of a store, and of its past.
///
/// Promises: only `prepare` waits. Calls for something that is not in memory throw; what is
/// prepared may go again when other moments are prepared, or the history is released.
///
/// Threads: any.
public protocol HistoryService: AnyObject, Sendable {
  /// Reads what is needed. Waits for the owner of the store and for a disk. If that fails, the
  /// calls for it throw the error.
  func prepare(_ need: HistoryNeed)

  /// Whether what is needed is in memory. Changes since it was read are not.
  func isPrepared(_ need: HistoryNeed) -> Bool

  /// Gives the memory back.
  func release()

  /// Whether nothing is kept, by the settings.
  var isOff: Bool { get }

  /// The domains that have changes.
  func changedDomains() throws(EngineError) -> Set<DomainName>

  /// The keys of the domain that have changes.
  func changedKeys(of domain: DomainName) throws(EngineError) -> Set<Key>

  /// The changes of a key, as `defaults history --all` prints them; nil: there are none.
  func changes(of key: Key, in domain: DomainName) throws(EngineError) -> String?

  /// The days with changes, as `2026-11-21`, each with the number that `number(ofMoment:)` gives.
  func days() throws(EngineError) -> [String: UInt64]

  /// The number of the change that was the last one at a moment: a time, a date, the number of a
  /// change, `yesterday` or `-2h`; nil: the name means none that the history has.
  func number(ofMoment name: String) throws(EngineError) -> UInt64?

  /// The engine that shows the state which a change has left, without arguments, languages and
  /// registered defaults. It refuses every change, and may only be asked for the domain; without
  /// one, for the names of the domains.
  func engine(ofMoment number: UInt64, _ domain: DomainName?) throws(EngineError) -> any Engine
}
