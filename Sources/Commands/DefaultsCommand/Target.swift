import Glibc
import PreferenceModel
import StoreAccess
import SystemCalls

/// What the command line names: a store, a domain in it, and the places of the domain.
struct Target {
  /// The directory of the store; nil means the user's own store.
  var directory: String?
  var domain: DomainName
  /// The only place to use; nil means the user's own places, first the cloud.
  var place: Place?
  /// The name of the domain in messages.
  var name: String
  /// Whether the command line names the list by its path. The caller can then expect that the list
  /// on the disk has a change when the command returns.
  var isPath = false
  /// Whether the command returns when the list on the disk has the change: `--sync`, or
  /// `DEFAULTS_SYNC=1`.
  var isSynchronous = false
  /// Why the command changes something: `--because`.
  var because = ""

  /// The name of the domain in messages about a key.
  var pairName: String { domain == .global && directory == nil ? Self.anyApplication : name }

  private static let anyApplication = "kCFPreferencesAnyApplication"
  private static let globalName = "Apple Global Domain"

  /// Parses the domain of a command line: a name, `-app NAME`, `-g`, or an absolute path.
  init(_ arguments: inout Arguments) throws(Refusal) {
    let place: Place? = arguments.options.isCurrentHost ? .host : nil
    let word = try arguments.removeNext()
    switch word {
    case "-g", "-globalDomain": self.init(domain: .global, place: place)
    case "-app":
      let application = try Application(try arguments.removeNext())
      self.init(domain: DomainName(application.domain), place: place, name: application.domain)
    case _ where word.hasPrefix("/"): self.init(path: word)
    default: self.init(domain: DomainName(named: word), place: place)
    }
    isSynchronous = arguments.options.isSynchronous
    because = arguments.options.because
  }

  /// Creates a target in the user's own store.
  /// - Parameter name: the name in messages; nil means the name of the domain.
  init(domain: DomainName, place: Place?, name: String? = nil) {
    (self.domain, self.place) = (domain, place)
    self.name = (name ?? (domain == .global ? Self.globalName : domain.string)).printable()
  }

  /// Creates the target of a list that is named by its path, with or without `.plist`.
  ///
  /// The directory of the list is the store, and the list is a domain in it. But if the directory
  /// is the directory of a place of the user's own store, the target is the domain in that place.
  /// The preference directories of macOS, where this machine does not have them, also stand for
  /// their places, those of managed lists among them.
  private init(path: String) {
    let surroundings = Surroundings()
    let stem = path.hasSuffix(".plist") ? String(path.dropLast(6)) : path
    let slash = stem.lastIndex(of: "/") ?? stem.startIndex
    let parent = Self.present(
      slash == stem.startIndex ? "/" : String(stem[..<slash]), surroundings)
    var file = String(stem[stem.index(after: slash)...])
    var place = Self.place(of: parent, surroundings)
    let ending = "." + surroundings.hostIdentifier
    if place == .host {
      // The list of another host is a list of that directory, and not in a place of this host.
      if file.hasSuffix(ending) { file = String(file.dropLast(ending.count)) } else { place = nil }
    }
    let domain = file == ".GlobalPreferences" ? DomainName.global : DomainName(file)
    self.init(domain: domain, place: place ?? .user, name: path)
    directory = place == nil ? parent : nil
    isPath = true
  }

  /// Returns the place of the user's own store that has this directory; nil if there is none.
  private static func place(of directory: String, _ surroundings: Surroundings) -> Place? {
    let layout = StoreLayout(surroundings)
    for place in SearchList.persistentPlaces
    where layout.hasLists(place) && isSame(directory, layout.directory(place)) {
      return place
    }
    if let user = user(of: directory, layout) { return layout.managedPlace(of: user) }
    let library = "/Library/Preferences"
    guard directory.hasSuffix(library), !Files.isDirectory(directory) else { return nil }
    if directory == library { return .anyUser }
    return directory == Surroundings.home + library ? .user : nil
  }

  /// Returns the user whose managed lists are in this directory; nil if it is no user's.
  private static func user(of directory: String, _ layout: StoreLayout) -> String? {
    let name = directory.split(separator: "/").last.map(String.init) ?? ""
    guard !name.isEmpty, !name.hasPrefix("."),
      isSame(Files.parent(of: directory), layout.directory(.managed))
    else { return nil }
    let kind = ManagedDirectories(layout).kinds(of: [name], asking: .now)[name]
    return kind == .fragments ? nil : name
  }

  /// Returns the directory that a directory of macOS's managed lists stands for on a machine without
  /// those; any other one as it is.
  private static func present(_ directory: String, _ surroundings: Surroundings) -> String {
    let managed = "/Library/Managed Preferences"
    guard directory == managed || directory.hasPrefix(managed + "/"), !Files.isDirectory(managed)
    else { return directory }
    return StoreLayout(surroundings).directory(.managed)
      + String(directory.dropFirst(managed.count))
  }

  private static func isSame(_ path: String, _ other: String) -> Bool {
    path == other || Files.canonicalPath(path) == Files.canonicalPath(other)
  }

  /// The locations that a read asks, in this order; the first that has the key counts.
  var locations: [Location] {
    if let place { return [Location(place, domain)] }
    return Place.own.map { Location($0, domain) }
  }
}
