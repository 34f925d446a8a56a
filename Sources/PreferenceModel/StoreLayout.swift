/// Where each list of a store lies.
public struct StoreLayout: Sendable {
  /// The user's lists: `$XDG_CONFIG_HOME`, or what `-o store=` names.
  public let userDirectory: String
  /// The machine's lists: `/etc/preferences`.
  public let systemDirectory: String
  /// The store's own journal, lock and metadata.
  public let stateDirectory: String
  /// This host in `ByHost` names.
  public let hostIdentifier: String
  /// Whose managed lists are read.
  public let userName: String
  /// The user's list of the global domain, without `.plist`: GNUstep calls it `NSGlobalDomain`.
  public let globalName: String

  /// A layout of absolute paths.
  public init(
    userDirectory: String, systemDirectory: String, stateDirectory: String,
    hostIdentifier: String, userName: String, globalName: String = ".GlobalPreferences"
  ) {
    self.userDirectory = userDirectory
    self.systemDirectory = systemDirectory
    self.stateDirectory = stateDirectory
    self.hostIdentifier = hostIdentifier
    self.userName = userName
    self.globalName = globalName
  }

  /// Every directory that the store reads or writes.
  public var directories: [String] { [userDirectory, systemDirectory, stateDirectory] }

  private static let globalName = ".GlobalPreferences"
  private static let suffix = ".plist"

  /// Where the lists of a place are.
  public func directory(_ place: Place) -> String {
    switch place {
    case .host: userDirectory + "/ByHost"
    case .anyUser: systemDirectory
    case .managed: systemDirectory + "/managed"
    case .user, .arguments, .registered: userDirectory
    }
  }

  private func fileName(_ location: Location) -> String {
    let global = location.place == .user ? globalName : Self.globalName
    let name = location.domain == .global ? global : location.domain.string
    let host = location.place == .host ? ".\(hostIdentifier)" : ""
    return name + host + Self.suffix
  }

  /// Whether a place's lists are read by every user: those of the machine, also where they were named as a
  /// store of their own.
  package func isEverybodys(_ place: Place) -> Bool {
    place.isEverybodys || (userDirectory + "/").hasPrefix(systemDirectory + "/")
  }

  /// The lists of a location, the one whose keys win first; only managed ones are two.
  public func paths(_ location: Location) -> [String] {
    let name = fileName(location)
    guard location.place == .managed else { return [directory(location.place) + "/" + name] }
    let machine = directory(.managed)
    return userName.isEmpty
      ? ["\(machine)/\(name)"] : ["\(machine)/\(userName)/\(name)", "\(machine)/\(name)"]
  }

  /// The list that changes of the location are written to.
  package func path(_ location: Location) -> String {
    directory(location.place) + "/" + fileName(location)
  }

  /// The file whose lock a rewrite of the location's list takes: beside the machine's lists, which several
  /// users' processes rewrite, else in the state directory.
  package func lockPath(_ location: Location) -> String {
    isEverybodys(location.place)
      ? directory(location.place) + "/.lock" : stateDirectory + "/lists.lock"
  }

  /// What we keep beside the location's list.
  package func metadataPath(_ location: Location) -> String {
    "\(stateDirectory)/metadata/\(location.place.rawValue)/\(fileName(location))"
  }

  /// Whether a list can have the domain's name: a file name that does not mean another domain.
  package static func isValid(_ domain: DomainName) -> Bool {
    let name = domain.string.utf8
    return !name.isEmpty && name.count <= 200 && !name.contains(0x2F) && !name.contains(0)
      && domain.string != globalName && domain.string != "." && domain.string != ".."
  }

  /// The directories that hold lists, with the place that each is of.
  public var listDirectories: [(place: Place, path: String)] {
    let managed = directory(.managed)
    let own = userName.isEmpty ? [] : [(place: Place.managed, path: "\(managed)/\(userName)")]
    return [Place.user, .host, .anyUser, .managed].map { ($0, directory($0)) } + own
  }

  /// The location whose list has the file name in a place's directory; nil for other files.
  public func location(ofFile name: String, in place: Place) -> Location? {
    domain(ofFile: name, in: place).map { Location(place, $0) }
  }

  package func domain(ofFile file: String, in place: Place) -> DomainName? {
    let ending = Array(((place == .host ? ".\(hostIdentifier)" : "") + Self.suffix).utf8)
    guard file.utf8.count > ending.count, file.utf8.suffix(ending.count).elementsEqual(ending),
      let name = String(file.utf8.dropLast(ending.count))
    else { return nil }
    if name == (place == .user ? globalName : Self.globalName) { return .global }
    let domain = DomainName(name)
    return Self.isValid(domain) && domain != .global ? domain : nil
  }
}
