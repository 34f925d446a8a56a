import PreferenceModel
import SystemCalls

/// The last request of each client, so that one that is repeated, because its owner was gone before
/// it answered, is carried out once.
///
/// A request's record stays in the journal until the request is answered: the next owner finds it
/// there and keeps it for ten seconds, twice as long as a client waits for an answer.
struct Requests: Sendable {
  private struct Request: Sendable {
    var serial: UInt64
    var changeset: Changeset
    /// The record in the journal.
    var sequence: UInt64
    /// Until when the record is kept, if nobody says that it is answered; nil: it is.
    var keptUntil: Instant?
  }

  private var last: [UInt64: Request] = [:]

  private static let patience: Int64 = 10_000
  /// Clients after which those that have their answers are forgotten.
  private static let most = 4096

  /// Notes a request that was carried out.
  mutating func note(_ origin: Origin, _ changeset: Changeset, _ sequence: UInt64) {
    if last.count > Self.most { last = last.filter { $0.value.keptUntil != nil } }
    last[origin.client] = Request(
      serial: origin.serial, changeset: changeset, sequence: sequence,
      keptUntil: Instant.now.advanced(milliseconds: Self.patience))
  }

  /// A request of an earlier owner's time.
  mutating func replay(_ origin: Origin, _ record: JournalRecord, _ sequence: UInt64) {
    switch record {
    case .change(let changeset): note(origin, changeset, sequence)
    case .growth(let growth): note(origin, Changeset(time: growth.time), sequence)
    case .checkpoint, .from: break
    }
  }

  /// What the request changed, where it has been carried out.
  func changeset(_ origin: Origin) -> Changeset? {
    last[origin.client].flatMap { $0.serial == origin.serial ? $0.changeset : nil }
  }

  /// The client has its answer.
  mutating func answered(_ origin: Origin) {
    if last[origin.client]?.serial == origin.serial { last[origin.client]?.keptUntil = nil }
  }

  /// The first record that must stay.
  func oldestUnanswered(_ now: Instant) -> UInt64? {
    last.values.filter { $0.keptUntil.map { $0 > now } ?? false }.map(\.sequence).min()
  }
}
