import PropertyList

/// What a process can ask the owner of its store about the store as a whole.
public enum OwnerReport: Equatable, Sendable {
  /// What `status.json` says of the store and its owner: a dictionary.
  case status
  /// The configuration profiles that the owner has read: an array of dictionaries, as
  /// `PlaceAdditions.reports` has them.
  case profiles
  /// The fragments and vendors' lists that the owner has read: an array of dictionaries with `place`,
  /// `domain`, `file` and `values`, of which the first one of a place that has a key counts. Keys of
  /// a list that fragments hide follow, as of a file too. (Since version 11 of the messages.)
  case fragments
  /// The history, after every change so far was written to it: a dictionary with `Directory`, where
  /// it lies; `Off`, whether nothing is kept; `Last`, the number of the last change; and `Edition`,
  /// a number that changes when values were removed from the files.
  case history
  /// Removes the values of a domain's keys, or of one key, from the history, durably: an integer,
  /// the number of records that had one. It changes something, unlike other reports.
  case forget(DomainName, Key?)
  /// The rules that say what happens when a value changes, and how that went: an array of
  /// dictionaries, as `EffectReport.values` returns them. An older owner does not know it.
  case effects
  /// What a configuration profile with these bytes would do: a dictionary, as one of `profiles`.
  case check([UInt8])
}

/// Answers questions about a store as a whole.
///
/// Threads: any. The call waits for the owner, 5 s at most.
public protocol ReportService: AnyObject, Sendable {
  /// Asks for a report, and returns it. Throws ETIMEDOUT if the owner does not answer.
  func report(_ report: OwnerReport) throws(EngineError) -> Value
}
