import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// One location as it is in memory.
struct LocationState: Sendable {
  var snapshot = LocationSnapshot()
  var format = Format.binary
  /// Whether the list may have keys whose values cannot be read.
  var hidesValues = false
  /// The state of the list that `snapshot.base` was read from or written to; nil means no list.
  var identity: FileIdentity? {
    didSet {
      if identity != oldValue { unsureSince = identity?.isCoarse == true ? .now : nil }
    }
  }
  /// Since when the list is in that state, if another one may look the same; nil if none can, or it
  /// was read again since.
  var unsureSince: Instant?
  /// The number of the last journal record about this location.
  var lastEdit: UInt64 = 0
  /// Since when the list has lacked a change; nil if it has all of them.
  var unsavedSince: Instant?
  /// The number of the first journal record that the list may lack, where `unsavedSince` is set.
  var firstUnsaved: UInt64 = 0
  /// About how many bytes the list has once the unsaved changes are in it.
  var size = 0
  /// The values of keys before this store's changes of the last seconds.
  var recent = RecentChanges()
  /// What is known of the list's owners, where there are several.
  var owners = ListOwners()
  /// When the list, which had keys, was found without a byte: another program may be about to
  /// write it anew. It is nil if it has contents since, or never had.
  var emptied: Instant?
  /// Why the last rewrite, or the last look at the list, failed; nil if it did not.
  var failure: EngineError?
}

extension LocationState {
  /// Notes what the list's file is, beside its values; nil if there is none.
  mutating func noteFile(of list: ListFile.Contents?) {
    identity = list?.identity
    size = Int(list?.identity.size ?? 0)
    hidesValues = list?.hidden.isEmpty == false
    if let list { format = list.format }
  }

  /// Applies an edit that was recorded, or replayed.
  /// - Returns: whether the list had every change before this one.
  mutating func apply(
    _ edit: Edit, sequence: UInt64, time: Timestamp
  ) -> Bool {
    switch edit {
    case .set(let key, _, _), .remove(let key): recent.note(key, before: snapshot[key])
    case .splice(let key, _):
      // Of several splices in a row, the value before the first is kept.
      if let whole = snapshot.entry(key)?.wholeValue { recent.note(key, before: whole) }
    case .removeDomain: for key in snapshot.keys { recent.note(key, before: snapshot[key]) }
    case .describe, .createDomain: break
    }
    snapshot.apply(edit, time: time)
    assert(sequence >= lastEdit, "the records of a location are in order")
    lastEdit = sequence
    guard unsavedSince == nil else { return false }
    unsavedSince = .now
    firstUnsaved = sequence
    return true
  }
}

/// What a store knows of its lists and its journal, under one lock (`Lists.state`).
struct StoreState {
  /// A replayed edit of a location that is not loaded yet.
  struct Pending: Sendable {
    var sequence: UInt64
    var time: Timestamp
    /// Who made the change; nil if it is not known.
    var source: ChangeSource?
    var edit: Edit
  }

  /// What is still to be done about the files of the journal.
  struct JournalUpkeep {
    /// Bytes of the journal after the last `renewStuckRecords`.
    var renewedSize = 0
    /// When records that are kept for unanswered requests may go; nil if none is kept for one.
    var releaseAt: Instant?
    /// Whether records of rewritten lists were released since that was last made durable, and
    /// whether files of the journal were removed.
    var (hasReleased, hasRemoved) = (false, false)
  }

  /// What is known of the directories of lists.
  struct Directories {
    /// Counts changes that other programs made in lists that are not loaded. A thread that is
    /// reading a list for the first time reads it again when the count has changed.
    var appearances = 0
    /// The domains of each place that had a list when the directories began to be watched, and those
    /// that came and went since. Places whose directory could not be listed are missing.
    var existing: [Place: Set<DomainName>] = [:]
    /// Directories that were searched for the temporary files of crashed rewrites.
    var tidied: Set<String> = []

    /// Whether there was a list at the location; nil if it is not known.
    func had(_ location: Location) -> Bool? {
      existing[location.place].map { $0.contains(location.domain) }
    }
  }

  /// What a check found, whether a list can be replaced.
  struct Check: Sendable {
    /// Until when it counts.
    var until: Instant
    /// Until when no other one is made for a change that begins to wait: even shorter after a
    /// failure, which may have passed.
    var freshUntil: Instant
    var failure: EngineError?
  }

  var domains = ListTable()
  /// Replayed edits, in order, of locations that are not loaded yet.
  var pending: [Location: [Pending]] = [:]
  /// Locations whose lists could not be parsed, the state of each list then, and the error. A
  /// list is not parsed again while it is in that state.
  var unreadable: [Location: (identity: FileIdentity?, error: EngineError)] = [:]
  var directories = Directories()
  var journal: Journal?
  var additions = AdditionsTable()
  var upkeep = JournalUpkeep()
  /// The time of the last change; the next one's is later.
  var lastTime = Timestamp(nanoseconds: 0)
  /// When `forgetOld` has something to do; nil if not before the next change.
  var forgetAt: Instant?
  /// Changes that the history does not have yet.
  var history = HistoryQueue()
  /// Changes that observers have not been notified of, in order.
  var pendingNotices: [PendingNotice] = []
  /// The number of the last change, which is read without the lock too.
  let changeNumber = ChangeNumber()
  var version: UInt64 { changeNumber.value }
  /// The last requests of clients, which may repeat them.
  var requests = Requests()
  /// The lists of which it was checked a moment ago that they can be replaced: until when that
  /// counts, and why not.
  var checks: [Location: Check] = [:]
  /// The number of checks at which those that no longer count are dropped.
  var mostChecks = 0
}

extension StoreState {
  /// Collects what the journal's records say: edits by location, until its list is loaded, without
  /// those that a checkpoint says are in the list, and the requests of clients.
  mutating func replay(_ entries: [Journal.Entry]) {
    let lastOver = Self.lastOver(entries)
    for entry in entries {
      switch entry.record {
      case .change(let changeset, let origin, let source):
        if let origin {
          if entry.sequence > (origin.isInheritable ? lastOver.mounts : lastOver.clients) {
            requests.replay(origin, changeset, entry.sequence, version: version)
          } else {
            requests.noteProgress(origin)
          }
        }
        lastTime = max(lastTime, changeset.time)
        for item in changeset.items {
          pending[item.location, default: []].append(
            Pending(
              sequence: entry.sequence, time: changeset.time, source: source, edit: item.edit))
        }
      case .checkpoint(let location, let through, _):
        pending[location]?.removeAll { $0.sequence <= through }
        if pending[location]?.isEmpty == true { pending[location] = nil }
      }
    }
  }

  /// The numbers of the last records whose requests nobody will repeat, because their patience was
  /// over when the last record was written. The last 1,024 requests may be repeated whatever their
  /// times are, because the clock may have been set.
  private static func lastOver(_ entries: [Journal.Entry]) -> (mounts: UInt64, clients: UInt64) {
    var newest: Timestamp?
    var count = 0
    var mounts: UInt64 = 0
    for entry in entries.reversed() {
      guard case .change(let changeset, .some, _) = entry.record else { continue }
      let last = newest ?? changeset.time
      newest = last
      count += 1
      let age = last.nanoseconds(after: changeset.time) / 1_000_000
      guard count > 1024 else { continue }
      if mounts == 0, age > Requests.inheritancePatience { mounts = entry.sequence }
      if age > Requests.patience { return (mounts, entry.sequence) }
    }
    return (mounts, 0)
  }

  /// The number of the first record that a list lacks; nil if none does.
  var oldestUnsaved: UInt64? {
    let unsaved = domains.unsaved.values.lazy.map(\.first).min()
    return [unsaved, pending.values.lazy.compactMap { $0.first?.sequence }.min()]
      .compactMap { $0 }.min()
  }

  /// Releases the records that the lists have and that no client may ask about again.
  /// - Returns: the journal files that the caller must remove.
  mutating func releaseJournal() throws(SystemError) -> [String] {
    let now = Instant.now
    let unanswered = requests.oldestUnanswered(now)
    upkeep.releaseAt = requests.endOfPatience(now)
    let oldest = [oldestUnsaved, unanswered].compactMap { $0 }.min()
    return try journal?.release(through: oldest.map { $0 - 1 } ?? .max) ?? []
  }
}

/// The number of the last change. Counting begins at the nanoseconds since the machine was started
/// (CLOCK_MONOTONIC), so that a later owner's numbers are larger also where the time of day was set
/// back: mounts, which live on, compare numbers. What is added makes them larger than those of
/// owners of older versions, which began at the time of day. An owner of another time namespace, or
/// an older program that follows this one, may count from less: a mount then shows what is being
/// written for up to 5 s after somebody else has changed it.
///
/// Threads: any; only a change of `StoreState` advances it. Whoever knows that a change has returned
/// reads its number or a later one.
final class ChangeNumber: Sendable {
  private let last = Atomic(1 << 61 + UInt64(max(0, Instant.now.nanoseconds)))

  var value: UInt64 { last.load(ordering: .acquiring) }

  func advance() -> UInt64 { last.add(1, ordering: .acquiringAndReleasing).newValue }
}
