import Foundation
internal import PreferenceClient
internal import PreferenceModel
internal import PreferenceProtocol
internal import PreferenceSearch
internal import PropertyList
internal import Synchronization
internal import SystemCalls

/// What all `UserDefaults` of a process share: the connection to the store, registered defaults, arguments,
/// observers.
///
/// Promises: it connects when it is made; where there is no owner it starts one, where the owner is stopped
/// it goes on without him, and finds him later. Where neither can be had (there is no `prefsd`) values are
/// those that are registered, changes are refused, and the log says so.
///
/// Threads: any. Locks: `volatile`, for one look; the dispatcher's.
final class Session: Sendable {
  let engine: SearchEngine
  let author = Author.unique()
  let dispatcher: Dispatcher
  /// Volatile domains that are in no search list, by name.
  let volatile = Mutex<[String: ValueDictionary]>([:])
  private static let log = Log("preferences")

  /// The process's own.
  static let shared = Session(places: connected(), arguments: ArgumentDomain.parse(arguments))

  /// What the argument domain is made of.
  static var arguments: [String] { Array(CommandLine.arguments.dropFirst()) }

  /// A session over any places.
  init(places: any PersistentPlaces, arguments: ValueDictionary = [:]) {
    engine = SearchEngine(places: places, arguments: arguments, refusesShadowed: false)
    dispatcher = Dispatcher(engine, author)
  }

  private static func connected() -> any PersistentPlaces {
    do throws(EngineError) {
      return try Member(clientOf: Surroundings(), isLasting: true) { log($0) }
    } catch {
      log("no preferences can be read or set: \(error)")
      return MemoryPlaces(refusing: error)
    }
  }

  /// The domain of the program, as Foundation names it: the bundle's identifier, else the program's name.
  static let ownDomain = DomainName(
    Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)

  /// Says what was refused.
  static func note(_ error: EngineError) {
    // There is nothing to remove: nothing is what was asked for.
    if error.reason != .noSuchKey { log("\(error)") }
  }

  /// Says what was refused.
  static func note(_ sentence: String) { log(sentence) }

  /// Sets keys, or removes them (nil), and tells observers in this process.
  func post(_ values: [Key: Value?], in domain: DomainName) {
    let intents = values.map { key, value -> Intent in
      value.map { .set(key, domain, $0, .unknown) } ?? .remove(key, domain)
    }
    let events = values.map { key, value in
      Dispatcher.Event(domain: domain, key: key, maker: .own, value: value)
    }
    dispatcher.expect(events)
    engine.post(intents, by: author) { [weak dispatcher] error in
      if let error { Self.note(error) }
      dispatcher?.put(
        values.keys.map { Dispatcher.Event(domain: domain, key: $0, maker: .unknown) })
    }
    dispatcher.put(events)
  }

  /// Changes the suites of a domain, and has observers look again.
  func changeSuites(
    of domain: DomainName, _ change: @Sendable (inout [DomainName]) -> Void
  ) {
    engine.changeSuites(of: domain, change)
    dispatcher.put([Dispatcher.Event(domain: domain, maker: .own)])
  }
}
