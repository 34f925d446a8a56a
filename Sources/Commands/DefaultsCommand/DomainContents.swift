import PreferenceModel
import PropertyList

/// What places have of many domains. The owner is asked for a listing of each place, and once for
/// each 64 of the domains that are there: thousands of new domains take no more messages than one.
struct DomainContents {
  /// In the order of the places.
  private var snapshots: [DomainName: [LocationSnapshot]] = [:]

  private static let mostAtOnce = 64

  /// Reads the domains. Throws where a list cannot be read.
  init(
    of domains: [DomainName], in places: [Place], _ store: some PersistentPlaces
  ) throws(EngineError) {
    let there = try Self.listed(places, store)
    var rest = domains[...].filter { there?.contains($0) ?? true }[...]
    while !rest.isEmpty {
      let next = rest.prefix(Self.mostAtOnce)
      rest = rest.dropFirst(Self.mostAtOnce)
      let locations = next.flatMap { domain in places.map { Location($0, domain) } }
      for (location, snapshot) in zip(locations, try store.snapshots(of: locations)) {
        snapshots[location.domain, default: []].append(snapshot)
      }
    }
  }

  /// The domains of the places; nil where one cannot be listed, though its lists may be readable.
  private static func listed(
    _ places: [Place], _ store: some PersistentPlaces
  ) throws(EngineError) -> Set<DomainName>? {
    var there: Set<DomainName> = []
    do throws(EngineError) {
      for place in places { there.formUnion(try store.domains(in: place)) }
    } catch {
      if error.reason == .ownerGone { throw error }
      return nil
    }
    return there
  }

  /// The key's value in the first place that has it; nil if none has.
  func find(_ key: Key, in domain: DomainName) -> Value? {
    snapshots[domain]?.lazy.compactMap { $0[key] }.first
  }
}
