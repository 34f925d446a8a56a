import PreferenceModel
import SystemCalls

/// The containers of sandboxed programs, where the directory of the user's lists is a Mac's
/// `Library/Preferences`.
///
/// A program in the container ID has its list in `Containers/ID/Data/Library/Preferences` beside
/// that directory, and one of the application group ID in `Group Containers/ID/Library/Preferences`.
/// A container has the lists of the domain ID, whether or not there is one, and of each domain
/// `ID.*` whose list is there. It never has one of this project's own domains.
///
/// A sandboxed program can put anything into its container, so no link is followed there: it must
/// not choose which file outside is read or replaced.
///
/// Which containers there are is found out once, when this is made, so that a location keeps its
/// list: two listings of directories, and none for other stores. Memory: a name for each container.
struct Containers: Sendable {
  /// A container, or the container of a group.
  struct Container: Sendable {
    /// Its directory, below which no link is followed.
    let root: String
    /// The directory in it that lists of the user's place lie in.
    let lists: String

    func directory(_ place: Place) -> String { place == .host ? lists + "/ByHost" : lists }

    /// Calls the body with a path in the directory of the place's lists. Throws ELOOP where a link
    /// leads there.
    func withPath<Result>(
      of file: String, _ place: Place, _ body: (String) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      try Descriptor.directory(directory(place), below: root).withPath(of: file, body)
    }

    func has(_ file: String, _ place: Place) -> Bool {
      let status = try? withPath(of: file, place) { path throws(SystemError) in
        try Files.linkStatus(path)
      }
      return (status ?? nil) != nil
    }

    func names(_ place: Place) -> [String] {
      let names = try? withPath(of: "", place) { path throws(SystemError) in
        try Files.names(in: path, withDirectories: true)
      }
      return (names ?? nil) ?? []
    }

    func leadsThroughLink(_ place: Place) -> Bool {
      do throws(SystemError) {
        try withPath(of: "", place) { _ throws(SystemError) in }
        return false
      } catch {
        return error.errno == .linkLoop
      }
    }
  }

  /// By ID.
  private var all: [String: Container] = [:]

  init(beside userDirectory: String) {
    guard userDirectory.hasSuffix("/Library/Preferences") else { return }
    let library = Files.parent(of: userDirectory)
    // Of two that have one ID, the program's own counts.
    for (kind, inner) in [("Group Containers", ""), ("Containers", "/Data")] {
      let directory = "\(library)/\(kind)"
      let names = (try? Files.names(in: directory, withDirectories: true)) ?? nil
      for id in names ?? [] where DomainName(id).canNameList {
        let root = "\(directory)/\(id)"
        all[id] = Container(root: root, lists: "\(root)\(inner)/Library/Preferences")
      }
    }
  }

  /// The directories of the place's lists in containers, as far as no link leads there.
  func directories(_ place: Place) -> [String] {
    guard place == .user || place == .host else { return [] }
    return all.values.filter { !$0.leadsThroughLink(place) }.map { $0.directory(place) }
  }

  /// The container that has the location's list; nil if none has. Cost: none, unless
  /// `needsDisk(for:)`.
  /// - Parameter file: the name of the list.
  func container(of location: Location, file: String) -> Container? {
    candidates(for: location).first { id, container in
      id == location.domain.string || container.has(file, location.place)
    }?.container
  }

  /// Whether only the disk can tell which container has the location's list.
  func needsDisk(for location: Location) -> Bool {
    candidates(for: location).first.map { $0.id != location.domain.string } ?? false
  }

  /// Whether a container may have the location's list.
  func mayHave(_ location: Location) -> Bool { !candidates(for: location).isEmpty }

  /// Replaces, among the domains that have a list in the place outside of containers, those of
  /// containers by those that have a list there. Cost: a listing of a directory of each container.
  /// - Parameter domain: the domain of the list with that file name.
  func replaceDomains(
    in found: inout Set<DomainName>, of place: Place, by domain: (String) -> DomainName?
  ) {
    guard !all.isEmpty, place == .user || place == .host else { return }
    found = found.filter { all[$0.string] == nil || !mayHave(Location(place, $0)) }
    for container in all.values {
      for domain in container.names(place).compactMap(domain)
      where candidates(for: Location(place, domain)).contains(where: {
        $0.container.root == container.root
      }) {
        found.insert(domain)
      }
    }
  }

  /// The containers that may have the location's list, the one that counts first: that of the domain
  /// itself, else those of `ID.*`, the longest ID first.
  private func candidates(for location: Location) -> [(id: String, container: Container)] {
    guard !all.isEmpty, location.place == .user || location.place == .host,
      location.domain != .global
    else { return [] }
    var id = location.domain.string
    if id.hasPrefix(DomainName.settings.string) { return [] }
    if let own = all[id] { return [(id, own)] }
    var found: [(id: String, container: Container)] = []
    while let dot = id.lastIndex(of: ".") {
      id = String(id[..<dot])
      if let container = all[id] { found.append((id, container)) }
    }
    return found
  }
}
