import PreferenceModel
import SystemCalls

/// Remembers the requests of clients, which repeat a request when the owner ended before it
/// answered, so that each request is carried out once.
///
/// A request's record stays in the journal until the request is answered: the next owner finds it
/// there and keeps it for some ten seconds, twice as long as a client waits for an answer (4 s for
/// a mount's).
struct Requests: Sendable {
  private struct Entry: Sendable {
    var changeset: Changeset
    /// The number of the record in the journal.
    var sequence: UInt64
    /// Until when the record is kept if the client does not get its answer.
    var keptUntil: Instant
  }

  /// The last ordered request of a client that is over.
  private struct Progress: Sendable {
    var serial: UInt64
    var keptUntil: Instant
  }

  /// The requests whose answers the clients may not have. They are few: the writer looks at all of
  /// them in each of its rounds.
  private var open: [Origin: Entry] = [:]
  /// Those whose answers the clients have.
  private var answered: [Origin: Entry] = [:]
  private var ordered: [UInt64: Progress] = [:]
  /// The noted requests, in the order in which they are forgotten.
  private var ages: [(origin: Origin, until: Instant)] = []
  /// How many of them, from the first, have been forgotten.
  private var forgotten = 0
  /// The number of clients at which old ones are looked for.
  private var limit = 1024

  /// Milliseconds that a request is kept.
  static let patience: Int64 = 10_000
  /// Milliseconds that a request of a mount is kept which was found in the journal: a successor of
  /// its driver repeats it once it has taken over. It may take longer with hundreds of thousands of
  /// nodes; but until then the journal is kept, which may be what fills a disk.
  static let inheritancePatience: Int64 = 4000
  /// Milliseconds that the progress of a client is kept after its last ordered request.
  private static let memory: Int64 = 600_000

  /// Notes a request that was carried out. Cost: O(1), on average.
  mutating func note(
    _ origin: Origin, _ changeset: Changeset, _ sequence: UInt64, milliseconds: Int64 = patience
  ) {
    let now = Instant.now
    _ = forgetOld(now, most: Self.mostForgotten)
    let until = now.advanced(milliseconds: milliseconds)
    open[origin] = Entry(
      changeset: changeset.withoutValuesBefore, sequence: sequence, keptUntil: until)
    ages.append((origin, until))
    noteProgress(origin)
  }

  /// How many old requests are forgotten at most when a new one is noted, so that the first one
  /// after many does not take long.
  private static let mostForgotten = 16

  /// Forgets requests that were noted ten seconds ago. Until then even an answered one is kept: a
  /// client whose connection was cut may repeat it.
  /// - Parameter most: how many are forgotten at most.
  /// - Returns: when there is more to forget; nil if nothing is kept.
  mutating func forgetOld(_ now: Instant, most: Int) -> Instant? {
    let end = min(ages.count, forgotten + most)
    while forgotten < end, ages[forgotten].until <= now {
      let origin = ages[forgotten].origin
      if let request = open[origin], request.keptUntil <= now { open[origin] = nil }
      if let request = answered[origin], request.keptUntil <= now { answered[origin] = nil }
      forgotten += 1
    }
    if forgotten > 1024, forgotten * 2 > ages.count {
      ages.removeFirst(forgotten)
      forgotten = 0
    }
    assert(open.count + answered.count <= ages.count - forgotten, "each request has an age")
    guard forgotten < ages.count else {
      // Tables keep the memory of all that they have had.
      (open, answered, ages, forgotten) = ([:], [:], [], 0)
      return nil
    }
    // Not for each request: the writer would wake up for as many.
    return max(ages[forgotten].until, now).advanced(milliseconds: 1000)
  }

  /// Notes that an ordered request is over, whether it changed something or not.
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

  /// Notes a request that an earlier owner carried out.
  mutating func replay(
    _ origin: Origin, _ changeset: Changeset, _ sequence: UInt64, version: UInt64
  ) {
    var changeset = changeset
    changeset.version = version
    note(
      origin, changeset, sequence,
      milliseconds: origin.isInheritable ? Self.inheritancePatience : Self.patience)
  }

  /// What the request changed, if it has been carried out; nil if it has not. Of an ordered request
  /// that was forgotten only this is known: the changeset is empty.
  func changeset(_ origin: Origin) -> Changeset? {
    if let known = open[origin] ?? answered[origin] { return known.changeset }
    guard origin.isOrdered, let progress = ordered[origin.client] else { return nil }
    return origin.serial <= progress.serial ? Changeset() : nil
  }

  /// Notes that the client has its answer. The values that it set are dropped, however large they
  /// are: a client that asks again is told which keys changed, and when.
  mutating func answered(_ origin: Origin) {
    guard var request = open.removeValue(forKey: origin) else { return }
    // The progress of an ordered request's client says enough.
    guard !origin.isOrdered else { return }
    request.changeset = request.changeset.withoutValues
    answered[origin] = request
  }

  /// When the first of the unanswered requests is no longer kept; nil if there is none.
  func endOfPatience(_ now: Instant) -> Instant? {
    open.values.lazy.map(\.keptUntil).filter { $0 > now }.min()
  }

  /// The unanswered requests in the order of their records, without the values that they set.
  func unanswered(_ now: Instant) -> [(Origin, Changeset)] {
    open.filter { $0.value.keptUntil > now }.sorted { $0.value.sequence < $1.value.sequence }
      .map { ($0.key, $0.value.changeset.withoutValues) }
  }

  /// Sets the number of the record of a request that was appended again.
  mutating func renumber(_ origin: Origin, _ sequence: UInt64) {
    open[origin]?.sequence = sequence
  }

  /// The number of the first record that the journal must keep for a request; nil means none.
  func oldestUnanswered(_ now: Instant) -> UInt64? {
    open.values.lazy.filter { $0.keptUntil > now }.map(\.sequence).min()
  }
}

extension Changeset {
  /// The changeset without the values from before, which only observers need.
  fileprivate var withoutValuesBefore: Changeset {
    var lighter = self
    for index in lighter.items.indices {
      lighter.items[index].before = lighter.items[index].before.withoutValue
    }
    return lighter
  }

  /// The changeset without values: its time, its number, and the keys that it touched.
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
