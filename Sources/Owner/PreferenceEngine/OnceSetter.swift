import PreferenceModel
import PreferenceStore
import PropertyList
import Synchronization
import SystemCalls

/// Sets the values that configuration profiles set once, in the user's or the host's place.
///
/// A value with a time stamp is set once for its profile, domain and key, and not at all where the
/// user has a value already. Those that have been dealt with are noted in a preference of the
/// domain `prefsfs`, in the same transaction, so that a crash can neither repeat nor lose one. A
/// value without a time stamp is set by the first owner of the store after each log-in, whatever
/// the user has; that is not noted. Each domain has a transaction of its own. Where one fails, its
/// values are tried again when the writer's thread next wakes 10 s later or more, or by the next
/// owner.
///
/// Threads: any; the work is done by a thread of its own, because a transaction may wait for a
/// list. One lock, held for a look.
final class OnceSetter: Sendable {
  private let isFirstAfterLogin: Bool
  private let log: @Sendable (LogLine) -> Void
  private let thread: BlockingThreads
  /// Milliseconds after which the next call tries settings again that could not be set.
  private let pause: Int64
  /// The settings that `set` was last called with.
  private let done = Mutex(Done())

  private struct Done {
    var settings: [OnceSetting] = []
    /// Those that could not be set, and when they are tried again.
    var failed: (settings: [OnceSetting], retry: Instant)?
  }

  /// Where what has been dealt with is noted: a dictionary, from `OnceSetting.identity` to the time
  /// stamp.
  private static let note = (location: Location(.user, .settings), key: Key("AppliedProfiles"))

  /// - Parameters:
  ///   - isFirstAfterLogin: whether values without a time stamp are set.
  ///   - thread: does the work.
  ///   - pause: milliseconds after which settings are tried again that could not be set.
  init(
    isFirstAfterLogin: Bool,
    thread: BlockingThreads = BlockingThreads(name: "prefs-once", most: 1), pause: Int64 = 10_000,
    log: @escaping @Sendable (LogLine) -> Void
  ) {
    (self.isFirstAfterLogin, self.log) = (isFirstAfterLogin, log)
    (self.thread, self.pause) = (thread, pause)
  }

  /// Has the thread set what was not in the last call's settings and is not noted. Returns at once.
  /// Cost: a comparison if the settings are the same as in the last call.
  func set(_ settings: [OnceSetting], in places: LocalPlaces) {
    let new = done.withLock { done -> [OnceSetting] in
      var failed: [OnceSetting] = []
      if let (known, retry) = done.failed, retry <= .now {
        failed = known
        done.failed = nil
      }
      guard !failed.isEmpty || settings != done.settings, !places.isClosing else { return [] }
      defer { done.settings = settings }
      // A value that was set is not set again: the user may have changed it since.
      return settings.filter { failed.contains($0) || !done.settings.contains($0) }
    }
    if new.isEmpty { return }
    // A transaction for each domain: a list that cannot be read holds up no other one's values.
    let domains = Dictionary(grouping: new, by: \.location.domain)
    let isTaken = thread.run { [self] in
      for (_, settings) in domains.sorted(by: { $0.key < $1.key }) { setValues(settings, places) }
    }
    if !isTaken { retryLater(new) }
  }

  /// Sets values as one transaction.
  private func setValues(_ settings: [OnceSetting], _ places: LocalPlaces) {
    do throws(EngineError) {
      let intents = try intents(settings, places)
      guard !intents.isEmpty, !places.isClosing else { return }
      _ = try places.apply(intents, by: .unique())
    } catch {
      if error.reason != .changedMeanwhile {
        log("values that profiles set once are not set yet; trying again: \(error)")
      }
      retryLater(settings)
    }
  }

  /// Has a later call try the settings again.
  private func retryLater(_ settings: [OnceSetting]) {
    let retry = Instant.now.advanced(milliseconds: pause)
    done.withLock { $0.failed = (settings + ($0.failed?.settings ?? []), retry) }
  }

  private func intents(
    _ settings: [OnceSetting], _ places: LocalPlaces
  ) throws(EngineError) -> [Intent] {
    let kept = try places.find(Self.note.key, at: Self.note.location)?.value
    var noted = kept?.dictionary ?? [:]
    let count = noted.count
    var expected: [Intent] = [.expect(Self.note.key, Self.note.location, kept)]
    var intents: [Intent] = []
    for setting in settings {
      let set = Intent.edit(setting.location, .set(setting.key, setting.value, .unknown))
      guard let time = setting.time else {
        if isFirstAfterLogin { intents.append(set) }
        continue
      }
      guard noted[Key(setting.identity)] == nil else { continue }
      if try !isHeld(setting, places) {
        // A value that somebody sets meanwhile stays.
        expected += Place.own.map {
          .expect(setting.key, Location($0, setting.location.domain), nil)
        }
        intents.append(set)
      }
      noted[Key(setting.identity)] = .date(time)
    }
    guard !intents.isEmpty || noted.count != count else { return [] }
    if noted.isEmpty { return expected + intents }
    return expected + intents + [
      .edit(Self.note.location, .set(Self.note.key, .dictionary(noted), .unknown))
    ]
  }

  /// Whether one of the user's own places has a value already.
  private func isHeld(
    _ setting: OnceSetting, _ places: LocalPlaces
  ) throws(EngineError) -> Bool {
    for place in Place.own
    where try places.find(setting.key, at: Location(place, setting.location.domain)) != nil {
      return true
    }
    return false
  }
}

extension LocalPlaces {
  /// Has the values set that profiles set once, unless the store is read-only. Returns at once.
  /// Cost: a comparison if there is nothing new.
  func applyOnceSettings() {
    if !isReadOnly { onceSetter.set(store.lists.onceSettings, in: self) }
  }
}
