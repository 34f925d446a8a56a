import PreferenceModel
import PropertyList
import SystemCalls

// Configuration profiles, fragments and vendors' lists. What they set is read beside the lists of
// their place, and is in no list or journal: readers get both together.

extension Lists {
  /// Sets the body that is called with a managed place whose additions have been read for the first
  /// time, so that its directory is watched, and with one whose additions may be different ones
  /// because the name service has said which names are users'. The body then has `refreshAdditions`
  /// called. Any thread calls it; it must not wait.
  public func onDoubtfulPlace(_ body: @escaping @Sendable (Place) -> Void) {
    placeInDoubt.withLock { $0 = body }
  }

  func noteDoubtful(_ place: Place) {
    let body = placeInDoubt.withLock { $0 }
    body?(place)
  }

  /// The managed places whose profiles have been read: those that were asked for.
  public var managedPlaces: [Place] {
    state.withLock { $0.additions.all.keys.filter(\.isManaged) }
  }

  /// Reads the additions of the place, unless that has been done, and logs those that do not count.
  /// It waits for a disk, under the lock `readingAdditions`: other threads that need the additions
  /// wait for it, and do not read them too. It does not wait for the name service: see
  /// `learnUsers`.
  public func loadAdditions(of place: Place) {
    guard state.withLock({ $0.additions.all[place] == nil }) else { return }
    readingAdditions.withLock { _ in
      guard state.withLock({ $0.additions.all[place] == nil }) else { return }
      let start = beginReading()
      let read = readAdditions(of: place, askingLater)
      endReading(since: start)
      state.withLock { $0.additions.all[place] = read }
      report(read.settings, since: PlaceAdditions())
      if case .managedFor = place { noteDoubtful(place) }
    }
  }

  /// Learns which managed directories are users', and of which groups the user is, so that what is
  /// read first counts at once. Call it before the store is served: it waits 1 s at most for the
  /// disk and the name service. Where they do not answer in time, the files alone say
  /// (`ManagedDirectories`) until they do; then observers are notified of the difference.
  public func learnUsers() {
    fragments.learnUsers { [weak self] place in self?.noteDoubtful(place) }
  }

  /// A thread asks the name service, and the place is looked at again if its answer is new.
  private var askingLater: FragmentReader.Asking {
    .later { [weak self] in self?.noteDoubtful(.managed) }
  }

  private func readAdditions(
    of place: Place, _ asking: FragmentReader.Asking
  ) -> AdditionsTable.Additions {
    let state = additionsState(of: place, asking)
    var settings = PlaceAdditions()
    if place.isManaged, let profiles { settings = profiles.settings(of: place, at: .now) }
    if place == .ownManaged { addGroups(to: &settings, asking) }
    fragments.add(place, to: &settings, asking)
    return AdditionsTable.Additions(state: state, settings: settings)
  }

  /// What identifies the state of the place's additions on the disk.
  private func additionsState(of place: Place, _ asking: FragmentReader.Asking) -> [String] {
    (place.isManaged ? profiles?.state(of: place) ?? [] : []) + fragments.state(of: place, asking)
      + (place == .ownManaged ? groupsState(asking) : [])
  }

  /// Reads the additions again of each place where a file has changed or a profile has ended, and
  /// publishes what became of the keys. The caller then notifies observers. Cost: for each place, a
  /// look at its files (`ProfileReading.state`). The writer's thread calls it.
  /// - Parameter places: the places to look at, as far as they have been asked for; nil means all.
  public func refreshAdditions(of places: Set<Place>? = nil) {
    let asking = askingLater
    let all = state.withLock { $0.additions.all }
    for place in places ?? Set(all.keys) {
      guard let known = all[place] else { continue }
      let isOutdated = known.settings.isOutdated(at: .now)
      guard additionsState(of: place, asking) != known.state || isOutdated else { continue }
      let read = readAdditions(of: place, asking)
      adopt(read, known, place)
      report(read.settings, since: known.settings)
    }
  }

  /// When the first of the profiles ends; nil if none ends. The largest time where profiles have
  /// ended: they count again if the clock is set back.
  public var profilesEnd: Timestamp? {
    state.withLock { state in
      state.additions.all.values.compactMap { additions in
        additions.settings.until
          ?? additions.settings.lastEnd.map { _ in Timestamp(nanoseconds: .max) }
      }.min()
    }
  }

  /// Whether other profiles count now than those that were read.
  public var areProfilesOutdated: Bool {
    state.withLock { state in
      state.additions.all.values.contains { $0.settings.isOutdated(at: .now) }
    }
  }

  /// The values that profiles set once for the user of this store, as far as they have been read.
  public var onceSettings: [OnceSetting] {
    state.withLock { state in
      Place.forced.flatMap { state.additions.all[$0]?.settings.once ?? [] }
    }
  }

  /// A report of each profile of the search list's places, and of other managed places that have
  /// been read (see `PlaceAdditions.reports`). Waits for a disk where the first have not been
  /// read.
  public var profileReports: [ValueDictionary] {
    for place in Place.forced { loadAdditions(of: place) }
    return state.withLock { state in
      Place.forced.flatMap { state.additions.all[$0]?.settings.reports ?? [] }
        + state.additions.all.filter { !$0.key.isForced }.flatMap(\.value.settings.reports)
    }
  }

  /// Returns the report of a profile with these bytes, which is not installed; nil where the store
  /// has no profiles.
  public func check(profile bytes: [UInt8]) -> ValueDictionary? { profiles?.check(bytes) }

  /// The fragments and vendors' lists of each place that has been read, and the keys of lists that
  /// they hide: dictionaries with `place`, `domain`, `file` and `values`, of which the first one that
  /// has a key counts.
  public var fragmentReports: [ValueDictionary] {
    state.withLock { state in
      state.additions.all.flatMap { place, additions in
        let fragments = additions.settings.fragments
        let hidden = Set(fragments.map(\.domain)).compactMap { domain in
          state.hidden(Location(place, domain)).map {
            PlaceAdditions.Fragment(
              file: layout.path(Location(place, domain)), domain: domain, values: $0)
          }
        }
        return (fragments.reversed() + hidden).map { fragment -> ValueDictionary in
          [
            "place": .string(place.rawValue), "domain": .string(fragment.domain.string),
            "file": .string(fragment.file), "values": .dictionary(fragment.values),
          ]
        }
      }
    }
  }

  /// Logs the profiles that are refused, and fragments that cannot be read, if they were not before.
  private func report(_ settings: PlaceAdditions, since old: PlaceAdditions) {
    for report in settings.reports where !old.reports.contains(report) {
      guard case .string(let file)? = report["file"], case .string(let why)? = report["refused"]
      else { continue }
      log("the profile \(file) is refused, and none of its settings count: \(why)")
    }
    if let error = settings.obstacle, error != old.obstacle { log("\(error)") }
    for (domain, error) in settings.unreadable where old.unreadable[domain] != error {
      log("\(error)")
    }
  }

  /// Replaces the additions of a place, and enqueues the difference for observers. A location whose
  /// additions differ is invalidated.
  private func adopt(
    _ new: AdditionsTable.Additions, _ old: AdditionsTable.Additions, _ place: Place
  ) {
    let (before, after) = (old.settings, new.settings)
    let known = Set(after.values.keys).union(before.values.keys)
      .union(after.unreadable.keys).union(before.unreadable.keys)
    var domains = known.filter {
      after.values[$0] != before.values[$0] || after.unreadable[$0] != before.unreadable[$0]
    }
    if after.obstacle != before.obstacle {
      domains.formUnion(loadedLocations.filter { $0.place == place }.map(\.domain))
    }
    let lists = domains.filter { (try? listModified(Location(place, $0))) != nil }
    // Only profiles have reports; everything else is a list that somebody edits.
    let source = ChangeSource(before.reports == after.reports ? .list : .profile)
    state.withLock { state in
      var change = Changeset(time: .now)
      for domain in domains {
        let location = Location(place, domain)
        let (values, present) = (before.values[domain] ?? [:], after.values[domain] ?? [:])
        // Copies of the location say what sets a value.
        change.invalidated.insert(location)
        // What cannot be read is there.
        let was = !values.isEmpty || before.unreadable[domain] != nil
        let isThere = !present.isEmpty || after.unreadable[domain] != nil
        if !lists.contains(domain), was != isThere {
          change.items.append(.init(location, isThere ? .createDomain : .removeDomain))
        }
        change.items += state.edits(from: values, to: present, location)
      }
      state.additions.all[place] = new
      state.enqueue(PendingNotice(change, source: source), withAdditions: true)
    }
  }
}

extension StoreState {
  /// The location as readers see it, with what is added; nil if its list has not been read.
  func shown(_ location: Location) -> LocationSnapshot? {
    guard let listed = domains[location]?.snapshot else { return nil }
    return location.place.hasAdditions ? listed.with(additions: additions.added(location)) : listed
  }
}

extension StoreState {
  /// The values of the location's list that fragments hide; nil if there are none, or the list is
  /// not in memory.
  fileprivate func hidden(_ location: Location) -> ValueDictionary? {
    guard let listed = domains[location]?.snapshot else { return nil }
    let keys = additions.added(location).filter { $0.value.metadata.isOfFile }.keys
    let values = keys.compactMap { key in listed[key].map { (key, $0) } }
    return values.isEmpty ? nil : ValueDictionary(values)
  }

  /// What becomes of the keys whose value for readers is another one.
  fileprivate func edits(
    from before: [Key: StoredValue], to after: [Key: StoredValue], _ location: Location
  ) -> [Changeset.Item] {
    let listed = domains[location]?.snapshot ?? LocationSnapshot()
    let (old, new) = (listed.with(additions: before), listed.with(additions: after))
    return Set(before.keys).union(after.keys).compactMap { key in
      guard old.entry(key) != new.entry(key) else { return nil }
      return Changeset.Item(location, new.restoring(key), replacing: old.entry(key))
    }
  }
}
