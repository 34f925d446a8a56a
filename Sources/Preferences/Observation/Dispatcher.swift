internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization
internal import SystemCalls

/// Tells observations what has become of their keys, one after the other, on a thread of its own that
/// begins with the first observation.
///
/// Promises: an observation hears of each change of its key's effective value from the moment when `add`
/// returns, with the value before, in order, and of nothing else. What is undone before it is looked at is not
/// told. A change is told as this process's own only where nobody else's can be in it.
///
/// Threads: any may add, remove and put; bodies run on the dispatcher's, which ends with it. Locks: `starting`,
/// under which the engine takes an observer; the monitor, under which nothing is called or released.
final class Dispatcher: Sendable {
  /// What has become of an effective value.
  struct Change: Sendable {
    var old: Value?
    var new: Value?
    var isOwn: Bool
  }

  /// Something that may have changed effective values.
  struct Event: Sendable {
    var domain: DomainName
    /// nil: any key.
    var key: Key?
    var maker: Maker
    /// What it set the key to; nil: it removed it.
    var value: Value?
  }

  /// Who made a change.
  enum Maker: Sendable {
    case own
    case other
    /// Perhaps nobody: it is only to be looked at.
    case unknown
  }

  fileprivate struct Observation: Sendable {
    var key: Key
    var reader: DomainReader
    var last: Value?
    /// Its first value is being read.
    var isNew = true
    /// What this process has made of the key since somebody else did, oldest first.
    var own: [Event] = []
    var body: @Sendable (Change) -> Void
  }

  fileprivate struct State {
    var observations: [UInt64: Observation] = [:]
    var lastNumber: UInt64 = 0
    var events: [Event] = []
    var isStopping = false
  }

  /// Own changes of a key that nobody has looked at yet; what is before them may be told as another's.
  fileprivate static let mostRemembered = 4096

  fileprivate let state = Monitor(State())
  private let starting = Mutex(false)
  private let engine: SearchEngine
  private let author: Author

  init(_ engine: SearchEngine, _ author: Author) { (self.engine, self.author) = (engine, author) }

  deinit { state.change { $0.isStopping = true } }

  /// Begins to observe a key.
  /// - Returns: the observation's number.
  func add(
    _ key: Key, in domain: DomainName, _ body: @escaping @Sendable (Change) -> Void
  ) -> UInt64 {
    start()
    let observation = Observation(key: key, reader: engine.reader(of: domain), body: body)
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observations[state.lastNumber] = observation
      return state.lastNumber
    }
    // What nobody has read is not announced; where it cannot be read now, it is news when it can.
    let value = (try? observation.reader.value(key)) ?? nil
    state.change { state in
      state.observations[number]?.last = value
      state.observations[number]?.isNew = false
      state.events.append(Event(domain: domain, key: key, maker: .unknown))
    }
    return number
  }

  /// Ends an observation: its body is called at most for what it is being told of at the moment.
  func remove(_ number: UInt64) {
    let gone = state.withLock { $0.observations.removeValue(forKey: number) }
    // What the body holds goes here, without the lock.
    _ = gone
  }

  /// This process is about to make these changes: whoever sees one knows whose it is.
  func expect(_ events: [Event]) {
    state.withLock { state in
      for event in events { state.note(event) }
    }
  }

  /// Has those who observe such keys look at them.
  func put(_ events: [Event]) {
    state.change { state in
      for event in events where event.maker == .other { state.note(event) }
      let keys = Set(state.observations.values.map(\.key))
      state.events += events.filter { event in
        event.key.map { keys.contains($0) } ?? !keys.isEmpty
      }
    }
  }

  private func start() {
    starting.withLock { isStarted in
      if isStarted { return }
      isStarted = true
      engine.observe(except: nil) { [weak self, author] notice in
        let changeset = notice.changeset
        self?.put(
          changeset.items.map { Event($0, notice.author == author ? .own : .other) }
            + changeset.invalidated.map { Event(domain: $0.domain, maker: .other) })
      }
      do {
        let (state, engine) = (state, engine)
        // Nobody joins it: a body may let the dispatcher go.
        try WorkerThread(name: "prefs-observer") {
          while let events = Self.next(state) { Self.tell(events, state, engine) }
        }.detach()
      } catch {
        Session.note("nothing can be observed: \(error)")
      }
    }
  }
}

extension Dispatcher.State {
  /// Who has changed the key last.
  fileprivate mutating func note(_ event: Dispatcher.Event) {
    for (number, observation) in observations
    where observation.key == event.key && observation.reader.domain == event.domain {
      guard event.maker == .own else {
        observations[number]?.own = []
        continue
      }
      observations[number]?.own.append(event)
      if observation.own.count >= Dispatcher.mostRemembered {
        observations[number]?.own.removeFirst(Dispatcher.mostRemembered / 2)
      }
    }
  }
}

// MARK: - The thread

extension Dispatcher {
  /// Everything that has happened; nil: the end.
  private static func next(_ state: Monitor<State>) -> [Event]? {
    let events = state.wait { state -> [Event]? in
      if state.isStopping { return [] }
      defer { state.events = [] }
      return state.events.isEmpty ? nil : state.events
    }
    return events?.isEmpty == false ? events : nil
  }

  private static func tell(
    _ events: [Event], _ state: Monitor<State>, _ engine: SearchEngine
  ) {
    let all = state.withLock { state in
      state.observations.filter { !$0.value.isNew }.sorted { $0.key < $1.key }
    }
    var isLate = false
    for (number, observation) in all {
      let suites = engine.suites(of: observation.reader.domain)
      let concerned = events.filter { $0.concerns(observation.key, observation.reader, suites) }
      guard !concerned.isEmpty else { continue }
      do throws(EngineError) {
        let new = try observation.reader.value(observation.key)
        if let change = note(new, number, concerned, state) { observation.body(change) }
      } catch  where [.system(.timedOut), .ownerGone].contains(error.reason) {
        isLate = true
      } catch {
        // The list has changed nothing yet; when it can be read there is an event.
      }
    }
    guard isLate else { return }
    state.change { $0.events = events + $0.events }
    Instant.sleep(milliseconds: retryPause)
  }

  /// Milliseconds until what could not be read is read again.
  private static let retryPause: UInt32 = 100

  /// - Returns: the change, where there is one.
  private static func note(
    _ new: Value?, _ number: UInt64, _ events: [Event], _ state: Monitor<State>
  ) -> Change? {
    state.withLock { state in
      guard let known = state.observations[number], known.last != new else { return nil }
      state.observations[number]?.last = new
      // Values that were undone before they were looked at stay in the list until a later one is seen.
      let index = known.own.lastIndex { $0.explains(new) }
      if let index { state.observations[number]?.own.removeFirst(index) }
      let isVolatile = known.own.isEmpty && events.contains { $0.maker == .own && $0.explains(new) }
      let isOwn = !events.contains { $0.maker == .other } && (index != nil || isVolatile)
      return Change(old: known.last, new: new, isOwn: isOwn)
    }
  }
}

extension Dispatcher.Event {
  /// An item of a notice. Volatile places are this process's own.
  init(_ item: Changeset.Item, _ maker: Dispatcher.Maker) {
    let isVolatile = [.arguments, .registered].contains(item.location.place)
    self.init(
      domain: item.location.domain, key: item.edit.key, maker: isVolatile ? .own : maker)
    if case .set(_, let value, _) = item.edit { self.value = value }
  }

  fileprivate func concerns(
    _ key: Key, _ reader: DomainReader, _ suites: [DomainName]
  ) -> Bool {
    guard self.key == nil || self.key == key else { return false }
    return domain == reader.domain || domain == .global || suites.contains(domain)
  }

  /// Whether the value may be what this made; a removal shows what other places have.
  fileprivate func explains(_ new: Value?) -> Bool { value == nil || value == new }
}
