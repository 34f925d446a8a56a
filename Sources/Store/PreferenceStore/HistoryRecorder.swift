import PreferenceHistory
import PreferenceModel
import PropertyList
import StoreAccess
import Synchronization
import SystemCalls

/// Writes the changes of a store to its history.
///
/// Changes wait in the queue of `StoreState` until the writer's thread calls `record`, or somebody
/// asks for the history.
///
/// Promises: no change is refused because of the history. What cannot be written stays in memory,
/// within bounds, and is tried again.
///
/// Threads: any thread may call.
///
/// Locks: `historian` is held while the history's files are written; `Lists.state` is taken inside
/// of it.
public final class HistoryRecorder: Sendable {
  private let lists: Lists
  private let historian: Mutex<Historian>

  init(_ lists: Lists, _ historian: consuming Historian) {
    self.lists = lists
    self.historian = Mutex(historian)
  }

  /// When `record` is to be called; nil if not before the next change.
  public var deadline: Instant? { lists.state.withLock { $0.history.due } }

  /// Appends the changes to the history that it lacks. It never refuses a change: what cannot be
  /// written stays in memory, within bounds, and is tried again. Waits for a disk. Threads: any.
  /// - Parameter durably: whether they must survive a loss of power.
  public func record(durably: Bool = false) {
    if lists.isReadOnly { return }
    // A transaction is one change, also where it is replayed.
    lists.loadReplayed()
    historian.withLock { historian in
      // Both at once: a change of the queue may be of a list that was noted before.
      let (looks, changes, gap) = lists.state.withLock { state in
        let (changes, gap) = state.takeHistory()
        return (lists.seen?.removeLooks() ?? [], changes, gap)
      }
      if !changes.isEmpty || gap != nil || !looks.isEmpty {
        // Asked when the changes are taken, so that settings which came before them count.
        let settings = self.settings ?? historian.settings
        let isWritten = historian.write(changes, after: gap, looks, settings)
        if !isWritten { lists.seen?.putBack(looks) }
        lists.state.withLock { state in
          if settings.isOff { state.history.turnOff() }
          if !isWritten { state.history.putBack(changes, gap: gap, until: historian.nextTry) }
        }
      }
      if durably { historian.synchronize() }
    }
  }

  /// The settings of the history that count: the first of the persistent places that has them; nil
  /// where a list cannot be read. May read lists.
  private var settings: HistorySettings? {
    do throws(EngineError) {
      let locks = try lists.findFirst(DomainLocks.key, in: DomainLocks.locations)
      let locations = DomainLocks(locks?.stored.value).counting(
        HistorySettings.locations, in: .settings)
      return HistorySettings(
        try lists.findFirst(HistorySettings.key, in: locations)?.stored.value)
    } catch {
      return nil
    }
  }

  /// Removes the values of a domain's keys, or of one key, from the history, durably. The journal
  /// and the list keep the present value.
  /// - Returns: the number of records that had one, as an integer.
  public func forget(of domain: DomainName, _ key: Key?) throws(EngineError) -> Value {
    guard historian.withLock({ $0.hasHistory }) else {
      throw EngineError(
        .system(.notSupported), domain: domain, key: key,
        "the history cannot be read, so nothing was removed from it; prefsd's log says why")
    }
    record()
    let count = try EngineError.wrapping(domain) { () throws(SystemError) in
      try historian.withLock { historian throws(SystemError) in
        lists.state.withLock { $0.history.forget(domain, key) }
        return try historian.forget(domain, key)
      }
    }
    return .integer(WideInteger(UInt64(clamping: count)))
  }

  /// The number of the last change, after what it lacks was recorded; 0 if there is none. Waits for
  /// a disk.
  var lastNumber: UInt64 {
    record()
    return historian.withLock { $0.lastNumber }
  }

  /// What `status.json` says of the history. Reads its files.
  var status: ValueDictionary {
    let isOn = lists.state.withLock { $0.history.isOn }
    var status: ValueDictionary = (try? lists.layout.history.summary()) ?? [:]
    status["off"] = .boolean(!isOn)
    return status
  }

  /// What people and programs can be told of the history: where it lies.
  public func report() -> Value {
    compareLists()
    record()
    // A store that is only read adds nothing to its history, which is there.
    let isOn =
      lists.isReadOnly ? settings?.isOff != true : lists.state.withLock { $0.history.isOn }
    let (last, edition) = historian.withLock { ($0.lastNumber, $0.edition) }
    return [
      "Directory": .string(lists.layout.history.path), "Off": .boolean(!isOn),
      "Last": .integer(WideInteger(last)), "Edition": .integer(WideInteger(edition)),
    ]
  }

  /// Reads the lists that other programs have changed while there was no owner, or since, and that
  /// are not in memory. Cost: two stat(2) for each list, where one may have changed.
  private func compareLists() {
    let appearances = lists.state.withLock { $0.directories.appearances }
    guard historian.withLock({ $0.compared != appearances }) else { return }
    // The lists that have appeared have their files then.
    record()
    for location in lists.seen?.changedLocations(lists.layout.path) ?? []
    where lists.state.withLock({ $0.domains[location] == nil }) {
      // One that cannot be read is logged, and compared when it can be.
      do { try lists.load(location) } catch {}
    }
    historian.withLock { $0.compared = appearances }
  }
}

extension StoreState {
  /// Takes the changes out that the history lacks.
  fileprivate mutating func takeHistory() -> (changes: [HistoryQueue.Change], gap: String?) {
    var queue = HistoryQueue()
    swap(&queue, &history)
    defer { swap(&queue, &history) }
    return queue.removeAll { domains[$0]?.snapshot.entry($1) }
  }
}

extension StoreLayout {
  /// Where the history of the store lies.
  var history: HistoryDirectory { HistoryDirectory(stateDirectory + "/history") }
}
