import PreferenceModel
import PropertyList
import SystemCalls

/// A change that somebody else made, or that we made: the edit, and whether the place had the key.
public struct TracedChangeset: Sendable {
  /// What changed.
  public var changeset: Changeset
  /// For each item, whether its location had the key before.
  public var hadKey: [Bool]

  /// Nothing.
  public init() { (changeset, hadKey) = (Changeset(), []) }

  init(_ changeset: Changeset, hadKey: [Bool]) {
    (self.changeset, self.hadKey) = (changeset, hadKey)
  }
}

// Lists that somebody else changed (SPEC section 2, "Somebody else edits a list").

extension Store {
  /// Looks at the location's list and takes in what somebody else changed: theirs for keys without
  /// unsaved changes of ours. A key that we changed within the last ten seconds and that they
  /// have as it was before is ours again, and unsaved. A list that cannot be read is an error of
  /// its domain until it can. The thread of `checkpoint` calls it. Cost: one stat(2) where nothing
  /// changed, else O(keys).
  /// - Returns: what is another now.
  public func refresh(_ location: Location) -> TracedChangeset {
    guard let known = state.withLock({ $0.domains[location] }) else { return appeared(location) }
    if isReadOnly { return reread(known, location) }
    let list: ListFile.Contents?
    do {
      guard try isChanged(location, since: known) else { return TracedChangeset() }
      list = try contents(ofLists: location)
    } catch {
      if known.failure == error { return TracedChangeset() }
      log("\(error)")
      state.withLock { $0.domains[location]?.failure = error }
      return damaged(location, known)
    }
    return take(list, known, location)
  }

  private func isChanged(
    _ location: Location, since known: Domain
  ) throws(EngineError) -> Bool {
    if location.place == .managed || known.failure?.reason == .unreadable { return true }
    return try EngineError.wrapping(location.domain) { () throws(SystemError) in
      try ListFile(path: layout.path(location)).identity() != known.identity
    }
  }

  /// A list that nobody has asked for yet: its domain may be new, or gone.
  private func appeared(_ location: Location) -> TracedChangeset {
    state.withLock { $0.appearances += 1 }
    let exists = (try? exists(location)) ?? true
    let edit: Edit = exists ? .createDomain : .removeDomain
    return TracedChangeset(
      Changeset([Changeset.Item(location, edit)], time: .now), hadKey: [false])
  }

  /// Readers get an error: what the kernel has of the keys is no longer true.
  private func damaged(_ location: Location, _ known: Domain) -> TracedChangeset {
    let items = known.snapshot.keys.map {
      Changeset.Item(location, .describe($0, Description()))
    }
    return TracedChangeset(
      Changeset(items, time: .now), hadKey: Array(repeating: true, count: items.count))
  }

  private func take(
    _ list: ListFile.Contents?, _ known: Domain, _ location: Location
  ) -> TracedChangeset {
    var base = known.snapshot.base
    let theirs = list?.values ?? [:]
    let time = list?.identity.modified ?? .now
    let differing: Set<Key> = Set(theirs.keys).union(base.values.keys).filter {
      theirs[$0] != base.values[$0]
    }
    for key in differing {
      base.metadata[key] = theirs[key].map { _ in
        Metadata(text: nil, modified: time, mode: base.metadata[key]?.mode)
      }
    }
    base.values = theirs
    if known.failure?.reason == .unreadable {
      log("\(location.domain): the list can be read again")
    }
    let (change, failure) = state.withLock {
      $0.adopt(Store.Outside(base: base, list: list, differing: differing, time: time), location)
    }
    if let failure { log("\(location.domain): a stale copy undoes changes, because \(failure)") }
    return change
  }

  /// A list as somebody else left it.
  struct Outside {
    var base: DomainSnapshot.Base
    var list: ListFile.Contents?
    /// The keys whose values are others than in our base.
    var differing: Set<Key>
    var time: Timestamp
  }

  /// Without a journal of our own, list and journal of the owner are read anew.
  private func reread(_ known: Domain, _ location: Location) -> TracedChangeset {
    let old = known.snapshot
    state.withLock { $0.domains[location] = nil }
    guard let new = try? snapshot(of: location) else { return damaged(location, known) }
    var change = TracedChangeset()
    for key in Set(old.keys).union(new.keys) where old.entry(key) != new.entry(key) {
      let edit: Edit = new[key].map { .set(key, $0, .unknown) } ?? .remove(key)
      change.changeset.items.append(Changeset.Item(location, edit))
      change.hadKey.append(old[key] != nil)
    }
    change.changeset.time = .now
    return change
  }
}

extension DomainSnapshot {
  /// The edit that brings the key back as it is.
  fileprivate func restoring(_ key: Key) -> Edit {
    guard let entry = entry(key) else { return .remove(key) }
    return .set(key, entry.value, entry.text.map { .exact($0) } ?? .canonical)
  }
}

extension Store.State {
  /// Takes in somebody else's list. What undoes our last seconds is ours again, and unsaved; where
  /// the journal cannot take that, it is theirs.
  fileprivate mutating func adopt(
    _ outside: Store.Outside, _ location: Location
  ) -> (TracedChangeset, failure: SystemError?) {
    guard var domain = domains.removeValue(forKey: location) else {
      return (TracedChangeset(), nil)
    }
    let old = domain.snapshot
    // A list that was removed is no stale copy.
    let ours: Set<Key> = outside.differing.filter {
      outside.list != nil && !old.isChanged($0)
        && domain.recent.undoes($0, outside.base.values[$0])
    }
    domain.snapshot.replaceBase(outside.base)
    domain.identity = outside.list?.identity
    domain.size = Int(outside.list?.identity.size ?? 0)
    if let format = outside.list?.format { domain.format = format }
    domain.failure = nil
    let hasChanges = domain.snapshot.changesList
    domain.snapshot.exists =
      hasChanges ? old.exists || !domain.snapshot.isEmpty : outside.list != nil
    domains[location] = domain
    var failure: SystemError?
    do throws(SystemError) { try restore(ours, as: old, location) } catch { failure = error }
    return (announced(outside, old, ours, location), failure)
  }

  private mutating func restore(
    _ keys: Set<Key>, as old: DomainSnapshot, _ location: Location
  ) throws(SystemError) {
    guard !keys.isEmpty else { return }
    let time = max(Timestamp.now, Timestamp(nanoseconds: lastTime.nanoseconds &+ 1))
    let items = keys.map { Changeset.Item(location, old.restoring($0)) }
    let sequence = try journal?.append(.change(Changeset(items, time: time))) ?? 0
    lastTime = time
    for item in items {
      _ = domains[location]?.take(item.edit, sequence: sequence, time: time, sharesRecord: false)
    }
  }

  /// What readers see of it: theirs where we have no change, and ours that are back.
  private mutating func announced(
    _ outside: Store.Outside, _ old: DomainSnapshot, _ ours: Set<Key>, _ location: Location
  ) -> TracedChangeset {
    var change = TracedChangeset()
    change.changeset.time = outside.time
    for key in outside.differing where !old.isChanged(key) {
      let value = domains[location]?.snapshot[key]
      change.changeset.items.append(
        Changeset.Item(location, value.map { .set(key, $0, .unknown) } ?? .remove(key)))
      change.hadKey.append(old[key] != nil)
      if !ours.contains(key) { domains[location]?.recent.forget(key) }
    }
    let exists = domains[location]?.snapshot.exists ?? false
    if exists != old.exists {
      change.changeset.items.append(
        Changeset.Item(location, exists ? .createDomain : .removeDomain))
      change.hadKey.append(false)
    }
    return change
  }
}
