import Foundation
internal import PreferenceClient
internal import PreferenceModel
internal import PreferenceProtocol
internal import PreferenceSearch
internal import PropertyList
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
  let volatile = Lock<[String: [Key: Value]]>([:])
  private static let log = Log("preferences")

  /// The process's own.
  static let shared = Session(places: connected(), arguments: ArgumentDomain.parse(arguments))

  /// What the argument domain is made of.
  static var arguments: [String] { Array(CommandLine.arguments.dropFirst()) }

  /// A session over any places.
  init(places: any PersistentPlaces, arguments: [Key: Value] = [:]) {
    engine = SearchEngine(places: places, arguments: arguments)
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

  /// Sends a change, and tells observers in this process.
  func post(_ intents: [Intent], of keys: [Key], in domain: DomainName) {
    engine.post(intents, by: author) { [dispatcher] error in
      Self.note(error)
      dispatcher.put(keys, domain, isOwn: true)
    }
    dispatcher.put(keys, domain, isOwn: true)
  }
}
