import Foundation
internal import PreferenceClient
internal import PreferenceHistory
internal import PreferenceModel
public import PropertyList
internal import StoreAccess
internal import SystemCalls

/// What was changed in a domain, when and by whom, and the way back: `prefs history` and
/// `prefs undo` for programs.
///
/// ```swift
/// let history = PreferenceHistory(of: .standard)
/// for change in try history.changes(.init(since: .now - 3600)) {
///   print(change.key, change.before as Any, change.after as Any)
/// }
/// try history.undo(.init(key: "TabWidth"))
/// ```
///
/// Foundation has nothing like it. Changes of every way are there: of this program, of others, of
/// people in a shell, of programs that edit the list. For how long, and of which keys no values are
/// kept, <doc:History> says.
///
/// Any thread may call any member. Each call waits for the owner of the store and for its disk, and
/// throws ``Failure`` where they do not answer. It reads the whole history, 64 MiB at most.
public struct PreferenceHistory: Sendable {
  private let domain: DomainName
  private let session: Session

  /// The history of the domain of these preferences. Those that are kept in memory alone have none:
  /// every call throws then.
  public init(of defaults: UserDefaults = .standard) {
    (domain, session) = (defaults.domain, defaults.session)
  }

  /// Why the history could not be asked or undone.
  public enum Failure: Error, Equatable, Sendable {
    /// The owner of the store does not answer, there is no history, or a change is refused. The
    /// text says which.
    case unavailable(String)
    /// These keys were changed again, what they had before is not kept, or an administrator or a
    /// profile has set them; nothing was undone. With the reason for each key.
    case conflicts([String: String])
  }

  /// Which changes are meant. All that is nil means any.
  public struct Selection: Sendable {
    /// The key.
    public var key: String?
    /// The number of a change.
    public var number: UInt64?
    /// The changes from this time on, and those until this time.
    public var since, until: Date?
    /// The path or name of a program, or a unit of systemd.
    public var program: String?
    /// Whether keys that hold a program's state, such as the frames of its windows, are meant too.
    public var includesState: Bool

    /// Creates a selection.
    public init(
      key: String? = nil, number: UInt64? = nil, since: Date? = nil, until: Date? = nil,
      program: String? = nil, includesState: Bool = false
    ) {
      (self.key, self.number, self.since, self.until) = (key, number, since, until)
      (self.program, self.includesState) = (program, includesState)
    }
  }

  /// A change of one key.
  public struct Change: Sendable {
    /// The number of the change, which grows from change to change. Changes of one transaction have
    /// the same number.
    public let number: UInt64
    /// How many changes it stands for: one program's of the key, which followed each other closely.
    public let count: Int
    /// When it took effect.
    public let date: Date
    /// The way it came, as `prefs history` names it: `mount`, `command`, `library`, `list` ...
    public let way: String
    /// The path of the program, and the unit that it belongs to; empty where they are not known.
    public let program, unit: String
    /// The key.
    public let key: String
    /// The values before and after; nil where there was none, or it is not kept.
    public let before, after: PropertyList.Value?
    /// Whether both values are known, or known not to have been there.
    public let isComplete: Bool
  }

  /// Returns the changes of the domain, the oldest first.
  public func changes(_ selection: Selection = Selection()) throws(Failure) -> [Change] {
    let history = try read()
    let filter = filter(selection, history)
    var changes: [Change] = []
    for record in history.records where filter.contains(record) {
      for item in record.items where filter.contains(item.recordedKey) {
        changes.append(Change(record, item))
      }
    }
    return changes
  }

  /// What is done with keys that were changed after the selected changes.
  public enum Conflicts: Sendable {
    /// Nothing at all is undone, and ``Failure/conflicts(_:)`` names them.
    case refuse
    /// Their later changes are taken back too.
    case over
    /// They stay as they are.
    case skip
  }

  /// Takes changes back, all or none, in one transaction: each key gets the value that it had
  /// before them. When the call returns, every process and mount reads those values. An undo is a
  /// change like any other, and can be undone.
  /// - Returns: the keys that were changed.
  @discardableResult
  public func undo(
    _ selection: Selection, conflicts: Conflicts = .refuse
  ) throws(Failure) -> [String] {
    let history = try read()
    var filter = filter(selection, history)
    filter.isUndo = true
    let changes = NetChange.all(history, filter)
    return try Self.failing { () throws(EngineError) in
      let places = try StoreClient(
        clientOf: Surroundings.answering(), isBrief: true, via: .undo, log: { _ in })
      let plan = try UndoPlan(changes, places, over: conflicts == .over)
      if !plan.conflicts.isEmpty, conflicts != .skip { return .failure(plan.failure) }
      try plan.apply(to: places, by: .unique())
      return .success(plan.steps.map(\.key.key.string))
    }
  }

  // MARK: - Reading

  private func read() throws(Failure) -> HistoryContents {
    try Self.failing { () throws(EngineError) in
      guard let owner = session.owner else {
        throw EngineError(.ownerGone, "there is no history of these preferences")
      }
      return .success(try HistoryReader(owner).read())
    }
  }

  private func filter(_ selection: Selection, _ history: HistoryContents) -> HistoryFilter {
    var filter = HistoryFilter()
    (filter.domain, filter.key) = (domain, selection.key.map { Key($0) })
    (filter.number, filter.by) = (selection.number, selection.program)
    // A date of a change, rounded as dates are, must find that change.
    filter.since = selection.since.map { .time(Timestamp($0 - 1e-6)) }
    filter.until = selection.until.map { .time(Timestamp($0 + 1e-6)) }
    filter.isAll = selection.includesState
    if !filter.isAll { filter.busy = history.busyKeys() }
    return filter
  }

  private static func failing<Success>(
    _ body: () throws(EngineError) -> Result<Success, Failure>
  ) throws(Failure) -> Success {
    let result: Result<Success, Failure>
    do throws(EngineError) {
      result = try body()
    } catch {
      throw .unavailable("\(error)")
    }
    return try result.get()
  }
}

extension PreferenceHistory.Change {
  fileprivate init(_ record: HistoryRecord, _ item: HistoryRecord.Item) {
    (number, count, way) = (record.number, record.count, "\(record.source.via)")
    (program, unit) = (record.source.program, record.source.unit)
    date = Date(timeIntervalSinceReferenceDate: AbsoluteTime(record.time).seconds)
    (key, before, after) = (item.key.string, item.before.value, item.after.value)
    isComplete = item.before.isKnown && item.after.isKnown
  }
}

extension UndoPlan {
  fileprivate var failure: PreferenceHistory.Failure {
    .conflicts(
      Dictionary(conflicts.map { ($0.key.key.string, $0.reason) }) { first, _ in first })
  }
}

extension Timestamp {
  fileprivate init(_ date: Date) {
    self.init(AbsoluteTime(seconds: date.timeIntervalSinceReferenceDate))
  }
}
