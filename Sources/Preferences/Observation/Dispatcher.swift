internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization
internal import SystemCalls

/// Tells observations how the effective values of their keys change, one observation after the
/// other, on a thread of its own, which starts with the first observation.
///
/// Promises: from the moment when `add` returns, an observation is told of the changes of its key's
/// effective value in order, each with the value before, and of nothing else. Changes that follow
/// each other before the thread looks are told as one, and one that is undone before then is not
/// told. A change is told as this process's own only if no other process's change can be a part of
/// it.
///
/// Threads: any may call `add`, `remove`, `expect` and `put`; bodies run on the dispatcher's
/// thread, which ends with the dispatcher. Locks: `starting`, under which the engine is given an
/// observer; the monitor, under which nothing is called but the worker's `put`, and nothing that a
/// body holds is released.
final class Dispatcher: Sendable {
  /// A change of a key's effective value.
  struct Change: Sendable {
    var old: Value?
    var new: Value?
    var isOwn: Bool
  }

  /// Something that may have changed effective values.
  struct Event: Sendable {
    var domain: DomainName
    /// The key that may have changed; nil: any key.
    var key: Key?
    var maker: Maker
    /// The value that the key was set to; nil: it was removed, or the value is not known.
    var value: Value?
  }

  /// Which process made a change.
  enum Maker: Sendable {
    case own
    case other
    /// Perhaps none: the value only needs to be read again.
    case unknown
  }

  fileprivate struct Observation: Sendable {
    var key: Key
    var reader: DomainReader
    /// The value last told, or the first that was read.
    var last: Value?
    /// Whether `add` is still reading its first value.
    var isNew = true
    /// The changes of the key by this process that came after the last one by another process,
    /// oldest first.
    var own: [Event] = []
    var body: @Sendable (Change) -> Void
  }

  fileprivate struct State {
    var observations: [UInt64: Observation] = [:]
    var lastNumber: UInt64 = 0
  }

  /// The most own changes that an observation remembers until it is told of them. Beyond that the
  /// older half is forgotten, and may be told as another process's.
  fileprivate static let mostRemembered = 4096

  fileprivate let state = Monitor(State())
  private let starting = Mutex(false)
  private let worker = BatchWorker<[Event]>()
  private let engine: SearchEngine
  private let author: Author

  init(_ engine: SearchEngine, _ author: Author) { (self.engine, self.author) = (engine, author) }

  deinit { worker.beginStop() }

  /// Begins to observe a key. Reads its value, and waits for the owner as a read does.
  /// - Returns: the observation's number, for `remove`.
  func add(
    _ key: Key, in domain: DomainName, _ body: @escaping @Sendable (Change) -> Void
  ) -> UInt64 {
    start()
    let observation = Observation(key: key, reader: engine.reader(of: domain), body: body)
    // Before the value is read: a change that is reported to nobody is in that value.
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observations[state.lastNumber] = observation
      return state.lastNumber
    }
    // The store reports changed keys only of lists that have been read, so the value is read here.
    // If it cannot be read now, it is told as a change when it can.
    let value = (try? observation.reader.value(key)) ?? nil
    state.withLock { state in
      state.observations[number]?.last = value
      state.observations[number]?.isNew = false
      worker.put { $0.append(Event(domain: domain, key: key, maker: .unknown)) }
    }
    return number
  }

  /// Ends an observation. Its body is called at most once more, for a change that is being told at
  /// the moment.
  func remove(_ number: UInt64) {
    let gone = state.withLock { $0.observations.removeValue(forKey: number) }
    // What the body holds is released here, outside the lock.
    _ = gone
  }

  /// Records the changes that this process is about to make, so that they are recognised as its own
  /// when they are seen.
  func expect(_ events: [Event]) {
    state.withLock { state in
      for event in events { state.note(event) }
    }
  }

  /// Reports events: the thread reads the values of the observed keys among them again.
  func put(_ events: [Event]) {
    state.withLock { state in
      for event in events where event.maker == .other { state.note(event) }
      let keys = Set(state.observations.values.map(\.key))
      let concerned = events.filter { event in
        event.key.map { keys.contains($0) } ?? !keys.isEmpty
      }
      // Under the lock, so that what is noted and what is put have one order.
      if !concerned.isEmpty { worker.put { $0 += concerned } }
    }
  }

  private func start() {
    starting.withLock { isStarted in
      if isStarted { return }
      do {
        let (state, engine, worker) = (state, engine, worker)
        try worker.start(name: "prefs-observer") { Self.notify($0, state, engine, worker) }
        // It is not joined, because a body may release the dispatcher, on that very thread.
        worker.detach()
      } catch {
        return Session.note(
          "observers in this process are not told of changes before the next one is added: \(error)"
        )
      }
      isStarted = true
      engine.observe(except: nil) { [weak self, author] notice in
        let changeset = notice.changeset
        self?.put(
          changeset.items.map { Event($0, notice.author == author ? .own : .other) }
            + changeset.invalidated.map { Event(domain: $0.domain, maker: .other) })
      }
    }
  }
}

extension Dispatcher.State {
  /// Records, for the observations of the event's key, which process changed it last.
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
  /// Reads the values that the events may have changed, and tells the observations of those that
  /// differ.
  private static func notify(
    _ events: [Event], _ state: Monitor<State>, _ engine: SearchEngine,
    _ worker: BatchWorker<[Event]>
  ) {
    let all = state.withLock { state in
      state.observations.filter { !$0.value.isNew }.sorted { $0.key < $1.key }
    }
    var isLate = false
    for (number, observation) in all {
      let concerned = events.filter { $0.concerns(observation.key, observation.reader, engine) }
      guard !concerned.isEmpty else { continue }
      do throws(EngineError) {
        let new = try observation.reader.value(observation.key)
        if let change = note(new, number, concerned, state) { observation.body(change) }
      } catch  where [.system(.timedOut), .ownerGone].contains(error.reason) {
        isLate = true
      } catch {
        // The list is unreadable, which changes no value. An event follows when it can be read.
      }
    }
    guard isLate, !worker.isStopping else { return }
    worker.put { $0 = events + $0 }
    Instant.sleep(milliseconds: retryPause)
  }

  /// Milliseconds before a value is read again that the owner did not give in time.
  private static let retryPause: UInt32 = 100

  /// Records the value that was read for an observation.
  /// - Returns: the change to tell; nil if the value is the one last told, or the observation has
  ///   ended.
  private static func note(
    _ new: Value?, _ number: UInt64, _ events: [Event], _ state: Monitor<State>
  ) -> Change? {
    state.withLock { state in
      guard let known = state.observations[number], known.last != new else { return nil }
      state.observations[number]?.last = new
      // Own changes that were undone before the thread looked stay in `own` until a later one is
      // seen.
      let index = known.own.lastIndex { $0.explains(new) }
      if let index { state.observations[number]?.own.removeFirst(index) }
      let isVolatile = known.own.isEmpty && events.contains { $0.maker == .own && $0.explains(new) }
      let isOwn = !events.contains { $0.maker == .other } && (index != nil || isVolatile)
      return Change(old: known.last, new: new, isOwn: isOwn)
    }
  }
}

extension Dispatcher.Event {
  /// Makes the event of an item of a notice. Volatile places belong to this process, so their
  /// changes are its own.
  init(_ item: Changeset.Item, _ maker: Dispatcher.Maker) {
    let isVolatile = [.arguments, .registered].contains(item.location.place)
    self.init(
      domain: item.location.domain, key: item.edit.key, maker: isVolatile ? .own : maker)
    if case .set(_, let value, _) = item.edit { self.value = value }
  }

  /// Whether the event may change the effective value of the key for this reader.
  fileprivate func concerns(
    _ key: Key, _ reader: DomainReader, _ engine: SearchEngine
  ) -> Bool {
    guard self.key == nil || self.key == key else { return false }
    return domain == reader.domain || engine.inherits(reader.domain, from: domain)
  }

  /// Whether the new value may be the result of this event. After a removal it may be any value,
  /// because another place may hold the key.
  fileprivate func explains(_ new: Value?) -> Bool { value == nil || value == new }
}
