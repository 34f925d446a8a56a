/// What must be in memory before the history of a store can be asked.
public enum HistoryNeed: Hashable, Sendable {
  /// The changes that were acknowledged, with their numbers and times: all that moments need.
  case moments
  /// As `moments`, with an index by domain and key.
  case changes
  /// The state that a change has left: its domains; or of one domain, its values.
  case moment(UInt64, DomainName?)
}

/// The history of a store and its past, as far as the control directory `.prefs` of a mount has them
/// in memory.
///
/// Promises: only `prepare` waits. What asks for something that is not in memory throws; what is
/// prepared may go again when other moments are prepared, or the history is released.
///
/// Threads: any.
public protocol HistoryService: AnyObject, Sendable {
  /// Reads what is needed. Waits for the owner of the store and for a disk. If that fails, who asks
  /// for it gets the error.
  func prepare(_ need: HistoryNeed)

  /// Whether what is needed is in memory. Changes since it was read are not.
  func isPrepared(_ need: HistoryNeed) -> Bool

  /// Gives the memory back.
  func release()
}
