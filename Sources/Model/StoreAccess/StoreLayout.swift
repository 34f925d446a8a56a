import PreferenceModel
import SystemCalls

/// The paths of a store: its lists, their locks and metadata, and its directories.
public struct StoreLayout: Sendable {
  /// The directory of the user's lists: `$XDG_CONFIG_HOME`, or the one that `-o store=` names.
  public let userDirectory: String
  /// The directory of the machine's lists: `/etc/preferences`.
  public let systemDirectory: String
  /// The directory of the store's journal, lock and metadata.
  public let stateDirectory: String
  /// The identifier of this host in the names of `ByHost` lists.
  public let hostIdentifier: String
  /// The user whose managed lists are read; empty where only the machine's are.
  public let userName: String
  /// True if the system does not know the user's name now, and there are managed lists of single
  /// users. One of them may be this user's, so nothing of this user's preferences can be read.
  public private(set) var isUserUnknown = false
  /// The file name of the user's list of the global domain, without `.plist`. GNUstep uses
  /// `NSGlobalDomain`.
  public let globalName: String
  /// The directories of vendors' lists, the one that counts first.
  public let vendorDirectories: [String]
  /// The directories of schemas, the one that counts first.
  public let schemaDirectories: [String]
  /// The directories of schemas of GSettings, the one that counts first.
  public let settingsDirectories: [String]
  private let hostDirectory: String
  private let managedDirectory: String
  private let ownManagedDirectory: String
  /// The containers of a Mac's sandboxed programs, which have lists of their own.
  private let containers: Containers

  /// Creates a layout from absolute paths. Cost: none, but for a Mac's home (`Containers`).
  public init(
    userDirectory: String, systemDirectory: String, stateDirectory: String,
    hostIdentifier: String, userName: String, globalName: String = ".GlobalPreferences",
    vendorDirectories: [String] = [], schemaDirectories: [String] = [],
    settingsDirectories: [String] = []
  ) {
    self.userDirectory = userDirectory
    self.systemDirectory = systemDirectory
    self.stateDirectory = stateDirectory
    self.hostIdentifier = hostIdentifier
    self.userName = userName
    self.globalName = globalName
    self.vendorDirectories = vendorDirectories
    self.schemaDirectories = schemaDirectories
    self.settingsDirectories = settingsDirectories
    hostDirectory = userDirectory + "/ByHost"
    managedDirectory = systemDirectory + "/managed"
    ownManagedDirectory = managedDirectory + "/" + userName
    containers = Containers(beside: userDirectory)
  }

  /// Whether the store is the user's own, and not one that is mounted beside it, such as a backup.
  /// Waits for disks.
  package var isUsersOwn: Bool {
    Files.canonicalPath(userDirectory) == Files.canonicalPath(Surroundings().userDirectory)
  }

  /// Notes that the user's name may be known later.
  mutating func noteUnknownUser() {
    let names = try? Files.names(in: managedDirectory, withDirectories: true)
    let directories = (names ?? []).filter { Files.isDirectory("\(managedDirectory)/\($0)") }
    let kinds = ManagedDirectories(self).kinds(of: directories, asking: .never)
    isUserUnknown = kinds.values.contains { $0 != .fragments }
  }

  private static let globalName = ".GlobalPreferences"
  private static let suffix = ".plist"

  /// The directory of a place's lists. The managed lists of one user are in a directory in that of
  /// the machine's.
  public func directory(_ place: Place) -> String {
    switch place {
    case .host: hostDirectory
    case .anyUser: systemDirectory
    case .managed: managedDirectory
    case .ownManaged: ownManagedDirectory
    case .managedFor(let user): "\(managedDirectory)/\(user)"
    case .cloud: stateDirectory + "/Cloud"
    case .cloudRecords: stateDirectory + "/CloudRecords"
    // The one that packages use.
    case .vendor: vendorDirectories.last ?? "/usr/share/preferences"
    case .schema: schemaDirectories.last ?? "/usr/share/preferences/schemas"
    case .user, .arguments, .language, .registered: userDirectory
    }
  }

  /// Whether the place can have lists of its own. The place of the user's own managed lists cannot,
  /// where the system does not know the user's name; the vendors' place has additions alone.
  public func hasLists(_ place: Place) -> Bool {
    switch place {
    case .ownManaged: !userName.isEmpty
    case .vendor: false
    default: true
    }
  }

  /// The place of the managed lists of a user: `.ownManaged` for the user of this store.
  public func managedPlace(of user: String) -> Place {
    user == userName ? .ownManaged : .managedFor(user)
  }

  /// The directory of the certificates whose owners may sign profiles. Without certificates in it,
  /// profiles need no signature.
  public var signersDirectory: String { systemDirectory + "/profile-signers" }

  /// The name of the location's list.
  private func fileName(_ location: Location) -> String {
    let global = location.place == .user ? globalName : Self.globalName
    let name = location.domain == .global ? global : location.domain.string
    return name + (location.place == .host ? "." + hostIdentifier : "") + Self.suffix
  }

  /// Whether every user reads the lists of the place. They do for the machine's lists, also where
  /// the directory of those is used as a store of its own.
  package func isMachineWide(_ place: Place) -> Bool {
    if place == .cloud || place == .cloudRecords { return false }
    return place.isMachineWide || (userDirectory + "/").hasPrefix(systemDirectory + "/")
  }

  /// The path of the location's list. Cost: as `list`.
  public func path(_ location: Location) -> String { list(at: location).path }

  /// The path of the location's list, and the container of a Mac's sandboxed program that it lies
  /// in, below which no link may be followed; nil if it lies in none. Cost: none, unless
  /// `needsDisk(for:)`: then a look at each directory that it may be in.
  public func list(at location: Location) -> (path: String, container: String?) {
    let file = fileName(location)
    guard let container = containers.container(of: location, file: file) else {
      return (outerPath(location, file), nil)
    }
    return ("\(container.directory(location.place))/\(file)", container.root)
  }

  /// Whether only the disk can tell where the location's list is: of schemas, and of domains that
  /// may have a list in the container of another one.
  public func needsDisk(for location: Location) -> Bool {
    location.place == .schema || containers.needsDisk(for: location)
  }

  /// The path of the location's list outside of containers.
  private func outerPath(_ location: Location, _ file: String) -> String {
    let last = "\(directory(location.place))/\(file)"
    guard location.place == .schema else { return last }
    // Of several schemas the first counts, whole.
    let paths = schemaDirectories.flatMap { directory in
      schemaNames(of: location.domain).map { "\(directory)/\($0)" }
    }
    return paths.dropLast().first { (try? Files.linkStatus($0)) != nil } ?? last
  }

  /// The directories that the place's lists may be in.
  package func directories(_ place: Place) -> [String] {
    place == .schema && !schemaDirectories.isEmpty ? schemaDirectories : [directory(place)]
  }

  /// Whether the location's list may lie in the container of a sandboxed program.
  package func mayBeContained(_ location: Location) -> Bool { containers.mayHave(location) }

  /// Replaces the domains of containers, among those with a list in the place's own directory, by
  /// those with a list in a container.
  package func replaceContained(in found: inout Set<DomainName>, of place: Place) {
    containers.replaceDomains(in: &found, of: place) { domain(ofFile: $0, in: place) }
  }

  /// The names that the location's list may have.
  package func fileNames(_ location: Location) -> [String] {
    location.place == .schema ? schemaNames(of: location.domain) : [fileName(location)]
  }

  /// The names that the schema of a domain may have, the one that counts first. That of the global
  /// domain is also found under the name by which everything else calls this domain.
  private func schemaNames(of domain: DomainName) -> [String] {
    let name = fileName(Location(.schema, domain))
    return domain == .global ? [domain.string + Self.suffix, name] : [name]
  }

  /// The file that is locked while the location's list is rewritten. For the machine's lists it
  /// lies beside them, because processes of several users rewrite them; else it is in the state
  /// directory.
  package func lockPath(_ location: Location) -> String {
    isMachineWide(location.place)
      ? directory(location.place) + "/.lock" : stateDirectory + "/lists.lock"
  }

  /// The file of what we keep beside the location's list.
  package func metadataPath(_ location: Location) -> String {
    "\(stateDirectory)/metadata/\(location.place.rawValue)/\(fileName(location))"
  }

  /// The directories that hold lists, each with its place. Cost: some calls for each container.
  public var listDirectories: [(place: Place, path: String)] {
    SearchList.persistentPlaces.filter(hasLists).flatMap { place in
      ([directory(place)] + containers.directories(place)).map { (place, $0) }
    } + schemaDirectories.map { (.schema, $0) }
  }

  /// The location of the list with that file name in a place's directory; nil where the file is not
  /// a list of the place.
  public func location(ofFile name: String, in place: Place) -> Location? {
    domain(ofFile: name, in: place).map { Location(place, $0) }
  }

  /// The domain whose fragments are in the directory of that name, `<domain>.d`; nil where it is no
  /// such directory.
  public func domain(ofFragments name: String, in place: Place) -> DomainName? {
    guard name.hasSuffix(Self.fragments) else { return nil }
    return domain(ofFile: name.dropLast(Self.fragments.count) + Self.suffix, in: place)
  }

  private static let fragments = ".d"

  /// The domain of the list with that file name; nil where the file is not a list of the place.
  package func domain(ofFile file: String, in place: Place) -> DomainName? {
    let ending = Array(((place == .host ? ".\(hostIdentifier)" : "") + Self.suffix).utf8)
    guard file.utf8.count > ending.count, file.utf8.suffix(ending.count).elementsEqual(ending),
      let name = String(file.utf8.dropLast(ending.count))
    else { return nil }
    if name == (place == .user ? globalName : Self.globalName) { return .global }
    let domain = DomainName(name)
    if place == .schema, domain == .global { return domain }
    return domain.canNameList && domain != .global ? domain : nil
  }
}
