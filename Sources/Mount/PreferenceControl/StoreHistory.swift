import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import Synchronization
import SystemCalls

/// The history of a store and its past, as the control directory of a mount shows them.
///
/// Promises: only what `need` prepares waits. What asks for something that is not in memory throws;
/// what is prepared may go again when other moments are prepared, or the history is released.
///
/// Threads: any. Preparations are made by any of a few threads, for each request that needs one. One
/// lock, held for a few loads and stores; nothing is read under it.
final class StoreHistory: Sendable {
  /// The history as it was read last.
  private struct Changes: Sendable {
    let contents: HistoryContents
    /// The positions of each key's changes in `contents`; nil if nobody has asked for them.
    let positions: [DomainName: [Key: [Int]]]?
    /// The days with changes that are moments, and the number of each.
    let days: [String: UInt64]

    init(_ contents: HistoryContents, withPositions: Bool) {
      self.contents = contents
      days = contents.dayNumbers
      guard withPositions else {
        positions = nil
        return
      }
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
    /// How what was prepared has ended: a domain, or the names of all (nil).
    var prepared: [DomainName?: Result<Void, EngineError>] = [:]
  }

  private struct State {
    var changes: Changes?
    var failure: EngineError?
    var moments: [UInt64: Moment] = [:]
    /// Their numbers, the last one used at the end.
    var order: [UInt64] = []
    /// Reads the history. `release` puts a new one in its place, because calls of the old one may
    /// be waiting for a disk.
    var reader: HistoryReader

    init(_ owner: any ReportService) { reader = HistoryReader(owner) }
  }

  private let places: any PersistentPlaces
  private let owner: any ReportService
  private let state: Mutex<State>

  /// The most moments that are kept in memory at once.
  private static let most = 16

  init(_ places: any PersistentPlaces, _ owner: any ReportService) {
    (self.places, self.owner) = (places, owner)
    state = Mutex(State(owner))
  }

  // MARK: - Preparing

  /// The changes that were acknowledged, with their numbers and times: all that moments need. They
  /// are read again for each request.
  /// - Parameter withPositions: whether an index by domain and key is needed too.
  func need(withPositions: Bool) -> ControlNeed {
    let name = withPositions ? "changes" : "moments"
    return .prepared(
      Preparation(name, isPast: false, isReady: { false }) { [self] in
        prepareChanges(withPositions: withPositions)
      })
  }

  /// The state that a change has left: its domains; or of one domain, its values.
  func need(ofMoment number: UInt64, _ domain: DomainName?) -> ControlNeed {
    let name = "\(number)" + (domain.map { " \($0)" } ?? "")
    let isReady = { @Sendable [self] in isPrepared(number, domain) }
    return .prepared(
      Preparation(name, isPast: true, isReady: isReady) { [self] in prepare(number, domain) })
  }

  private func prepareChanges(withPositions: Bool) {
    let (known, reader) = state.withLock { ($0.changes, $0.reader) }
    do throws(EngineError) {
      let contents = try reader.read()
      let isSame = known.map {
        $0.contents.lastNumber == contents.lastNumber && $0.contents.isOff == contents.isOff
          && $0.contents.entries.count == contents.entries.count
          && $0.contents.edition == contents.edition && contents.edition != nil
          && ($0.positions != nil || !withPositions)
      }
      let hadPositions = known?.positions != nil
      let changes =
        isSame == true
        ? known : Changes(contents, withPositions: withPositions || hadPositions)
      state.withLock { state in
        // Values were removed: what moments have read may have them.
        if known?.contents.edition != contents.edition { (state.moments, state.order) = ([:], []) }
        (state.changes, state.failure) = (changes, nil)
      }
    } catch {
      state.withLock { ($0.changes, $0.failure) = (nil, error) }
    }
  }

  private func prepare(_ number: UInt64, _ domain: DomainName?) {
    do throws(EngineError) {
      let engine = try moment(number)
      // The names of all domains are made once for a moment, not again for each of the domains.
      if !isPrepared(number, nil) {
        prepare(nil, number, engine) { () throws(EngineError) in _ = try engine.domains() }
      }
      guard let domain else { return }
      prepare(domain, number, engine) { () throws(EngineError) in
        // One question for all places, where the engine would ask for each.
        let locations = SearchList.persistentPlaces.map { Location($0, domain) }
        do throws(EngineError) { _ = try engine.places.snapshots(of: locations) } catch {}
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
    _ domain: DomainName?, _ number: UInt64, _ engine: SearchEngine,
    _ body: () throws(EngineError) -> Void
  ) {
    let outcome: Result<Void, EngineError> = Result(catching: body)
    state.withLock { state in
      guard state.moments[number]?.engine === engine else { return }
      state.moments[number]?.prepared[domain] = outcome
    }
  }

  /// A key whose look-up asks every place.
  private static let probe: Key = ""

  private func moment(_ number: UInt64) throws(EngineError) -> SearchEngine {
    let (known, reader) = state.withLock { ($0.moments[number], $0.reader) }
    if let known { return known.engine }
    let past = try PastPlaces(after: number, places, reader)
    let engine = SearchEngine(places: past, usesLanguages: false, usesSchemas: false)
    return state.withLock { state in
      // Another thread may have made it meanwhile.
      if let known = state.moments[number] { return known.engine }
      state.moments[number] = Moment(engine: engine)
      state.order.append(number)
      if state.order.count > Self.most { state.moments[state.order.removeFirst()] = nil }
      return engine
    }
  }

  private func isPrepared(_ number: UInt64, _ domain: DomainName?) -> Bool {
    state.withLock { state in
      if let index = state.order.firstIndex(of: number), index + 1 < state.order.count {
        state.order.append(state.order.remove(at: index))
      }
      // What has failed is tried again by the next request.
      if case .success? = state.moments[number]?.prepared[domain] { return true }
      return false
    }
  }

  /// Gives the memory back.
  func release() {
    state.withLock { $0 = State(owner) }
  }

  // MARK: - Changes

  /// Whether nothing is kept, by the settings.
  var isOff: Bool { state.withLock { $0.changes?.contents.isOff ?? false } }

  private func changes() throws(EngineError) -> Changes {
    let (changes, failure) = state.withLock { ($0.changes, $0.failure) }
    if let changes { return changes }
    throw failure ?? Self.notRead
  }

  private static let notRead = EngineError(
    .system(.inputOutput), "the history of the store was not read in time")

  func changedDomains() throws(EngineError) -> Set<DomainName> {
    Set(try changes().positions?.keys.map { $0 } ?? [])
  }

  func changedKeys(of domain: DomainName) throws(EngineError) -> Set<Key> {
    Set(try changes().positions?[domain]?.keys.map { $0 } ?? [])
  }

  /// The changes of a key, as `prefs history --all` prints them; nil if there are none.
  func changes(of key: Key, in domain: DomainName) throws(EngineError) -> String? {
    let all = try changes()
    guard let positions = all.positions?[domain]?[key] else { return nil }
    var filter = HistoryFilter()
    (filter.domain, filter.key) = (domain, key)
    return positions.map { all.contents.entries[$0].text(filter) }.joined()
  }

  // MARK: - The past

  /// The days with changes, as `2026-11-21`.
  func days() throws(EngineError) -> Set<Key> { Set(try changes().days.keys.map { Key($0) }) }

  /// The number of the change that was the last one at a moment: a time, a date, the number of a
  /// change, `yesterday` or `-2h`; nil if the name means none that the history has.
  func number(ofMoment name: String) throws(EngineError) -> UInt64? {
    if let number = try changes().days[name] { return number }
    guard let moment = HistoryMoment(name) else { return nil }
    return try changes().contents.number(at: moment)
  }

  /// The engine that shows the state which a change has left, without arguments, languages and
  /// registered defaults. It refuses every change, and may only be asked for the domain; without
  /// one, for the names of the domains.
  func engine(
    ofMoment number: UInt64, _ domain: DomainName?
  ) throws(EngineError) -> any Engine {
    guard let moment = state.withLock({ $0.moments[number] }),
      let outcome = moment.prepared[domain]
    else { throw Self.notRead }
    try outcome.get()
    return moment.engine
  }
}
