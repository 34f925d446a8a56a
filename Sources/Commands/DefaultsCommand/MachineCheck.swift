import Glibc
import PreferenceModel
import PreferenceSchemas
import StoreAccess
import SystemCalls

/// What `check` says of the directory of the machine's lists, beside the contents of its files: names
/// that do not count, and what users cannot read.
struct MachineCheck {
  private let layout: StoreLayout
  /// What is wrong, in the order in which it was found.
  private(set) var complaints: [(path: String, reason: String)] = []

  /// Looks at the directory of the machine's lists. Asks the name service which users there are.
  init(_ layout: StoreLayout) {
    self.layout = layout
    let machine = layout.directory(.anyUser)
    let directories = Self.directories(in: machine)
    let fragments = directories.filter { layout.domain(ofFragments: $0, in: .anyUser) != nil }
    for name in directories where !fragments.contains(name) && !Self.known.contains(name) {
      let near = NearName.find(name.lowercased(), among: Self.known)
      let hint = near.map { "; is \($0) meant?" } ?? ""
      complain("\(machine)/\(name)", "nothing in a directory of this name counts\(hint)")
    }
    check(machine, .anyUser, fragments, for: nil)
    for name in ["profile-signers", "schemas"] { checkFiles(of: "\(machine)/\(name)", for: nil) }
    checkManaged()
  }

  /// The names of directories that count beside those of fragments; and that of the host's lists,
  /// where the directory is used as a store of its own.
  private static let known = ["managed", "schemas", "profile-signers", "ByHost"]

  private mutating func complain(_ path: String, _ reason: String) {
    complaints.append((path, reason))
  }

  // MARK: - Users and groups

  private mutating func checkManaged() {
    let directory = layout.directory(.managed)
    let names = Self.directories(in: directory)
    let kinds = ManagedDirectories(layout).kinds(of: names, asking: .now)
    let users = Set(names.filter { kinds[$0] == .user && !Place.managedFor($0).isOfGroup })
    let local = Account.local(among: users)
    let unknown = users.subtracting(local)
      .subtracting(Account.served(among: users.subtracting(local)) ?? [])
    let spelt = Account.served(among: Set(unknown.map { $0.lowercased() })) ?? []
    for name in names {
      let path = "\(directory)/\(name)"
      if case .either(let isUserKnown)? = kinds[name] {
        complainOfDoubt(name, path, isUserKnown: isUserKnown)
      }
      if unknown.contains(name) {
        let other = name.lowercased()
        complain(
          path,
          spelt.contains(other)
            ? "the name service calls this user \(other), so nothing in it counts"
            : "there is no user \(name) on this machine")
      }
      guard kinds[name] == .user else { continue }
      let place = Place.managedFor(name)
      if place.isOfGroup { checkGroup(String(name.dropFirst()), path) }
      let inner = Self.directories(in: path).filter {
        layout.domain(ofFragments: $0, in: place) != nil
      }
      let isKnown = users.contains(name) && !unknown.contains(name)
      check(path, place, inner, for: isKnown ? Account.named(name) : nil)
    }
    check(directory, .managed, names.filter { kinds[$0] == .fragments }, for: nil)
  }

  private mutating func checkGroup(_ name: String, _ path: String) {
    if Account.knownGroups(among: [name])?.isEmpty == true {
      complain(path, "there is no group \(name) on this machine")
    }
  }

  private mutating func complainOfDoubt(_ name: String, _ path: String, isUserKnown: Bool) {
    guard let domain = layout.domain(ofFragments: name, in: .managed) else { return }
    let fragments =
      isUserKnown
      ? "for all, put the values into \(domain).plist" : "for all, name them as 50-NAME.plist"
    complain(
      path,
      "lists of the user \(name), or fragments of the domain \(domain)? They count for that user "
        + "alone; \(fragments)")
  }

  // MARK: - Files

  /// Checks the names in a directory of lists, and who can read it.
  private mutating func check(
    _ directory: String, _ place: Place, _ fragments: [String], for user: Account?
  ) {
    for directory in [directory] + fragments.map({ "\(directory)/\($0)" }) {
      checkFiles(of: directory, for: user, mayForce: place.isManaged)
    }
    for name in Self.files(in: directory) {
      if let reason = objection(to: name, place) { complain("\(directory)/\(name)", reason) }
    }
  }

  /// Why a file of that name does not count in a place's directory; nil if it does, or it is no
  /// list and no profile.
  private func objection(to name: String, _ place: Place) -> String? {
    if name.hasSuffix(".mobileconfig"), !place.isManaged {
      return "it does not count: profiles lie in managed, or in the directory of a user there"
    }
    guard name.hasSuffix(".plist"), layout.domain(ofFile: name, in: place) == nil else {
      return nil
    }
    return name == "NSGlobalDomain.plist"
      ? "it does not count: the list of the global domain is .GlobalPreferences.plist"
      : "it does not count: no domain can have this name"
  }

  /// Complains about the directory, and files in it, that the user cannot read (nil if users
  /// cannot).
  /// - Parameter mayForce: whether lists in it force values: what a list that cannot be read may
  ///   force is refused to be set. A profile that cannot be read does not count.
  private mutating func checkFiles(
    of directory: String, for user: Account?, mayForce: Bool = false
  ) {
    let files = Self.files(in: directory).map { "\(directory)/\($0)" }
    for path in [directory] + files {
      guard let status = try? Files.status(path) else { continue }
      let needed: mode_t = status.st_mode & S_IFMT == S_IFDIR ? 0o5 : 0o4
      let isOwn = user.map { $0.user == status.st_uid } ?? false
      var bits = isOwn ? status.st_mode >> 6 : status.st_mode
      if bits & needed != needed, !isOwn, user?.groups.contains(status.st_gid) == true {
        bits = status.st_mode >> 3
      }
      guard bits & needed != needed, !Self.hasAccessList(path) else { continue }
      let mode = String(status.st_mode & 0o7777, radix: 8)
      let who = user.map { "the user \($0.name)" } ?? "users"
      let effect =
        mayForce && !path.hasSuffix(".mobileconfig")
        ? "nothing that it may force can be set" : "it does not count"
      complain(path, "\(who) cannot read it (mode \(mode)), so \(effect); chmod a+rX")
    }
  }

  /// Whether an access control list says who may read the file (acl(5)).
  private static func hasAccessList(_ path: String) -> Bool {
    let list = try? ExtendedAttributes.value(of: "system.posix_acl_access", path)
    return list?.isEmpty == false
  }

  private static func files(in directory: String) -> [String] {
    ((try? Files.names(in: directory)) ?? []).sorted().filter {
      !$0.hasPrefix(".") || $0.hasPrefix(".GlobalPreferences.")
    }
  }

  private static func directories(in directory: String) -> [String] {
    ((try? Files.names(in: directory, withDirectories: true)) ?? []).sorted().filter {
      !$0.hasPrefix(".") && Files.isDirectory("\(directory)/\($0)")
    }
  }
}
