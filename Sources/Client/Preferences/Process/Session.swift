import Foundation
internal import PreferenceClient
internal import PreferenceModel
internal import PreferenceSearch
internal import PropertyList
internal import StoreAccess
internal import Synchronization
internal import SystemCalls

/// What all `UserDefaults` of a process share: the connection to the store, registered defaults,
/// arguments, observers.
///
/// Promises: the shared session connects to the owner of the store when it is made, and starts one
/// if there is none; but not in a process that keeps its preferences in memory. If the owner is
/// stopped, or cannot be started at the moment, it goes on without it, and connects later. If no
/// owner can be had at all (there is no `prefsd`, or the home's file system does not answer for
/// 5 s), only arguments and registered defaults can be read, changes are refused, and the log says
/// so.
///
/// Threads: any. Locks: `volatile` and `manner`, for one look; those of `unread` and of the
/// dispatcher.
final class Session: Sendable {
  let engine: SearchEngine
  let durability: any DurabilityService
  /// Answers questions about the store as a whole; nil if there is no owner, or the preferences are
  /// kept in memory.
  let owner: (any ReportService)?
  let author = Author.unique()
  let dispatcher: Dispatcher
  private let cloud: CloudNotices
  /// Volatile domains that are in no search list, by name.
  let volatile = Mutex<[String: ValueDictionary]>([:])
  /// What typed keys could not read.
  let unread = UnreadValues()
  private static let log = Log("preferences")

  /// The session of the process; its first use connects, or has everything in memory.
  static let shared = Session(places: places(), arguments: ArgumentDomain.parse(arguments))

  private struct Manner {
    var isInMemory = Environment.variable("PREFSFS_IN_MEMORY") != nil
    /// Whether the session of the process was made, so that nothing can be chosen.
    var isMade = false
  }

  private static let manner = Mutex(Manner())

  /// Has the session of the process keep everything in memory.
  /// - Returns: false if it was made before, and does not.
  static func keepInMemory() -> Bool {
    manner.withLock { manner in
      if !manner.isMade { manner.isInMemory = true }
      return manner.isInMemory
    }
  }

  private static func places() -> any PersistentPlaces & DurabilityService {
    let isInMemory = manner.withLock { manner in
      manner.isMade = true
      return manner.isInMemory
    }
    if isInMemory { return MemoryPlaces() }
    return connected()
  }

  /// The words of the command line, from which the argument domain is made.
  static var arguments: [String] { Array(CommandLine.arguments.dropFirst()) }

  /// Creates a session over any places.
  init(places: any PersistentPlaces & DurabilityService, arguments: ValueDictionary = [:]) {
    (durability, owner) = (places, places as? any ReportService)
    engine = SearchEngine(places: places, arguments: arguments, refusesShadowed: false)
    dispatcher = Dispatcher(engine, author)
    cloud = CloudNotices(places, author)
    cloud.begin()
  }

  /// Returns the places of the owner of the store; if it cannot be had, places that hold nothing
  /// and refuse every change.
  private static func connected() -> any PersistentPlaces & DurabilityService {
    do throws(EngineError) {
      return try StoreClient(clientOf: Surroundings.answering(), isLasting: true) { log($0) }
    } catch {
      log("no preferences can be read or set: \(error)")
      return MemoryPlaces(refusing: error)
    }
  }

  /// The domain of the program, named as Foundation names it: by the bundle's identifier, else by
  /// the program's name. Foundation's Bundle traps where the program's path is not UTF-8.
  static let ownDomain: DomainName = {
    let isText = Files.linkTarget("/proc/self/exe")?.contains("\u{FFFD}") == false
    let identifier = isText ? Bundle.main.bundleIdentifier : nil
    return DomainName(identifier ?? ProcessInfo.processInfo.processName)
  }()

  /// What a copy that fork(2) has made of the process says when it sets a preference.
  private static let copyLine: StaticString = """
    preferences: nothing is set: this process is a copy that fork(2) has made of a program; it must \
    call execve(2) before it uses preferences

    """

  /// Logs why something was refused.
  static func note(_ error: EngineError) {
    // Removing a key that is not there is no failure: the result is what was asked for.
    if error.reason != .noSuchKey { log(.refusal("\(error)", .notPermitted)) }
  }

  /// Logs that an argument is refused, and why.
  static func note(_ sentence: String) { log(.refusal(sentence, .invalidArgument)) }

  /// Sets keys, or removes those with nil, as one transaction, and has observers in this process
  /// look at them. Does not wait for the answer; a refusal is logged.
  func post(_ values: [Key: Value?], in domain: DomainName) {
    if ForkedProcess.isCopy(refusing: Self.copyLine) { return }
    let intents = values.map { key, value -> Intent in
      value.map { .set(key, domain, $0, .unknown) } ?? .remove(key, domain)
    }
    let events = values.map { key, value in
      Dispatcher.Event(domain: domain, key: key, maker: .own, value: value)
    }
    dispatcher.expect(events)
    engine.post(intents, by: author) { [weak dispatcher, cloud] error in
      if let error {
        Self.note(error)
        cloud.note(error)
      }
      dispatcher?.put(
        values.keys.map { Dispatcher.Event(domain: domain, key: $0, maker: .unknown) })
    }
    dispatcher.put(events)
  }

  /// Changes the suites of a domain, and has the observers look at all keys again.
  func changeSuites(
    of domain: DomainName, _ change: @Sendable (inout [DomainName]) -> Void
  ) {
    engine.changeSuites(of: domain, change)
    dispatcher.put([Dispatcher.Event(domain: domain, maker: .own)])
  }
}
