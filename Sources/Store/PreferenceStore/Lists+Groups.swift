import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

// What the directories of the user's groups force. It is added to the user's own managed lists, which
// override it, as they override profiles.

extension Lists {
  /// The places of the groups' directories that counted at the last look.
  public var groupPlaces: Set<Place> { fragments.groups.places }

  /// When the additions of the user's own managed lists must be looked at, so that the name service
  /// is asked again which groups the user is in; nil if not before something else happens.
  public var groupsDeadline: Instant? { fragments.groups.deadline }

  /// What identifies the state of the groups' directories, and of the membership.
  func groupsState(_ asking: FragmentReader.Asking) -> [String] {
    guard let groups = groups() else { return ["groups: not known"] }
    return groups.flatMap { group in
      let place = Place.managedFor(group)
      return [group] + (profiles?.state(of: place) ?? [])
        + fragments.state(of: place, isGroup: true, asking)
    }
  }

  /// Adds what the user's groups force to what the user's own profiles do, which count first. Of
  /// several groups the last one in byte order counts.
  func addGroups(to settings: inout PlaceAdditions, _ asking: FragmentReader.Asking) {
    guard let groups = groups() else {
      settings.obstacle = EngineError(
        .unreadable,
        "managed lists of groups cannot be read, because the name service has not said yet which "
          + "groups the user is in; it is asked again every 5 s")
      return
    }
    var all: [DomainName: [Key: StoredValue]] = [:]
    for group in groups {
      let place = Place.managedFor(group)
      var found = profiles?.settings(of: place, at: .now) ?? PlaceAdditions()
      fragments.add(place, to: &found, isGroup: true, asking)
      for (domain, values) in found.values {
        all[domain, default: [:]].merge(values) { $1 }
      }
      settings.unreadable.merge(found.unreadable) { own, _ in own }
      settings.once += found.once
      settings.reports += found.reports
      settings.until = [settings.until, found.until].compactMap { $0 }.min()
      settings.lastEnd = [settings.lastEnd, found.lastEnd].compactMap { $0 }.max()
    }
    for (domain, values) in all {
      settings.values[domain, default: [:]].merge(values) { own, _ in own }
    }
  }

  /// A thread asks the name service where that is due, and the place is looked at again when it has.
  private func groups() -> [String]? {
    fragments.groups.directories { [weak self] in self?.noteDoubtful(.ownManaged) }
  }
}
