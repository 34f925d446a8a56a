import PreferenceClient
import PreferenceEffects
import PreferenceHistory
import PreferenceModel
import PreferenceSearch
import PropertyList
import StoreAccess
import SystemCalls

/// Carries out the rules of one store: a client that compares what programs read with what each rule
/// was last carried out for.
///
/// Promises: what counts are values, not changes. Each change that is heard only has the rule looked
/// at, soon after, so nothing is lost if this process, the owner or a command is killed: the next
/// one looks at every rule.
///
/// Threads: `run` has one, which waits for the owner, and for the disk of the state. Rules are
/// carried out by threads of their own, eight at most; observers put changes into `arrivals`. Lock:
/// that of `arrivals`, held for a look.
public final class EffectServer {
  private struct Kept {
    let value: Value
    let rule: EffectRule
    var schedule: EffectSchedule
    var error: String?
  }

  /// What the threads leave for the one of `run`.
  private struct Arrivals {
    var changes: [Changeset] = []
    var ended: [(name: String, values: EffectValues, problem: String?)] = []
    var isEnding = false
  }

  private let places: any PersistentPlaces & ReportService
  private let engine: SearchEngine
  private let reader: EffectReader
  private let layout: StoreLayout
  private let file: EffectStateFile
  private let log: @Sendable (LogLine) -> Void
  private let wakeup: Wakeup
  private let arrivals = Monitor(Arrivals())
  private let threads = BlockingThreads(name: "prefs-effect", most: mostRunning)
  private var rules: [String: Kept] = [:]
  private var running = 0
  /// When the rules are read again, which could not be read; nil if they were.
  private var rereads: Instant?

  private static let mostRunning = 8

  /// Creates the server of a store.
  /// - Parameter log: receives lines for people, without values. The output of commands is among
  ///   them.
  public init(
    _ places: any PersistentPlaces & ReportService, _ layout: StoreLayout,
    log: @escaping @Sendable (LogLine) -> Void
  ) throws(EngineError) {
    self.places = places
    engine = SearchEngine(places: places)
    reader = EffectReader(engine)
    (self.layout, self.log) = (layout, log)
    file = EffectStateFile(layout)
    wakeup = try EngineError.wrapping { () throws(SystemError) in try Wakeup() }
    // Without a place for its state no rule is carried out.
    try file.update()
    engine.observe(except: nil) { [arrivals, wakeup] notice in
      arrivals.withLock { $0.changes.append(notice.changeset) }
      wakeup.signal()
    }
  }

  /// Has `run` return when the commands that run have ended; any thread may call the closure.
  public var end: @Sendable () -> Void {
    { [arrivals, wakeup] in
      arrivals.withLock { $0.isEnding = true }
      wakeup.signal()
    }
  }

  /// Carries out rules until `end`.
  public func run() {
    readRules()
    while true {
      let arrived = arrivals.withLock { arrivals in
        defer { (arrivals.changes, arrivals.ended) = ([], []) }
        return arrivals
      }
      for ended in arrived.ended { note(ended.name, ended.values, ended.problem) }
      if arrived.isEnding {
        if running == 0 { return }
        wakeup.wait(until: nil)
        continue
      }
      hear(arrived.changes)
      let now = Instant.now
      if let rereads, rereads <= now { readRules() }
      for (name, kept) in rules where running < Self.mostRunning {
        if let due = kept.schedule.due, due <= now { look(at: name, now) }
      }
      wakeup.wait(until: running < Self.mostRunning ? nextDue : nil)
    }
  }

  private var nextDue: Instant? {
    (rules.values.compactMap(\.schedule.due) + (rereads.map { [$0] } ?? [])).min()
  }

  private func hear(_ changes: [Changeset]) {
    if changes.contains(where: EffectRules.areChanged) { readRules() }
    for name in rules.keys {
      guard let rule = rules[name]?.rule else { continue }
      if changes.contains(where: { reader.concerns(rule, $0) }) {
        rules[name]?.schedule.hear(.now)
      }
    }
  }

  /// Reads the rules again. A rule that is new or has changed is looked at soon. What is known of
  /// rules that are gone is forgotten: a rule that comes again is carried out. Those of a list that
  /// cannot be read are not gone.
  private func readRules() {
    rereads = nil
    do throws(EngineError) {
      let (entries, isComplete) = try EffectRules.read(places, layout)
      let names = Set(entries.map(\.name))
      rules = rules.filter { names.contains($0.key) }
      for entry in entries { keep(entry) }
      guard isComplete else { return }
      try file.update { $0.rules = $0.rules.filter { names.contains($0.key) } }
    } catch {
      log("the rules cannot be read: \(error)")
      rereads = Instant.now.advanced(milliseconds: 10_000)
    }
  }

  private func keep(_ entry: EffectRules.Entry) {
    guard let rule = entry.rule else {
      rules[entry.name] = nil
      return log("\(entry.name) is ignored: \(entry.problem ?? "")")
    }
    let known = rules[entry.name]
    if known?.value == entry.value { return }
    var schedule = known?.schedule ?? EffectSchedule(delay: rule.delay, now: .now)
    schedule.delay = rule.delay
    schedule.hear(.now)
    rules[entry.name] = Kept(value: entry.value, rule: rule, schedule: schedule)
  }

  /// Compares the values of a rule with those of its last success, and carries it out if they are
  /// different.
  private func look(at name: String, _ now: Instant) {
    guard let kept = rules[name] else { return }
    do throws(EngineError) {
      let values = try reader.values(of: kept.rule)
      // `prefs effects run` changes it too.
      let state = try file.update()
      let done = state.rules[name]?.done
      let digests = EffectValues(name, kept.value, values, key: state.key)
      let wasSlowed = kept.schedule.isSlowed
      guard rules[name]?.schedule.begins(digests, done: done, now: now) == true else { return }
      rules[name]?.error = nil
      if !wasSlowed, rules[name]?.schedule.isSlowed == true { tellLoop(kept.rule) }
      begin(EffectJob(kept.rule, digests, values, since: done), name, digests)
    } catch {
      if kept.error != "\(error)" { log("\(name): its values cannot be read: \(error)") }
      rules[name]?.error = "\(error)"
      rules[name]?.schedule.putOff(now)
    }
  }

  private func begin(_ job: EffectJob, _ name: String, _ digests: EffectValues) {
    running += 1
    let isBegun = threads.run { [arrivals, wakeup, file, layout, log] in
      let problem = job.perform(file, layout, log: log)
      arrivals.withLock { $0.ended.append((name, digests, problem)) }
      wakeup.signal()
    }
    if !isBegun { note(name, digests, "no thread could be started") }
  }

  private func note(_ name: String, _ values: EffectValues, _ problem: String?) {
    running -= 1
    if let problem { log("\(name): \(problem)") }
    rules[name]?.schedule.end(values, succeeded: problem == nil, now: .now)
    // It was removed, or is ignored, since it began: what it has noted is forgotten.
    if rules[name] == nil { readRules() }
  }

  /// Says once which programs keep a rule busy.
  private func tellLoop(_ rule: EffectRule) {
    var records: [HistoryRecord] = []
    if let history = try? HistoryReader(places).read() { records = Array(history.records) }
    let sources = records.suffix(100).filter { record in
      record.items.contains { item in
        let name = item.recordedKey
        return rule.patterns.contains { $0.matches(name.location.domain) && $0.matches(name.key) }
      }
    }
    let names = Set(sources.suffix(20).map(\.source.text)).sorted()
    let who = names.isEmpty ? "the history is off" : names.joined(separator: "; ")
    log(
      LogLine(
        "\(rule.name) ran ten times in a minute, and runs once a minute now; its keys changed: "
          + who))
  }
}
