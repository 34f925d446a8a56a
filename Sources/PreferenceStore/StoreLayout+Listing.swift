import PreferenceModel
import SystemCalls

extension StoreLayout {
  /// The domains that have a list in the place.
  func domains(in place: Place) throws(SystemError) -> Set<DomainName> {
    var names = try Files.names(in: directory(place)) ?? []
    if place == .managed, !userName.isEmpty {
      names += try Files.names(in: "\(directory(place))/\(userName)") ?? []
    }
    return Set(names.compactMap { domain(ofFile: $0, in: place) })
  }
}
