internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import SystemCalls

/// Tells observations what has become of their keys, one after the other, on a thread of its own that
/// begins with the first observation.
///
/// Promises: an observation hears of each change of its key's effective value, with the one before, in order,
/// and of nothing else. What happens so fast that it is undone before it is looked at is not told.
///
/// Threads: any may put; bodies run on the dispatcher's. Locks: the monitor, under which nothing is called.
final class Dispatcher: Sendable {
  /// Who wants to know of a key.
  struct Observation: Sendable {
    var key: Key
    var reader: DomainReader
    var last: Value?
    var body: @Sendable (Change) -> Void
  }

  /// What has become of an effective value.
  struct Change: Sendable {
    var old: Value?
    var new: Value?
    var isOwn: Bool
  }

  /// Something that may change effective values: a key of a domain, or all of it.
  private struct Event: Sendable {
    var domain: DomainName
    var key: Key?
    var isOwn: Bool
  }

  private struct State {
    var observations: [UInt64: Observation] = [:]
    var lastNumber: UInt64 = 0
    var events: [Event] = []
    var isStarted = false
  }

  private let state = Monitor(State())
  private let engine: SearchEngine
  private let author: Author

  init(_ engine: SearchEngine, _ author: Author) { (self.engine, self.author) = (engine, author) }

  /// Begins to observe a key.
  /// - Returns: the observation's number.
  func add(
    _ key: Key, in domain: DomainName, _ body: @escaping @Sendable (Change) -> Void
  ) -> UInt64 {
    start()
    let reader = engine.reader(of: domain)
    // What nobody has read is not announced.
    let value = try? reader.value(key)
    return state.withLock { state in
      state.lastNumber += 1
      state.observations[state.lastNumber] = Observation(
        key: key, reader: reader, last: value, body: body)
      return state.lastNumber
    }
  }

  /// Ends an observation: its body is called at most for what it is being told of at the moment.
  func remove(_ number: UInt64) {
    state.withLock { _ = $0.observations.removeValue(forKey: number) }
  }

  /// These keys of the domain may be others.
  func put(_ keys: [Key], _ domain: DomainName, isOwn: Bool) {
    put(keys.map { Event(domain: domain, key: $0, isOwn: isOwn) })
  }

  private func put(_ events: [Event]) {
    guard state.withLock({ !$0.observations.isEmpty }) else { return }
    state.change { $0.events += events }
  }

  private func start() {
    let isFirst = state.withLock { state in
      defer { state.isStarted = true }
      return !state.isStarted
    }
    guard isFirst else { return }
    engine.observe(except: nil) { [weak self, author] notice in
      let isOwn = notice.author == author
      self?.put(
        notice.changeset.items.map { item in
          Event(domain: item.location.domain, key: item.edit.key, isOwn: isOwn)
        })
    }
    do {
      // It lives as long as the process.
      _ = try WorkerThread(name: "prefs-observer") { [self] in run() }
    } catch {
      Session.note("nothing can be observed: \(error)")
    }
  }

  private func run() {
    while true {
      let events = state.wait { state -> [Event]? in
        defer { state.events = [] }
        return state.events.isEmpty ? nil : state.events
      }
      for event in events ?? [] { tell(event) }
    }
  }

  private func tell(_ event: Event) {
    let concerned = state.withLock { state in
      state.observations.filter { event.key == nil || event.key == $0.value.key }
    }
    for (number, observation) in concerned.sorted(by: { $0.key < $1.key }) {
      // A list that cannot be read now has not changed anything yet.
      do throws(EngineError) {
        let new = try observation.reader.value(observation.key)
        if let change = note(new, number, event.isOwn) { observation.body(change) }
      } catch {}
    }
  }

  /// - Returns: the change, where there is one.
  private func note(_ new: Value?, _ number: UInt64, _ isOwn: Bool) -> Change? {
    state.withLock { state in
      guard let known = state.observations[number], known.last != new else { return nil }
      state.observations[number]?.last = new
      return Change(old: known.last, new: new, isOwn: isOwn)
    }
  }
}
