import PreferenceModel
import Synchronization
import SystemCalls

/// Tells the directories of users from those of fragments in the directory of managed lists:
/// `martin.d` may have the lists of the user martin.d, or fragments of the domain martin.
///
/// The name service says which users there are; a name that is not in passwd(5) is looked up with
/// getent(1), unless there is no source of users but passwd(5). The files say what somebody has put
/// there. Where both are possible, the directory counts for the user alone, so that nothing is
/// forced on others by mistake. While the name service does not answer, its last answer counts;
/// before the first one, the files alone say.
///
/// Threads: any. One lock, held for a look. Only a call with `.now` waits for the name service, 5 s
/// at most, and `awaitAnswer`, 1 s; others go on with what was last known.
public final class ManagedDirectories: Sendable {
  /// What a directory has.
  public enum Kind: Equatable, Sendable {
    /// The lists of a user.
    case user
    /// Fragments of a domain.
    case fragments
    /// Both are possible; whether the name service knows the user.
    case either(isUserKnown: Bool)
  }

  /// How the name service is asked about names that are not in passwd(5).
  public enum Asking: Sendable {
    /// The call waits for the answer.
    case now
    /// A thread asks, and calls the body where something is new.
    case later(@Sendable () -> Void)
    /// It is not asked.
    case never
  }

  private struct Answers {
    /// Whether the name service knows a user, and until when that counts.
    var all: [String: (isUser: Bool, until: Instant)] = [:]
    var isAsking = false

    /// Those of the names that are known as users'.
    func users(among names: Set<String>) -> Set<String> {
      names.filter { all[$0]?.isUser == true }
    }
  }

  private let layout: StoreLayout
  private let directory: String
  private let answers = Monitor(Answers())
  private let asker = BlockingThreads(name: "prefs-name", most: 1)
  private let served: @Sendable (Set<String>) -> Set<String>?
  /// Seconds after which the name service is asked again.
  private let lifetime: Double
  /// Milliseconds that `awaitAnswer` waits.
  private static let patience: Int64 = 1000
  private static let list = ".plist"

  /// Creates what tells the directories of a store's machine apart.
  public convenience init(_ layout: StoreLayout) {
    self.init(layout, lifetime: 60) { Account.served(among: $0) }
  }

  /// - Parameters:
  ///   - lifetime: seconds after which the name service is asked again.
  ///   - served: asks it: see `Account.served`.
  package init(
    _ layout: StoreLayout, lifetime: Double,
    served: @escaping @Sendable (Set<String>) -> Set<String>?
  ) {
    (self.layout, self.lifetime, self.served) = (layout, lifetime, served)
    directory = layout.directory(.managed)
  }

  /// What each of these directories in the directory of managed lists has. One of a group
  /// (`ManagedGroups`) counts as a user's.
  public func kinds(of names: [String], asking: Asking) -> [String: Kind] {
    var kinds: [String: Kind] = [:]
    var open: [String: DomainName] = [:]
    for name in names where name != "." && name != ".." {
      if name.first != ManagedGroups.mark,
        let domain = layout.domain(ofFragments: name, in: .managed), !hasMark(name)
      {
        open[name] = domain
      } else {
        kinds[name] = .user
      }
    }
    if open.isEmpty { return kinds }
    let users = users(among: Set(open.keys), asking)
    for (name, domain) in open { kinds[name] = kind(name, domain, isUser: users.contains(name)) }
    return kinds
  }

  /// Returns when the thread that a call with `.later` has started has an answer, after a second at
  /// most.
  public func awaitAnswer() {
    let end = Instant.now.advanced(milliseconds: Self.patience)
    _ = answers.wait(until: end) { $0.isAsking ? nil : true }
  }

  // MARK: - What the files say

  /// Whether the directory has something that only the directory of a user has: a lock of lists, a
  /// list of the global domain, a profile, or fragments.
  private func hasMark(_ name: String) -> Bool {
    if name == layout.userName { return true }
    let path = "\(directory)/\(name)"
    let names = (try? Files.names(in: path, withDirectories: true)) ?? []
    return names.contains { inner in
      inner == ".lock" || inner == ".GlobalPreferences" + Self.list
        || inner.hasSuffix(".mobileconfig")
        || layout.domain(ofFragments: inner, in: .ownManaged) != nil
          && Files.isDirectory("\(path)/\(inner)")
    }
  }

  private func kind(_ name: String, _ domain: DomainName, isUser: Bool) -> Kind {
    let names = (try? Files.names(in: "\(directory)/\(name)")) ?? []
    let lists = names.filter { $0.hasSuffix(Self.list) && !$0.hasPrefix(".") }
    if isUser, lists.isEmpty { return .user }
    let path = layout.path(Location(.managed, domain))
    let hasList = (try? Files.linkStatus(path)) != nil
    let areLists = !lists.isEmpty && !hasList && lists.allSatisfy(Self.isNamedLikeList)
    if isUser { return areLists ? .user : .either(isUserKnown: true) }
    // The name of a user may have a dot. With two, it is the name of a domain.
    let mayBeUser = domain.string.utf8.count(where: { $0 == UInt8(ascii: ".") }) < 2
    return areLists && mayBeUser ? .either(isUserKnown: false) : .fragments
  }

  /// Whether a file is named like the list of a domain (`com.example.editor.plist`), and not like a
  /// fragment (`50-fonts.plist`).
  private static func isNamedLikeList(_ name: String) -> Bool {
    let stem = name.dropLast(list.count)
    return stem.utf8.count(where: { $0 == UInt8(ascii: ".") }) >= 2
      && stem.utf8.first.map { $0 < UInt8(ascii: "0") || $0 > UInt8(ascii: "9") } == true
  }

  // MARK: - What the name service says

  private func users(among names: Set<String>, _ asking: Asking) -> Set<String> {
    let local = Account.local(among: names)
    let rest = names.subtracting(local)
    let now = Instant.now
    let (known, unsure) = answers.withLock { answers in
      (
        answers.users(among: rest),
        rest.filter { name in answers.all[name].map { $0.until <= now } ?? true }
      )
    }
    if unsure.isEmpty { return local.union(known) }
    switch asking {
    case .now:
      _ = ask(for: unsure)
      return local.union(answers.withLock { $0.users(among: rest) })
    case .later(let learnt): askLater(for: unsure, learnt)
    case .never: break
    }
    return local.union(known)
  }

  /// Has a thread ask the name service, unless it does already.
  private func askLater(for names: Set<String>, _ learnt: @escaping @Sendable () -> Void) {
    let isFree = answers.withLock { answers in
      defer { answers.isAsking = true }
      return !answers.isAsking
    }
    guard isFree else { return }
    let isRunning = asker.run { [self] in
      let isNew = ask(for: names)
      answers.change { $0.isAsking = false }
      if isNew { learnt() }
    }
    if !isRunning { answers.change { $0.isAsking = false } }
  }

  /// Asks the name service, and notes its answer; where it gives none, the last one goes on
  /// counting.
  /// - Returns: whether it is another one for one of them.
  private func ask(for names: Set<String>) -> Bool {
    let users = served(names)
    let until = Instant.now.advanced(seconds: lifetime)
    return answers.withLock { answers in
      var isNew = false
      for name in names {
        let last = answers.all[name]?.isUser ?? false
        let isUser = users?.contains(name) ?? last
        if last != isUser { isNew = true }
        answers.all[name] = (isUser, until)
      }
      return isNew
    }
  }
}
