import PreferenceModel
import PropertyList
import SystemCalls

// Configuration profiles. What they force is read beside the lists of their place, and is in no
// list, journal or `Domain`: readers get both together.

extension Store.State {
  /// What the profiles of the location's place force in the location, as far as they have been
  /// read.
  func forced(_ location: Location) -> [Key: StoredValue] {
    guard hasForced else { return [:] }
    return managed[location.place]?.settings.forced[location.domain] ?? [:]
  }

  /// The location as readers see it, with what profiles force; nil if its list has not been read.
  func shown(_ location: Location) -> DomainSnapshot? {
    guard let listed = domains[location]?.snapshot else { return nil }
    return location.place.hasProfiles ? listed.with(profiles: forced(location)) : listed
  }
}

extension Store {
  /// Sets the body that is called when the profiles of a managed place are to be read
  /// (`loadRequestedProfiles`), and when those of another user have been read for the first time,
  /// so that their directory is watched. Any thread calls it; it must not wait.
  public func onNewPlace(_ body: @escaping @Sendable () -> Void) {
    placeAdded.withLock { $0 = body }
  }

  /// The managed places whose profiles have been read: those that were asked for.
  public var managedPlaces: [Place] { state.withLock { Array($0.managed.keys) } }

  /// Reads the profiles of the place, unless that has been done, and logs those that are refused.
  /// It waits for a disk, under the lock `readingProfiles`: other threads that need the profiles
  /// wait for it, and do not read them too.
  public func loadProfiles(of place: Place) {
    guard state.withLock({ $0.managed[place] == nil }) else { return }
    readingProfiles.withLock { _ in readProfiles(of: place) }
  }

  /// Called under `readingProfiles`.
  private func readProfiles(of place: Place) {
    guard state.withLock({ $0.managed[place] == nil }) else { return }
    let read = Managed(
      state: profiles?.state(of: place) ?? [],
      settings: profiles?.settings(of: place, at: .now) ?? ManagedSettings())
    state.withLock { $0.managed[place] = read }
    report(read.settings, since: ManagedSettings())
    if case .managedFor = place { placeAdded.withLock { $0 }?() }
  }

  /// Has the writer read the profiles of the place, if nobody has read them.
  func requestProfiles(of place: Place) {
    let isNew = state.withLock { state in
      state.managed[place] == nil && state.requested.insert(place).inserted
    }
    if isNew { placeAdded.withLock { $0 }?() }
  }

  /// Reads the profiles that were requested, and publishes the domains that they have. The thread
  /// of `checkpoint` calls it.
  public func loadRequestedProfiles() {
    let requested = state.withLock { state in
      defer { state.requested = [] }
      return state.requested.filter { state.managed[$0] == nil }
    }
    for place in requested {
      loadProfiles(of: place)
      state.withLock { state in
        let domains = state.managed[place]?.settings.forced.keys.map { $0 } ?? []
        let items = domains.map { Changeset.Item(Location(place, $0), .createDomain) }
        state.enqueue(
          Publication(Changeset(items, time: .now), source: ChangeSource(.profile)),
          withProfiles: true)
      }
    }
  }

  /// Reads the profiles again of each place where a file has changed or a profile has ended, and
  /// publishes what became of the keys. The caller then notifies observers. Cost: for each place
  /// that has been asked for, a look at its files (`ProfileReading.state`). The writer's thread
  /// calls it.
  public func refreshProfiles() {
    guard let profiles else { return }
    for (place, known) in state.withLock({ $0.managed }) {
      let now = Timestamp.now
      let present = profiles.state(of: place)
      let isOver = known.settings.until.map { $0 <= now } ?? false
      guard present != known.state || isOver else { continue }
      let read = Managed(state: present, settings: profiles.settings(of: place, at: now))
      adopt(read, known, place)
      report(read.settings, since: known.settings)
    }
  }

  /// When the first of the profiles ends; nil: none ends.
  public var profilesEnd: Timestamp? {
    state.withLock { $0.managed.values.compactMap(\.settings.until).min() }
  }

  /// The values that profiles set once for the user of this store, as far as they have been read.
  public var onceSettings: [OnceSetting] {
    state.withLock { state in Place.forced.flatMap { state.managed[$0]?.settings.once ?? [] } }
  }

  /// A report of each profile of the search list's places, and of other managed places that have
  /// been read (see `ManagedSettings.reports`). Waits for a disk where the first have not been
  /// read.
  public var profileReports: [ValueDictionary] {
    for place in Place.forced { loadProfiles(of: place) }
    return state.withLock { state in
      Place.forced.flatMap { state.managed[$0]?.settings.reports ?? [] }
        + state.managed.filter { !$0.key.isForced }.flatMap(\.value.settings.reports)
    }
  }

  /// Returns the report of a profile with these bytes, which is not installed; nil where the store
  /// has no profiles.
  public func check(profile bytes: [UInt8]) -> ValueDictionary? { profiles?.check(bytes) }

  /// Logs the profiles that are refused and were not before.
  private func report(_ settings: ManagedSettings, since old: ManagedSettings) {
    for report in settings.reports where !old.reports.contains(report) {
      guard case .string(let file)? = report["file"], case .string(let why)? = report["refused"]
      else { continue }
      log("the profile \(file) is refused, and none of its settings count: \(why)")
    }
  }

  /// Replaces the settings of a place, and enqueues the difference for observers. A location whose
  /// settings differ is invalidated.
  private func adopt(_ new: Managed, _ old: Managed, _ place: Place) {
    let domains = Set(new.settings.forced.keys).union(old.settings.forced.keys).filter {
      new.settings.forced[$0] != old.settings.forced[$0]
    }
    let lists = domains.filter { ((try? listModified(Location(place, $0))) ?? nil) != nil }
    state.withLock { state in
      var change = Changeset(time: .now)
      for domain in domains {
        let location = Location(place, domain)
        let (before, after) = (
          old.settings.forced[domain] ?? [:], new.settings.forced[domain] ?? [:]
        )
        // Copies of the location say which profile sets a value.
        change.invalidated.insert(location)
        if !lists.contains(domain), before.isEmpty != after.isEmpty {
          change.items.append(.init(location, after.isEmpty ? .removeDomain : .createDomain))
        }
        change.items += state.edits(from: before, to: after, location)
      }
      state.managed[place] = new
      state.enqueue(Publication(change, source: ChangeSource(.profile)), withProfiles: true)
    }
  }
}

extension Store.State {
  /// What becomes of the keys that the list of the location does not have.
  fileprivate func edits(
    from before: [Key: StoredValue], to after: [Key: StoredValue], _ location: Location
  ) -> [Changeset.Item] {
    let listed = domains[location]?.snapshot
    return Set(before.keys).union(after.keys).compactMap { key in
      let (old, new) = (before[key], after[key])
      guard old != new, listed?[key] == nil else { return nil }
      let edit = new.map { Edit.set(key, $0.value, .canonical) } ?? .remove(key)
      return Changeset.Item(location, edit, replacing: old)
    }
  }
}
