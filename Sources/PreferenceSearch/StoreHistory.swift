import PreferenceHistory
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The history of a store and its past, as the control directory of a mount shows them.
///
/// Threads: any. `prepare` is called by one thread for each request that needs it. One lock, held
/// for a look; nothing is read under it.
final class StoreHistory: HistoryService {
  /// The history as it was read last.
  private struct Changes: Sendable {
    let contents: HistoryContents
    /// Where the changes of each key are in it.
    let positions: [DomainName: [Key: [Int]]]

    init(_ contents: HistoryContents) {
      self.contents = contents
      var positions: [DomainName: [Key: [Int]]] = [:]
      for (index, entry) in contents.entries.enumerated() {
        guard case .change(let record) = entry else { continue }
        for item in record.items {
          positions[item.location.domain, default: [:]][item.key, default: []].append(index)
        }
      }
      self.positions = positions
    }
  }

  /// The state of the store at a moment.
  private struct Moment: Sendable {
    let engine: SearchEngine
    /// What was prepared, and why that failed.
    var prepared: [DomainName?: EngineError?] = [:]
  }

  private struct State {
    var changes: Changes?
    var failure: EngineError?
    var moments: [UInt64: Moment] = [:]
    /// Their numbers, the last one used at the end.
    var order: [UInt64] = []
  }

  private let places: any PersistentPlaces
  private let reader: HistoryReader
  private let state = Mutex(State())

  /// The most moments that are kept in memory at once.
  private static let most = 16

  init(_ places: any PersistentPlaces, _ owner: any ReportService) {
    (self.places, reader) = (places, HistoryReader(owner))
  }

  // MARK: - Preparing

  func prepare(_ need: HistoryNeed) {
    switch need {
    case .changes: prepareChanges()
    case .moment(let number, let domain): prepare(number, domain)
    }
  }

  private func prepareChanges() {
    let known = state.withLock { $0.changes }
    do throws(EngineError) {
      let contents = try reader.read()
      let isSame = known.map {
        $0.contents.lastNumber == contents.lastNumber && $0.contents.isOff == contents.isOff
          && $0.contents.entries.count == contents.entries.count
      }
      let changes = isSame == true ? known : Changes(contents)
      state.withLock { ($0.changes, $0.failure) = (changes, nil) }
    } catch {
      state.withLock { ($0.changes, $0.failure) = (nil, error) }
    }
  }

  private func prepare(_ number: UInt64, _ domain: DomainName?) {
    do throws(EngineError) {
      let engine = try moment(number)
      prepare(nil, number) { () throws(EngineError) in _ = try engine.domains() }
      guard let domain else { return }
      prepare(domain, number) { () throws(EngineError) in
        _ = try engine.keys(of: domain)
        do throws(EngineError) {
          _ = try engine.resolve(Self.probe, in: domain)
        } catch  where error.reason == .system(.noData) {
          // Its value is not known, but every place has been asked.
        }
      }
    } catch {
      // It is not known then, and whoever asks for it gets EIO.
    }
  }

  /// Prepares the names of the domains (nil), or one domain.
  private func prepare(
    _ domain: DomainName?, _ number: UInt64, _ body: () throws(EngineError) -> Void
  ) {
    var failure: EngineError?
    do throws(EngineError) { try body() } catch { failure = error }
    state.withLock { _ = $0.moments[number]?.prepared.updateValue(failure, forKey: domain) }
  }

  /// A key whose look-up asks every place.
  private static let probe: Key = ""

  private func moment(_ number: UInt64) throws(EngineError) -> SearchEngine {
    if let known = state.withLock({ $0.moments[number] }) { return known.engine }
    let past = try PastPlaces(after: number, places, reader)
    let engine = SearchEngine(places: past, usesLanguages: false)
    state.withLock { state in
      state.moments[number] = Moment(engine: engine)
      state.order.append(number)
      if state.order.count > Self.most { state.moments[state.order.removeFirst()] = nil }
    }
    return engine
  }

  func isPrepared(_ need: HistoryNeed) -> Bool {
    state.withLock { state in
      switch need {
      case .changes: return state.changes != nil
      case .moment(let number, let domain):
        if let index = state.order.firstIndex(of: number), index + 1 < state.order.count {
          state.order.append(state.order.remove(at: index))
        }
        return state.moments[number]?.prepared[domain] != nil
      }
    }
  }

  func release() {
    state.withLock { $0 = State() }
    reader.forget()
  }

  // MARK: - Changes

  var isOff: Bool { state.withLock { $0.changes?.contents.isOff ?? false } }

  private func changes() throws(EngineError) -> Changes {
    let (changes, failure) = state.withLock { ($0.changes, $0.failure) }
    if let changes { return changes }
    throw failure ?? Self.notRead
  }

  private static let notRead = EngineError(
    .system(.inputOutput), "the history of the store was not read in time")

  func changedDomains() throws(EngineError) -> Set<DomainName> {
    Set(try changes().positions.keys)
  }

  func changedKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    Set(try changes().positions[domain, default: [:]].keys)
  }

  func changes(of key: Key, in domain: DomainName) throws(EngineError) -> String? {
    let all = try changes()
    guard let positions = all.positions[domain]?[key] else { return nil }
    var filter = HistoryFilter()
    (filter.domain, filter.key) = (domain, key)
    return positions.map { all.contents.entries[$0].text(filter) }.joined()
  }

  // MARK: - The past

  func days() throws(EngineError) -> [String] { try changes().contents.days }

  func number(ofMoment name: String) throws(EngineError) -> UInt64? {
    guard let moment = HistoryMoment(name) else { return nil }
    return try changes().contents.number(at: moment)
  }

  func engine(
    ofMoment number: UInt64, _ domain: DomainName?
  ) throws(EngineError) -> any Engine {
    guard let moment = state.withLock({ $0.moments[number] }),
      let failure = moment.prepared[domain]
    else { throw Self.notRead }
    if let failure { throw failure }
    return moment.engine
  }
}
