import PreferenceModel
import PreferenceSchemas
import PropertyList
import Synchronization
import SystemCalls

/// Gives keys that a schema has renamed their present names, in the user's and the host's place.
///
/// A key is moved once for each schema and name: what has been dealt with is noted in the key
/// `RenamedKeys` of the domain `prefsfs`, in the same transaction, so that a crash can neither repeat
/// nor lose one, and an undo is not undone. A key that has a value under its present name stays. In
/// places of the machine nothing is moved: there, look-ups find the former name.
///
/// Half-broken states: where a transaction fails, the key is moved when the domain's schema is next
/// read, by this owner or the next one; until then look-ups find it by its former name.
///
/// Threads: any; the work is done by a thread of its own, because it may wait for a list. One lock,
/// held for a look.
final class KeyRenamer: Sendable {
  private let thread = BlockingThreads(name: "prefs-once", most: 1)
  /// The domains that wait or were dealt with since their schema changed.
  private let known = Mutex<Set<DomainName>>([])
  private let log: @Sendable (LogLine) -> Void
  private static let note = (location: Location(.user, .settings), key: Key("RenamedKeys"))

  init(log: @escaping @Sendable (LogLine) -> Void) { self.log = log }

  /// Has the domain looked at again: its schema has changed.
  func forget(_ domain: DomainName) { known.withLock { _ = $0.remove(domain) } }

  /// Has the thread move the keys of a domain whose schema was read. Returns at once.
  func move(_ domain: DomainName, _ schema: Schema, in places: LocalPlaces) {
    guard !schema.presentNames.isEmpty, !places.isReadOnly else { return }
    guard !places.isClosing, known.withLock({ $0.insert(domain).inserted }) else { return }
    let isTaken = thread.run { [self, weak places] in
      guard let places, !places.isClosing else { return }
      do throws(EngineError) {
        let intents = try intents(domain, schema, places)
        if !intents.isEmpty { try places.move(intents) }
      } catch {
        log("\(domain): keys that the schema has renamed keep their names for now: \(error)")
        forget(domain)
      }
    }
    if !isTaken { forget(domain) }
  }

  private func intents(
    _ domain: DomainName, _ schema: Schema, _ places: LocalPlaces
  ) throws(EngineError) -> [Intent] {
    let kept = try places.find(Self.note.key, at: Self.note.location)?.value
    var noted: [Value] = []
    if case .array(let known)? = kept { noted = known }
    let count = noted.count
    var intents: [Intent] = [.expect(Self.note.key, Self.note.location, kept)]
    for key in schema.keys where !key.formerNames.isEmpty {
      var old = schema.formerNames(of: key.name)
      old.removeAll { noted.contains(Self.name($0, key.name, domain)) }
      for place in [Place.host, .user] {
        // Of several former names the latest counts, as for look-ups; the others stay.
        for name in old {
          let moved = try move(name, to: key.name, at: Location(place, domain), places)
          if moved.isEmpty { continue }
          intents += moved
          noted.append(Self.name(name, key.name, domain))
          break
        }
      }
    }
    guard noted.count > count, !places.isClosing else { return [] }
    return intents + [.edit(Self.note.location, .set(Self.note.key, .array(noted), .unknown))]
  }

  /// What is noted of a key that was moved.
  private static func name(_ old: Key, _ new: Key, _ domain: DomainName) -> Value {
    .string("\(domain) \(old) \(new)")
  }

  private func move(
    _ old: Key, to new: Key, at location: Location, _ places: LocalPlaces
  ) throws(EngineError) -> [Intent] {
    guard let stored = try places.find(old, at: location),
      try places.find(new, at: location) == nil
    else { return [] }
    let text: WrittenText = stored.text.map { .exact($0) } ?? .canonical
    let kept = Description(mode: stored.metadata.mode, modified: stored.modified)
    return [
      .expect(old, location, stored.value), .expect(new, location, nil),
      .edit(location, .set(new, stored.value, text)), .edit(location, .describe(new, kept)),
      .edit(location, .remove(old)),
    ]
  }
}
