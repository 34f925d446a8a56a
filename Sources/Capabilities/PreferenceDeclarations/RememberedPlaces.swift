import PreferenceModel
import PropertyList

/// Places that are asked for each key and each list once: the members of a dictionary are many paths
/// of one key, and each question to an owner brings the whole dictionary. What comes later is not
/// noticed, so this is for one plan or report.
///
/// Threads: those of one call.
final class RememberedPlaces: StoredPlaces {
  private struct Question: Hashable {
    let key: Key
    let locations: [Location]
  }

  private let places: any StoredPlaces
  private var first: [Question: LocatedValue?] = [:]
  private var existing: [Location: Bool] = [:]

  init(_ places: any StoredPlaces) { self.places = places }

  func find(_ key: Key, at location: Location) throws(EngineError) -> StoredValue? {
    try findFirst(key, in: [location])?.stored
  }

  func findFirst(_ key: Key, in locations: [Location]) throws(EngineError) -> LocatedValue? {
    let question = Question(key: key, locations: locations)
    if let known = first[question] { return known }
    let located = try places.findFirst(key, in: locations)
    first[question] = .some(located)
    return located
  }

  func keys(at location: Location) throws(EngineError) -> [Key] { try places.keys(at: location) }

  func exists(_ location: Location) throws(EngineError) -> Bool {
    if let known = existing[location] { return known }
    let isThere = try places.exists(location)
    existing[location] = isThere
    return isThere
  }

  /// What programs read for the key of a path where a place lacks it.
  /// - Parameter inherited: says so; nil means the first of the lists that follow the place in the
  ///   search list, without suites.
  func inherited(
    _ path: DeclaredPath, besides place: Place, _ inherited: Declarations.Inherited?
  ) throws(EngineError) -> Value? {
    if let inherited { return try inherited(path.key, path.domain, place) }
    let all = SearchList.forced(path.domain) + SearchList.stored(path.domain, suites: [])
    let own = Location(place, path.domain)
    let rest = all.drop { $0 != own }.dropFirst()
    return try findFirst(path.key, in: rest.filter { place.isOwn || !$0.place.isOwn })?.stored.value
  }
}
