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
    let list: ListFile.Contents?
    do {
      guard try isChanged(location, since: known) else { return TracedChangeset() }
      list = try contents(ofLists: location)
    } catch {
      return damaged(location, known, error)
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
    let exists = (try? exists(location)) ?? true
    let edit: Edit = exists ? .createDomain : .removeDomain
    return TracedChangeset(
      Changeset([Changeset.Item(location, edit)], time: .now), hadKey: [false])
  }

  /// Readers get the error; what the kernel has of the keys is no longer true.
  private func damaged(
    _ location: Location, _ known: Domain, _ error: EngineError
  ) -> TracedChangeset {
    if known.failure != error { log("\(error)") }
    state.withLock { $0.domains[location]?.failure = error }
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
    var items: [Changeset.Item] = []
    var hadKey: [Bool] = []
    var ours: [Changeset.Item] = []
    for key in Set(theirs.keys).union(base.values.keys) where theirs[key] != base.values[key] {
      let (old, new) = (base.values[key], theirs[key])
      let change = known.snapshot.change(of: key)
      if change == nil, list != nil, known.recent.undoes(key, new) {
        ours.append(Changeset.Item(location, known.snapshot.restoring(key)))
      } else if change == nil {
        items.append(Changeset.Item(location, new.map { .set(key, $0, .unknown) } ?? .remove(key)))
        hadKey.append(old != nil)
      }
      base.metadata[key] = new.map { _ in
        Metadata(text: nil, modified: time, mode: base.metadata[key]?.mode)
      }
    }
    base.values = theirs
    base.modified = time
    let exists = list != nil
    if exists != known.snapshot.exists {
      items.append(Changeset.Item(location, exists ? .createDomain : .removeDomain))
      hadKey.append(false)
    }
    let isMended = known.failure?.reason == .unreadable
    state.withLock { $0.replaceBase(base, of: location, list) }
    if isMended { log("\(location.domain): the list can be read again") }
    restore(ours)
    return TracedChangeset(Changeset(items, time: time), hadKey: hadKey)
  }

  /// Ours again: as changes that are not in the list.
  private func restore(_ items: [Changeset.Item]) {
    guard !items.isEmpty else { return }
    do { _ = try commit(items) } catch { log("\(error)") }
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
  fileprivate mutating func replaceBase(
    _ base: DomainSnapshot.Base, of location: Location, _ list: ListFile.Contents?
  ) {
    guard var domain = domains.removeValue(forKey: location) else { return }
    domain.snapshot.replaceBase(base)
    domain.snapshot.exists = list != nil || domain.unsavedSince != nil && domain.snapshot.exists
    domain.identity = list?.identity
    domain.size = Int(list?.identity.size ?? 0)
    if let format = list?.format { domain.format = format }
    domain.failure = nil
    domains[location] = domain
  }
}
