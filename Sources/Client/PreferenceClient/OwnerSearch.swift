import Glibc
import PreferenceModel
import PreferenceProtocol
import StoreAccess
import Synchronization
import SystemCalls

/// Looks for the process that owns a store, and starts one if this process may.
///
/// Threads: any. One lock, for the pace of starts.
final class OwnerSearch: Sendable {
  private struct Pace {
    /// When the next owner may be started.
    var next = Instant.now
    /// Milliseconds between the last start and `next`.
    var pause: Int64 = 0
  }

  let surroundings: Surroundings
  /// A random number that identifies this client in all its connections.
  let client: UInt64
  let manner: ClientManner
  private let pace = Mutex(Pace())

  /// Milliseconds that a listening process has for its first answer. A stopped one never answers.
  private static let greetingPatience: Int64 = 500
  /// Milliseconds between two looks.
  static let pause: Int64 = 5
  /// Milliseconds between two starts of an owner: the pause after the first, and the longest, which
  /// the pauses reach by doubling while no owner is found.
  private static let startPauses: (first: Int64, longest: Int64) = (20, 5000)

  init(_ surroundings: Surroundings, _ manner: ClientManner) {
    (self.surroundings, self.manner) = (surroundings, manner)
    client = manner.client ?? .random(in: 1 ... .max)
  }

  /// Connects to the owner; nil if none answers.
  /// - Parameters:
  ///   - first: see `OwnerConnection`. A change is not sent so where an owner only reads, which
  ///     would end.
  ///   - ended: is called once, when the owner is gone.
  func connect(
    first: Request? = nil, ended: @escaping @Sendable () -> Void
  ) throws(EngineError) -> OwnerConnection? {
    let patience = Instant.now.advanced(milliseconds: Self.greetingPatience)
    let first = first?.isChange == true && surroundings.stateObstacle != nil ? nil : first
    var refusal: EngineError?
    for path in surroundings.ownerSocketPaths {
      do throws(EngineError) {
        let found = try OwnerConnection(
          path, surroundings, manner, client: client, first: first, until: patience, ended: ended)
        if let found { return found }
      } catch {
        // A socket that this process may not use says nothing about the next one.
        guard Self.isForeign(error) else { throw error }
        refusal = error
      }
    }
    if let refusal, manner.start == nil { throw refusal }
    return nil
  }

  private static func isForeign(_ error: EngineError) -> Bool {
    [.system(.permissionDenied), .system(.notPermitted)].contains(error.reason)
  }

  /// The error that says that no owner answers. The file of the store's lock has the owner's
  /// number.
  var unanswered: EngineError {
    let path = surroundings.stateDirectory + "/lock"
    let lock = try? Files.regularContents(path, limit: 64)
    let process = lock.flatMap { pid_t(String(decoding: $0, as: UTF8.self)) }
    let hint = process.map { "is process \($0) stopped? (kill -CONT \($0))" } ?? "is it stopped?"
    return EngineError(
      .owned, "no owner answers for the store \(surroundings.userDirectory); \(hint)")
  }

  /// Calls `look` again and again until it succeeds, and starts an owner meanwhile. Throws the
  /// error of `look` if it is not `isPassing`, or at the deadline; throws if an owner cannot be
  /// started.
  func find<Result>(
    until deadline: Instant, _ look: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    while true {
      do throws(EngineError) {
        return try look()
      } catch  where Self.isPassing(error) && Instant.now < deadline {
        if try !startOwner() { Instant.sleep(milliseconds: UInt32(Self.pause)) }
      }
    }
  }

  /// Whether the error says only that there is no owner at the moment.
  static func isPassing(_ error: EngineError) -> Bool {
    [.owned, .ownerGone].contains(error.reason)
  }

  /// Whether an owner may be had later although a look has failed. It may not where there is no
  /// program to start (ENOENT, EACCES and the like), or the owner speaks another version of the
  /// messages.
  static func mayPass(_ error: EngineError) -> Bool {
    guard case .system(let reason) = error.reason else { return isPassing(error) }
    let lasting = [.noSuchFile, .notDirectory, .permissionDenied, Errno(rawValue: ENOEXEC)]
    return !lasting.contains(reason)
  }

  /// Starts an owner, if this process may and enough time has passed since the last try.
  /// - Returns: whether an owner may be there now.
  @discardableResult
  func startOwner() throws(EngineError) -> Bool {
    guard let start = manner.start else { return false }
    let isDue = pace.withLock { pace in
      guard pace.next <= .now else { return false }
      pace.pause = min(max(pace.pause * 2, Self.startPauses.first), Self.startPauses.longest)
      pace.next = Instant.now.advanced(milliseconds: pace.pause)
      return true
    }
    if isDue { try start() }
    return isDue
  }

  /// Notes that an owner was found, so that the pauses between starts begin anew.
  func noteFound() { pace.withLock { $0.pause = 0 } }
}

extension Request {
  fileprivate var isChange: Bool { if case .apply = self { true } else { false } }
}
