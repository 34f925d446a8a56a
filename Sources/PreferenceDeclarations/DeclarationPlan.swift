import PreferenceHistory
import PreferenceModel
import PropertyList

/// What must be changed so that the values of a place are as a ledger says, and what comes back.
///
/// A declaration takes back only what it gave:
/// - A path that becomes declared is set, and what was there is kept in the ledger.
/// - A path that is declared no more gets what was there before, if it still has what was declared.
///   If somebody has changed it since, it stays.
/// - A declared path that somebody has changed is set again. What comes back one day is then that
///   newer value.
/// - A forced value that is equal satisfies a declaration; a different one refuses it.
///
/// Values, documents and ledger are changed by one transaction (`intents`), which expects everything
/// as the plan has found it. Which command came first never matters: the plan follows from the
/// ledger and the values.
package struct DeclarationPlan: Sendable {
  /// What happens to a path.
  package enum Outcome: Equatable, Sendable {
    /// It gets its declared value.
    case set
    /// It gets what was there before it was declared.
    case restored
    /// Nobody declares it any more, but somebody has changed it: it stays.
    case changedSince
    /// Nobody declares it any more, but what was there before is not kept: it stays.
    case notKept
  }

  /// What is done with a path.
  package struct Step: Equatable, Sendable {
    package let path: DeclaredPath
    package let place: Place
    package let outcome: Outcome
    /// What it has, and gets.
    package let present, goal: Value?

    /// Whether it changes the path.
    package var isChange: Bool { outcome == .set || outcome == .restored }
  }

  /// In the order of the paths.
  package private(set) var steps: [Step] = []
  /// The transaction; empty: there is nothing to do.
  package private(set) var intents: [Intent] = []
  /// The locations that the plan may leave without keys.
  package private(set) var emptied: [Location] = []
  /// The ledger afterwards.
  package private(set) var ledger: Ledger

  /// The value of a key before the plan, and what it has planned so far.
  private struct Key {
    let stored: StoredValue?
    var value: Value?
    var text: [UInt8]?
  }

  private var keys: [RecordedKey: Key] = [:]

  /// Plans the way from one ledger to another. Throws `.forced` for what an administrator has set to
  /// something else, and where a list cannot be read.
  /// - Parameters:
  ///   - place: the place that is declared; nil: the user's, as a change of each key chooses it.
  ///   - keeps: whether what a key had before may be kept.
  package init(
    from old: Ledger, to new: Ledger, in place: Place?, _ places: some StoredPlaces,
    keeps: (PropertyList.Key, DomainName) -> Bool
  ) throws(EngineError) {
    ledger = new
    // First: a path may be declared where parts of it were, and then these are not what was there.
    let paths = new.paths
    for path in old.paths.subtracting(paths).sorted() { try release(path, old, places) }
    restoreContainers(old.paths, paths)
    for path in paths.sorted() {
      guard let declared = new.effective(path) else { continue }
      try declare(path, declared, old, place, places, keeps)
    }
    steps.sort { $0.path < $1.path }
    try finish(old, at: Location(place ?? .user, Ledger.domain), places)
  }

  // MARK: - Paths

  private mutating func declare(
    _ path: DeclaredPath, _ declared: Declaration.Declared, _ old: Ledger, _ place: Place?,
    _ places: some StoredPlaces, _ keeps: (PropertyList.Key, DomainName) -> Bool
  ) throws(EngineError) {
    if place == nil, try isForced(path, to: declared.value, places) { return }
    let before = old.before[path]
    let used: Place
    if let known = before?.place ?? place {
      used = known
    } else {
      used = try ChangeRules(places).writePlace(of: path.key, in: path.domain)
    }
    let key = RecordedKey(path.key, at: Location(used, path.domain))
    let stored = try read(key, places)
    let present = stored.value?.part(path.members)
    // The value that somebody has set since is what comes back one day.
    let isOurs = before != nil && present == old.effective(path)?.value
    if !isOurs {
      var found = Ledger.Before(place: used, value: present)
      if path.members.isEmpty { found.text = stored.text }
      if present != nil, !keeps(path.key, path.domain) {
        (found.value, found.text, found.isKept) = (nil, nil, false)
      }
      ledger.before[path] = found
      if present != declared.value { noteContainers(of: path, in: used, stored.value) }
    }
    guard present != declared.value else { return }
    add(path, used, .set, from: present, to: declared.value, text: nil)
  }

  /// Whether a forced value is the declared one. Throws where it is a different one.
  private func isForced(
    _ path: DeclaredPath, to value: Value?, _ places: some StoredPlaces
  ) throws(EngineError) -> Bool {
    let forced = try places.findFirst(path.key, in: SearchList.forced(path.domain))
    guard let forced else { return false }
    guard forced.stored.value.part(path.members) == value else {
      throw EngineError(
        .forced, domain: path.domain, key: path.key,
        "the administrator has set it to something else, so nothing was changed")
    }
    return true
  }

  private mutating func release(
    _ path: DeclaredPath, _ old: Ledger, _ places: some StoredPlaces
  ) throws(EngineError) {
    guard let before = ledger.before.removeValue(forKey: path) else { return }
    let key = RecordedKey(path.key, at: Location(before.place, path.domain))
    let present = try read(key, places).value?.part(path.members)
    let isOurs = present == old.effective(path)?.value
    if isOurs, before.isKept {
      guard present != before.value else { return }
      add(
        path, before.place, .restored, from: present, to: before.value, text: before.text)
    } else if present != nil {
      steps.append(
        Step(
          path: path, place: before.place, outcome: isOurs ? .notKept : .changedSince,
          present: present, goal: present))
    }
  }

  // MARK: - Dictionaries of parts

  /// Keeps what stands where a part is to be, and is no dictionary with parts.
  private mutating func noteContainers(of path: DeclaredPath, in place: Place, _ whole: Value?) {
    for count in path.members.indices {
      let container = path.prefix(count)
      guard let value = whole?.part(container.members), ledger.before[container] == nil else {
        continue
      }
      if case .dictionary(let parts) = value, !parts.isEmpty { continue }
      ledger.before[container] = Ledger.Before(place: place, value: value)
    }
  }

  /// Puts what stood in the place of a dictionary back, where no part of it is declared any more and
  /// nobody has added one.
  private mutating func restoreContainers(
    _ old: Set<DeclaredPath>, _ declared: Set<DeclaredPath>
  ) {
    for (container, before) in ledger.before.sorted(by: { $0.key < $1.key })
    where !old.contains(container) {
      guard !declared.contains(where: { $0.isPart(of: container) }) else { continue }
      ledger.before[container] = nil
      let key = RecordedKey(container.key, at: Location(before.place, container.domain))
      guard let planned = keys[key], planned.value?.part(container.members) == nil else { continue }
      let whole = Value.replacing(before.value, at: container.members, in: planned.value)
      keys[key]?.value = whole
    }
  }

  // MARK: - Keys

  private mutating func read(
    _ key: RecordedKey, _ places: some StoredPlaces
  ) throws(EngineError) -> Key {
    if let known = keys[key] { return known }
    let stored = try places.find(key.key, at: key.location)
    let found = Key(stored: stored, value: stored?.value, text: stored?.text)
    keys[key] = found
    return found
  }

  private mutating func add(
    _ path: DeclaredPath, _ place: Place, _ outcome: Outcome, from present: Value?,
    to goal: Value?, text: [UInt8]?
  ) {
    let key = RecordedKey(path.key, at: Location(place, path.domain))
    steps.append(
      Step(path: path, place: place, outcome: outcome, present: present, goal: goal))
    let whole = Value.replacing(goal, at: path.members, in: keys[key]?.value)
    keys[key]?.value = whole
    keys[key]?.text = path.members.isEmpty ? text : nil
  }

  private mutating func finish(
    _ old: Ledger, at location: Location, _ places: some StoredPlaces
  ) throws(EngineError) {
    var expected: [Intent] = []
    for (key, planned) in keys.sorted(by: { $0.key.text < $1.key.text }) {
      expected.append(.expect(key.key, key.location, planned.stored?.value))
      guard planned.value != planned.stored?.value else { continue }
      intents.append(Self.edit(key.key, key.location, planned.value, planned.text))
      if planned.value == nil { emptied.append(key.location) }
    }
    let (before, after) = (old.values, ledger.values)
    for key in Set(before.keys).union(after.keys).sorted() {
      expected.append(.expect(key, location, before[key]))
      guard before[key] != after[key] else { continue }
      intents.append(Self.edit(key, location, after[key], nil))
      if after[key] == nil { emptied.append(location) }
    }
    if !intents.isEmpty { intents = expected + intents }
  }

  private static func edit(
    _ key: PropertyList.Key, _ location: Location, _ value: Value?, _ text: [UInt8]?
  ) -> Intent {
    let edit: Edit =
      value.map { .set(key, $0, text.map { .exact($0) } ?? .canonical) } ?? .remove(key)
    return .edit(location, edit)
  }
}
