import PreferenceModel
import SystemCalls

/// The requests of clients that may be repeated, because their owner was gone before it answered: each is
/// carried out once.
///
/// A request's record stays in the journal until the request is answered: the next owner finds it
/// there and keeps it for ten seconds, twice as long as a client waits for an answer.
struct Requests: Sendable {
  private struct Request: Sendable {
    var changeset: Changeset
    /// The record in the journal.
    var sequence: UInt64
    /// Until when the record is kept, if nobody says that it is answered.
    var keptUntil: Instant
    var isAnswered = false

    func isOpen(_ now: Instant) -> Bool { !isAnswered && keptUntil > now }
  }

  /// How far a client's ordered requests have come.
  private struct Progress: Sendable {
    var serial: UInt64
    var keptUntil: Instant
  }

  private var requests: [Origin: Request] = [:]
  private var ordered: [UInt64: Progress] = [:]
  /// In the order in which they are to be forgotten.
  private var ages: [(origin: Origin, until: Instant)] = []
  /// Those of them that are.
  private var forgotten = 0
  /// Clients that there may be before old ones are looked for.
  private var limit = 1024

  private static let patience: Int64 = 10_000
  /// Milliseconds that the progress of a client is kept after its last ordered request.
  private static let memory: Int64 = 600_000

  /// Notes a request that was carried out. Cost: O(1), on average.
  mutating func note(_ origin: Origin, _ changeset: Changeset, _ sequence: UInt64) {
    let now = Instant.now
    forgetOld(now)
    let until = now.advanced(milliseconds: Self.patience)
    requests[origin] = Request(changeset: changeset, sequence: sequence, keptUntil: until)
    ages.append((origin, until))
    noteProgress(origin)
  }

  /// Also an answered one may be repeated, by a client whose connection was cut, but not after that.
  private mutating func forgetOld(_ now: Instant) {
    while forgotten < ages.count, ages[forgotten].until <= now {
      let origin = ages[forgotten].origin
      if let request = requests[origin], request.keptUntil <= now { requests[origin] = nil }
      forgotten += 1
    }
    guard forgotten > 1024, forgotten * 2 > ages.count else { return }
    ages.removeFirst(forgotten)
    forgotten = 0
  }

  /// An ordered request is over, whether it changed something or not.
  mutating func noteProgress(_ origin: Origin) {
    guard origin.isOrdered else { return }
    let now = Instant.now
    if ordered.count >= limit {
      ordered = ordered.filter { $0.value.keptUntil > now }
      limit = max(1024, ordered.count * 2)
    }
    let before = ordered[origin.client]?.serial ?? 0
    ordered[origin.client] = Progress(
      serial: max(before, origin.serial), keptUntil: now.advanced(milliseconds: Self.memory))
  }

  /// A request of an earlier owner's time.
  mutating func replay(
    _ origin: Origin, _ record: JournalRecord, _ sequence: UInt64, version: UInt64
  ) {
    guard case .change(var changeset) = record else { return }
    changeset.version = version
    note(origin, changeset, sequence)
  }

  /// What the request changed, where it has been carried out.
  func changeset(_ origin: Origin) -> Changeset? {
    if let known = requests[origin] { return known.changeset }
    guard origin.isOrdered, let progress = ordered[origin.client] else { return nil }
    return origin.serial <= progress.serial ? Changeset() : nil
  }

  /// The client has its answer. What it set is not kept any longer, however large it was: a client that
  /// asks again hears when its change was made.
  mutating func answered(_ origin: Origin) {
    // How far an ordered client is says enough.
    if origin.isOrdered {
      requests[origin] = nil
    } else if let request = requests[origin] {
      requests[origin]?.isAnswered = true
      requests[origin]?.changeset = request.changeset.withoutValues
    }
  }

  /// When the first of the requests that may be asked again is no longer kept; nil: there is none.
  var endOfPatience: Instant? {
    requests.values.filter { !$0.isAnswered }.map(\.keptUntil).min()
  }

  /// The first record that must stay.
  func oldestUnanswered(_ now: Instant) -> UInt64? {
    requests.values.filter { $0.isOpen(now) }.map(\.sequence).min()
  }
}

extension Changeset {
  /// The changeset with its times and numbers, and which keys it touched.
  fileprivate var withoutValues: Changeset {
    var lighter = self
    lighter.items = items.map { item in
      switch item.edit {
      case .set(let key, _, _), .splice(let key, _):
        return Item(item.location, .describe(key, Description()))
      case .describe, .remove, .createDomain, .removeDomain: return item
      }
    }
    return lighter
  }
}
