import PreferenceModel
import StoreAccess
import SystemCalls

extension StoreLayout {
  func domains(in place: Place) throws(SystemError) -> Set<DomainName> {
    // A directory that has the name of a list counts: it is a list that cannot be read.
    guard hasLists(place) else { return [] }
    if place == .schema {
      var names: [String] = []
      // A directory that cannot be listed has no schemas, as for a look-up.
      for path in schemaDirectories { names += (try? Files.names(in: path)) ?? [] }
      return Set(names.compactMap { domain(ofFile: $0, in: place) })
    }
    let path = directory(place)
    var mounts: [MountInformation.Mount]?
    let names = try Files.names(in: path, withDirectories: true) { name in
      let table = mounts ?? MountInformation.all
      mounts = table
      return !leadsNowhere("\(path)/\(name)", table)
    }
    var found = Set((names ?? []).compactMap { domain(ofFile: $0, in: place) })
    replaceContained(in: &found, of: place)
    return found
  }

  /// Whether a symbolic link leads to no file, so that it is no list. One that may hang is not
  /// followed, and counts as a list; one that leads to itself is a list that cannot be read.
  /// - Parameter mounts: the mount table.
  func leadsNowhere(
    _ path: String, _ mounts: @autoclosure () -> [MountInformation.Mount] = MountInformation.all
  ) -> Bool {
    guard let target = Files.linkTarget(path) else { return false }
    let whole = target.hasPrefix("/") ? target : "\(Files.parent(of: path))/\(target)"
    guard !MountInformation.mayHang(whole, mounts()) else { return false }
    do throws(SystemError) { return try Files.status(path) == nil } catch { return false }
  }
}
