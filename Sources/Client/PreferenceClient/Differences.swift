import PreferenceModel
import PropertyList

/// The difference between what this process knew of a store and what a new owner has.
struct Differences {
  /// The changes of locations that this process had read, and of the domains that it knew of. A
  /// location that cannot be read is invalidated.
  private(set) var changeset = Changeset(time: .now)

  /// Compares the places of the new owner with what is known.
  /// - Parameters:
  ///   - known: the locations that this process had read.
  ///   - domains: the domains that this process knew of in each place; they are replaced by those
  ///     of the new owner.
  ///   - version: of a change of the new owner which the differences contain, with all before it.
  /// - Throws: `.ownerGone`. A list that cannot be read is not an error.
  init(
    of places: OwnerConnection, from known: [Location: LocationSnapshot],
    domains: inout [Place: Set<DomainName>], version: UInt64
  ) throws(EngineError) {
    changeset.version = version
    for place in SearchList.persistentPlaces { try compareDomains(in: place, places, &domains) }
    for (location, snapshot) in known {
      if let edits = try Self.readable({ () throws(EngineError) in
        try Self.edits(of: location, from: snapshot, places)
      }) {
        // The values of a schema are no preferences: whoever has read it reads it again.
        if location.place == .schema {
          if !edits.isEmpty { changeset.invalidated.insert(location) }
          continue
        }
        changeset.items += edits.map { edit in
          Changeset.Item(location, edit, replacing: edit.key.flatMap { snapshot.entry($0) })
        }
      } else {
        changeset.invalidated.insert(location)
      }
    }
  }

  private mutating func compareDomains(
    in place: Place, _ places: OwnerConnection, _ domains: inout [Place: Set<DomainName>]
  ) throws(EngineError) {
    let found = try Self.readable { () throws(EngineError) in try places.domains(in: place) }
    guard let found else { return }
    if let before = domains[place] {
      changeset.items += found.subtracting(before).map { .init(Location(place, $0), .createDomain) }
      changeset.items += before.subtracting(found).map { .init(Location(place, $0), .removeDomain) }
    }
    domains[place] = found
  }

  /// Runs the body; nil if it throws anything but `.ownerGone`, which is passed on.
  private static func readable<Result>(
    _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result? {
    do throws(EngineError) {
      return try body()
    } catch  where error.reason != .ownerGone {
      return nil
    }
  }

  private static func edits(
    of location: Location, from old: LocationSnapshot, _ places: OwnerConnection
  ) throws(EngineError) -> [Edit] {
    var edits: [Edit] = []
    for key in Set(old.keys).union(try places.read(location, { $0.keys })) {
      let (before, now) = (old.entry(key), try places.find(key, at: location))
      if let edit = edit(key, from: before, to: now) { edits.append(edit) }
    }
    return edits
  }

  private static func edit(_ key: Key, from old: StoredValue?, to new: StoredValue?) -> Edit? {
    guard let new else { return old == nil ? nil : .remove(key) }
    if new == old { return nil }
    // Only mode or time is different.
    if new.value == old?.value, new.text == old?.text {
      return .describe(key, Description(mode: new.metadata.mode, modified: new.modified))
    }
    return .set(key, new.value, new.text.map { .exact($0) } ?? .canonical)
  }

  /// The events of the keys that the differences created, changed or removed.
  var events: [KeyEvent] { changeset.items.compactMap(\.event) }
}
