import Glibc
import PreferenceModel
import PreferenceProtocol
import SystemCalls

/// What the domain of a command line means: which store, which domain of it, and in which place.
struct Target {
  /// The store's directory; nil: the user's own.
  var directory: String?
  var domain: DomainName
  /// The one place; nil: the user's, the host's first, as the rules of writes have it.
  var place: Place?
  /// The domain in messages.
  var name: String
  /// It was named by its list's path: who does that reads the list in the next line.
  var isPath = false
  /// Whether a change returns when the list on the disk has it: `--sync`, or `DEFAULTS_SYNC=1`.
  var isSynchronous = false

  /// The global domain in messages about a key.
  var pairName: String { domain == .global && directory == nil ? Self.anyApplication : name }

  private static let anyApplication = "kCFPreferencesAnyApplication"
  private static let globalName = "Apple Global Domain"

  /// Takes the domain from the words: a name, `-app NAME`, `-g`, or an absolute path.
  init(_ arguments: inout Arguments) throws(Refusal) {
    let place: Place? = arguments.options.isCurrentHost ? .host : nil
    let word = try arguments.take()
    switch word {
    case "-g", "-globalDomain": self.init(domain: .global, place: place)
    case "-app":
      let application = try Application(try arguments.take())
      self.init(domain: DomainName(application.domain), place: place, name: application.domain)
    case _ where word.hasPrefix("/"): self.init(path: word)
    default: self.init(domain: Self.domain(named: word), place: place)
    }
    isSynchronous = arguments.options.isSynchronous
  }

  /// The domain of a name; the global one has several. A list's name means its domain.
  static func domain(named name: String) -> DomainName {
    if name.hasSuffix(".plist"), name.utf8.count > 6 {
      return domain(named: String(name.dropLast(6)))
    }
    return [globalName, anyApplication, ".GlobalPreferences"].contains(name)
      ? .global : DomainName(name)
  }

  /// A domain of the user's store.
  init(domain: DomainName, place: Place?, name: String? = nil) {
    (self.domain, self.place) = (domain, place)
    self.name = name ?? (domain == .global ? Self.globalName : domain.string)
  }

  /// A list by its path, with or without `.plist`: a domain of the directory that it is in. Where that is
  /// a place of the user's store, it is that place, and where a Mac has such a directory and this machine
  /// has not, the place that it is the name of.
  private init(path: String) {
    let surroundings = Surroundings()
    let stem = path.hasSuffix(".plist") ? String(path.dropLast(6)) : path
    let slash = stem.lastIndex(of: "/") ?? stem.startIndex
    let parent = slash == stem.startIndex ? "/" : String(stem[..<slash])
    var file = String(stem[stem.index(after: slash)...])
    var place = Self.place(of: parent, surroundings)
    let ending = "." + surroundings.hostIdentifier
    if place == .host {
      // Another host's list is one of that directory, and no place here.
      if file.hasSuffix(ending) { file = String(file.dropLast(ending.count)) } else { place = nil }
    }
    let domain = file == ".GlobalPreferences" ? DomainName.global : DomainName(file)
    self.init(domain: domain, place: place ?? .user, name: path)
    directory = place == nil ? parent : nil
    isPath = true
  }

  /// The place of the user's store that a directory is; nil: none.
  private static func place(of directory: String, _ surroundings: Surroundings) -> Place? {
    let layout = StoreLayout(surroundings)
    for place in SearchList.persistentPlaces where isSame(directory, layout.directory(place)) {
      return place
    }
    let home = getenv("HOME").map { String(cString: $0) } ?? ""
    let macs: [String: Place] = [
      home + "/Library/Preferences": .user, "/Library/Preferences": .anyUser,
    ]
    return Files.isDirectory(directory) ? nil : macs[directory]
  }

  private static func isSame(_ path: String, _ other: String) -> Bool {
    path == other || Files.canonicalPath(path) == Files.canonicalPath(other)
  }

  /// The locations that it reads from, first hit first.
  var locations: [Location] {
    if let place { return [Location(place, domain)] }
    return [Location(.host, domain), Location(.user, domain)]
  }
}
