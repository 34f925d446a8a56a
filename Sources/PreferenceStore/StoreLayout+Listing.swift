import PreferenceModel
import SystemCalls

extension StoreLayout {
  /// The domains that have a list in the place.
  func domains(in place: Place) throws(SystemError) -> Set<DomainName> {
    // A directory that has the name of a list counts: it is a list that cannot be read.
    guard hasLists(place) else { return [] }
    if place == .schema {
      var names: [String] = []
      // A directory that cannot be listed has no schemas, as for a look-up.
      for path in schemaDirectories { names += ((try? Files.names(in: path)) ?? nil) ?? [] }
      return Set(names.compactMap { domain(ofFile: $0, in: place) })
    }
    let names = try Files.names(in: directory(place), withDirectories: true) ?? []
    return Set(names.compactMap { domain(ofFile: $0, in: place) })
  }
}
