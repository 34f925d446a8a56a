internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization
internal import SystemCalls

/// Tells observations how the effective values of their keys change, one observation after the
/// other, on a thread of its own, which starts with the first observation.
///
/// Promises: from the moment when `add` returns, an observation is told of the changes of its key's
/// effective value, or of those of all keys of its domain, in order, each with the value before,
/// and of nothing else. Changes that follow each other before the thread looks are told as one, and
/// one that is undone before then is not told. A change is told as this process's own only if no
/// other process's change can be a part of it.
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
    /// The key that may have changed; nil means any key.
    var key: Key?
    var maker: Maker
    /// The value that the key was set to; nil if it was removed, or the value is not known.
    var value: Value?
  }

  /// Which process made a change.
  enum Maker: Sendable {
    case own
    case other
    /// Perhaps none: the value only needs to be read again.
    case unknown
  }

  /// What an observation observes.
  fileprivate struct Target: Sendable {
    /// The key; nil means every key of the domain.
    var key: Key?
    var reader: DomainReader
    var body: @Sendable ([Key: Change]) -> Void
  }

  fileprivate struct Observation: Sendable {
    let target: Target
    /// The values last told, or the first that were read.
    var last: ValueDictionary = [:]
    /// Whether `add` is still reading its first values.
    var isNew = true
    /// The changes by this process that came after the last one of the key by another process,
    /// oldest first.
    var own: [Key: [Event]] = [:]
  }

  fileprivate struct State {
    var observations: [UInt64: Observation] = [:]
    var lastNumber: UInt64 = 0
  }

  /// The most own changes of a key that an observation remembers until it is told of them. Beyond
  /// that the older half is forgotten, and may be told as another process's.
  fileprivate static let mostRemembered = 4096

  fileprivate let state = Monitor(State())
  private let starting = Mutex(false)
  private let worker = BatchWorker<[Event]>()
  private let engine: SearchEngine
  private let author: Author

  init(_ engine: SearchEngine, _ author: Author) { (self.engine, self.author) = (engine, author) }

  deinit { worker.beginStop() }

  /// Begins to observe a key, or all keys of a domain (nil). Reads their values, and waits for the
  /// owner as a read does.
  /// - Parameter initial: is called with the values from which the first changes are told.
  /// - Returns: the observation's number, for `remove`.
  func add(
    _ key: Key?, in domain: DomainName, initial: ((ValueDictionary) -> Void)? = nil,
    _ body: @escaping @Sendable ([Key: Change]) -> Void
  ) -> UInt64 {
    start()
    let target = Target(key: key, reader: engine.reader(of: domain), body: body)
    let observation = Observation(target: target)
    // Before the value is read: a change that is reported to nobody is in that value.
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observations[state.lastNumber] = observation
      return state.lastNumber
    }
    // The store reports changed keys only of lists that have been read, so the values are read
    // here. Those that cannot be read now are told as changes when they can.
    let values = (try? Self.values(of: target, engine)) ?? [:]
    initial?(values)
    state.withLock { state in
      state.observations[number]?.last = values
      state.observations[number]?.isNew = false
      worker.put { $0.append(Event(domain: domain, key: key, maker: .unknown)) }
    }
    return number
  }

  private static func values(
    of target: Target, _ engine: SearchEngine
  ) throws(EngineError) -> ValueDictionary {
    let keys: Set<Key> =
      if let key = target.key { [key] } else { try engine.allKeys(of: target.reader.domain) }
    var values: ValueDictionary = [:]
    for key in keys { values[key] = try target.reader.value(key) }
    return values
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
      let keys = Set(state.observations.values.map(\.target.key))
      let concerned = events.filter { event in
        event.key == nil ? !keys.isEmpty : keys.contains(event.key) || keys.contains(nil)
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
    guard let key = event.key else { return }
    for number in Array(observations.keys) {
      guard let target = observations[number]?.target, target.reader.domain == event.domain,
        target.key == nil || target.key == key
      else { continue }
      observations[number]?.note(event, of: key)
    }
  }
}

extension Dispatcher.Observation {
  /// Records which process changed the key last.
  fileprivate mutating func note(_ event: Dispatcher.Event, of key: Key) {
    guard event.maker == .own else {
      own[key] = nil
      return
    }
    own[key, default: []].append(event)
    if let count = own[key]?.count, count > Dispatcher.mostRemembered {
      own[key]?.removeFirst(Dispatcher.mostRemembered / 2)
    }
  }

  /// Records the value that was read of a key.
  /// - Parameter events: those that may have changed it.
  /// - Returns: the change to tell; nil if the value is the one last told.
  fileprivate mutating func note(
    _ new: Value?, of key: Key, _ events: [Dispatcher.Event]
  ) -> Dispatcher.Change? {
    let old = last[key]
    guard old != new else { return nil }
    last[key] = new
    // Own changes that were undone before the thread looked stay in `own` until a later one is
    // seen.
    let known = own[key] ?? []
    let index = known.lastIndex { $0.explains(new) }
    if let index { own[key]?.removeFirst(index) }
    let isVolatile = known.isEmpty && events.contains { $0.maker == .own && $0.explains(new) }
    let isOwn = !events.contains { $0.maker == .other } && (index != nil || isVolatile)
    return Dispatcher.Change(old: old, new: new, isOwn: isOwn)
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
    // Without the values last told: a second reference to them would have the next change copy
    // them.
    let all = state.withLock { state in
      state.observations.filter { !$0.value.isNew }.map { ($0.key, $0.value.target) }
        .sorted { $0.0 < $1.0 }
    }
    var isLate = false
    for (number, target) in all {
      let concerned = events.filter { $0.concerns(target.key, target.reader, engine) }
      guard !concerned.isEmpty else { continue }
      do throws(EngineError) {
        var found: [Key: Value?] = [:]
        for key in try keys(of: target, number, concerned, engine, state) {
          let value = try target.reader.value(key)
          found.updateValue(value, forKey: key)
        }
        let changes = note(found, number, concerned, state)
        if !changes.isEmpty { target.body(changes) }
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

  /// The keys that the events may have changed for an observation.
  private static func keys(
    of target: Target, _ number: UInt64, _ events: [Event], _ engine: SearchEngine,
    _ state: Monitor<State>
  ) throws(EngineError) -> Set<Key> {
    if let key = target.key { return [key] }
    let named = events.compactMap(\.key)
    if named.count == events.count { return Set(named) }
    let known = state.withLock { $0.observations[number]?.last.keys ?? [] }
    return try engine.allKeys(of: target.reader.domain).union(known)
  }

  /// Records the values that were read for an observation.
  /// - Returns: the changes to tell; none if the observation has ended.
  private static func note(
    _ found: [Key: Value?], _ number: UInt64, _ events: [Event], _ state: Monitor<State>
  ) -> [Key: Change] {
    let named = Dictionary(grouping: events.filter { $0.key != nil }) { $0.key }
    let general = events.filter { $0.key == nil }
    return state.withLock { state in
      var changes: [Key: Change] = [:]
      for (key, new) in found {
        let events = general + (named[key] ?? [])
        if let change = state.observations[number]?.note(new, of: key, events) {
          changes[key] = change
        }
      }
      return changes
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

  /// Whether the event may change the effective value of the key, or of any key (nil), for this
  /// reader.
  fileprivate func concerns(
    _ key: Key?, _ reader: DomainReader, _ engine: SearchEngine
  ) -> Bool {
    guard self.key == nil || key == nil || self.key == key else { return false }
    return domain == reader.domain || engine.inherits(reader.domain, from: domain)
  }

  /// Whether the new value may be the result of this event. After a removal it may be any value,
  /// because another place may hold the key.
  fileprivate func explains(_ new: Value?) -> Bool { value == nil || value == new }
}
