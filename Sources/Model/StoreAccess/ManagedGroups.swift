import PreferenceModel
import SystemCalls

/// Tells which of the directories `@GROUP` in the directory of managed lists count for the user of
/// a store: those of groups that the user is in, as the name service says.
///
/// It is asked again every 60 s. While it does not answer, its last answer counts, and of a group
/// that it no longer knows too, because it may not reach its servers; one that it never knew counts
/// for nobody. Before the first answer it is not known whether a group forces something, and it is
/// asked again every 5 s. Without such a directory it is never asked.
///
/// Threads: any. One lock, held for a look; no call waits for the name service but `awaitAnswer`, 1
/// s at most. A thread of its own asks.
public final class ManagedGroups: Sendable {
  fileprivate struct State {
    /// Whether the user is in a group, for each directory that was asked about.
    var known: [String: Bool] = [:]
    /// The directories at the last look.
    var names: [String] = []
    /// Those that the name service was last asked about.
    var asked: Set<String> = []
    /// When the name service is to be asked again; nil if there is nothing to ask.
    var due: Instant?
    var isAsking = false
  }

  private let layout: StoreLayout
  private let state = Monitor(State())
  private let asker = BlockingThreads(name: "prefs-name", most: 1)
  private let served: @Sendable (Set<String>) -> [String: Bool]?
  private let lifetime: Double
  /// Seconds after which the name service is asked again if it has never answered.
  private static let pause = 5.0
  /// Milliseconds that `awaitAnswer` waits.
  private static let patience: Int64 = 1000
  /// What the name of a group's directory begins with.
  public static let mark: Character = "@"

  /// Creates it for a store's user; nothing is asked yet.
  public convenience init(_ layout: StoreLayout) {
    self.init(layout, lifetime: 60) { names in
      Account.named(layout.userName)?.memberships(among: names)
    }
  }

  /// - Parameters:
  ///   - lifetime: seconds after which the name service is asked again.
  ///   - served: asks it whether the user is in each of these groups, without those that it does
  ///     not know; nil if it does not answer.
  package init(
    _ layout: StoreLayout, lifetime: Double,
    served: @escaping @Sendable (Set<String>) -> [String: Bool]?
  ) {
    (self.layout, self.lifetime, self.served) = (layout, lifetime, served)
  }

  /// The directories of the user's groups, in byte order; nil if that is not known yet. Has the
  /// name service asked where that is due. Cost: a listing of the directory of managed lists.
  /// - Parameter asked: is called by another thread whenever the name service has been asked.
  public func directories(asked: @escaping @Sendable () -> Void) -> [String]? {
    let names = present
    let isDue = state.withLock { state in
      state.names = names
      if names.isEmpty { (state.asked, state.due) = ([], nil) }
      let isDue = !state.asked.isSuperset(of: names) || state.due.map { $0 <= .now } == true
      guard isDue, !state.isAsking else { return false }
      (state.isAsking, state.asked) = (true, Set(names))
      return true
    }
    if isDue, !asker.run({ [self] in ask(names, asked) }) {
      let due = Instant.now.advanced(seconds: min(lifetime, Self.pause))
      state.change { ($0.isAsking, $0.due) = (false, due) }
    }
    return state.withLock { $0.members }
  }

  /// The places of the directories that counted at the last look.
  public var places: Set<Place> {
    Set((state.withLock { $0.members } ?? []).map { Place.managedFor($0) })
  }

  /// When `directories` must be called again; nil if not before the name service has answered,
  /// or a directory comes.
  public var deadline: Instant? { state.withLock { $0.isAsking ? nil : $0.due } }

  /// Returns when the thread that `directories` has started has an answer, after a second at most.
  public func awaitAnswer() {
    let end = Instant.now.advanced(milliseconds: Self.patience)
    _ = state.wait(until: end) { $0.isAsking ? nil : true }
  }

  private func ask(_ names: [String], _ asked: @Sendable () -> Void) {
    let members = served(Set(names.map { String($0.dropFirst()) }))
    state.change { state in
      if let members {
        let known = state.known
        // Names of different bytes can be equal strings.
        state.known = Dictionary(
          names.map { ($0, members[String($0.dropFirst())] ?? known[$0] ?? false) }
        ) { $1 }
      }
      let isKnown = state.names.allSatisfy { state.known[$0] != nil }
      state.due = Instant.now.advanced(seconds: isKnown ? lifetime : min(lifetime, Self.pause))
      state.isAsking = false
    }
    asked()
  }

  /// The directories of groups that there are, in byte order.
  private var present: [String] {
    if layout.userName.isEmpty { return [] }
    let directory = layout.directory(.managed)
    let names = (try? Files.names(in: directory, withDirectories: true)) ?? []
    return names.filter {
      $0.first == Self.mark && $0.utf8.count > 1 && Files.isDirectory("\(directory)/\($0)")
    }.sorted { DomainName($0) < DomainName($1) }
  }
}

extension ManagedGroups.State {
  /// The directories of groups that the user is in; nil if that is not known of one of them.
  fileprivate var members: [String]? {
    names.allSatisfy { known[$0] != nil } ? names.filter { known[$0] == true } : nil
  }
}

extension Place {
  /// Whether the place has the managed lists of a group.
  public var isOfGroup: Bool {
    if case .managedFor(let name) = self { name.first == ManagedGroups.mark } else { false }
  }
}
