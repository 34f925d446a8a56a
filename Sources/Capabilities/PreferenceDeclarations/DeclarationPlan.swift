import PreferenceHistory
import PreferenceModel
import PropertyList

/// What must be changed so that the values of a place are as a ledger says, and what comes back.
///
/// A declaration takes back only what it gave:
/// - A path that is declared now is set, and what was there is kept in the ledger.
/// - A path that is no longer declared gets what was there before, if it still has what was
///   declared. If somebody has changed it since, it stays.
/// - A path of the named declarations that somebody has changed is set again. What comes back one
///   day is then that newer value. Paths of other declarations are left alone, unless what counts
///   for them changes.
/// - An element of an array is a path of its own, that is there or not. Where the place lacks the
///   array, elements are put into a copy of what programs read, and the array goes when it is that
///   copy again and nothing is declared to be added to it.
/// - A forced value that is equal satisfies a declaration; a different one refuses it.
///
/// Values, documents and ledger are changed by one transaction (`intents`), which expects
/// everything as the plan has found it.
package struct DeclarationPlan: Sendable {
  /// What happens to a path.
  package enum Outcome: Equatable, Sendable {
    /// It gets its declared value.
    case set
    /// It gets what was there before it was declared.
    case restored
    /// The same, because it is declared in another of the user's lists now.
    case moved
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
    package var isChange: Bool {
      switch outcome {
      case .set, .restored, .moved: true
      case .changedSince, .notKept: false
      }
    }
  }

  /// In the order of the paths.
  package private(set) var steps: [Step] = []
  /// The transaction; empty if there is nothing to do.
  package private(set) var intents: [Intent] = []
  /// The locations that a declaration has made, and that the plan may leave without keys.
  package private(set) var emptied: [Location] = []
  private var made: Set<Location> = []
  /// The paths that were as declared, and are no longer declared.
  private var givenBack: [DeclaredPath: Outcome] = [:]
  /// The ledger afterwards.
  package private(set) var ledger: Ledger

  /// The value of a key before the plan, and what it has planned so far.
  private struct Planned {
    let stored: StoredValue?
    var value: Value?
    var text: [UInt8]?
  }

  private var keys: [RecordedKey: Planned] = [:]
  /// The arrays of which elements were given or taken back, and where they are.
  private var arrays: [DeclaredPath: Place] = [:]
  /// The locations that a declaration has made before.
  private let madeBefore: Set<Location>
  private let inherited: Declarations.Inherited?

  /// Plans the way from one ledger to another. Throws `.forced` for what an administrator has set
  /// to something else, and where a list cannot be read.
  /// - Parameters:
  ///   - names: the declarations that are asked for.
  ///   - stored: the keys of the old ledger as they are.
  ///   - place: the place that is declared; nil means the user's, as a change of each key chooses
  ///     it.
  ///   - present: the places as they are.
  ///   - isJudged: whether schemas may refuse what is declared.
  ///   - yielding: those of the names for which what somebody has changed since stays: they are again
  ///     what they were, or say what is.
  ///   - inherited: what programs read where a place lacks a key: see `RememberedPlaces`.
  ///   - keeps: whether what a path had before may be kept.
  init(
    from old: Ledger, to new: Ledger, for names: Set<String>, stored: LedgerPart,
    in place: Place?, _ present: some StoredPlaces, isJudged: Bool = false,
    yielding: Set<String> = [], inherited: Declarations.Inherited? = nil,
    keeps: (Value, DeclaredPath) -> Bool
  ) throws(EngineError) {
    self.inherited = inherited
    let places = RememberedPlaces(present)
    ledger = new
    madeBefore = Set(
      old.before.lazy.filter(\.value.hasMadeDomain).map { Location($0.value.place, $0.key.domain) })
    // First: a path may be declared where parts of it were, and then these are not what was there.
    let paths = new.paths
    for path in old.inOrder(old.paths.subtracting(paths)) { try release(path, old, places) }
    // What counts changes for these alone: whatever one declaration takes precedence of, or no
    // longer does, it declares too.
    var asked: Set<DeclaredPath> = []
    for name in names {
      if let declared = old.declarations[name] { asked.formUnion(declared.paths.keys) }
      if let declared = new.declarations[name] { asked.formUnion(declared.paths.keys) }
    }
    let due = asked.intersection(paths).filter { path in
      new.names(declaring: path).contains(where: names.contains)
        || new.effective(path) != old.effective(path)
    }
    let moved = place == nil ? try releaseShadowed(due, old, places) : []
    try restoreArrays(paths.subtracting(moved), places, isMoved: !moved.isEmpty)
    restoreContainers(old.paths.subtracting(moved), paths.subtracting(moved))
    for path in new.inOrder(due.union(moved)) {
      guard let declared = new.effective(path) else { continue }
      if !yielding.isEmpty, try isChanged(path, from: declared, by: yielding, old, place, places) {
        continue
      }
      try declare(path, declared, old, place, places, keeps)
    }
    try restoreArrays(paths, places, keepsEmpty: true)
    let swept = new.declarations.values.reduce(into: Set()) { $0.formUnion($1.swept) }
    for path in ledger.before.keys { ledger.before[path]?.isSwept = swept.contains(path) }
    steps.sort { ($0.path, $0.place.rawValue) < ($1.path, $1.place.rawValue) }
    finish(stored, at: Location(place ?? .user, Ledger.domain), isJudged: isJudged)
  }

  // MARK: - Paths

  /// Whether somebody has changed a path since one of the declarations gave it, to something else than
  /// what is declared now.
  private mutating func isChanged(
    _ path: DeclaredPath, from declared: Declaration.Declared, by names: Set<String>,
    _ old: Ledger, _ place: Place?, _ places: RememberedPlaces
  ) throws(EngineError) -> Bool {
    guard let before = ledger.before[path],
      old.names(declaring: path).contains(where: names.contains)
    else { return false }
    let used = try self.place(of: path, before, old, place, places)
    let whole = try read(recorded(path, in: used), places).value
    return !isGiven(path, whole, old) && whole?.part(path) != declared.value
  }

  private mutating func declare(
    _ path: DeclaredPath, _ declared: Declaration.Declared, _ old: Ledger, _ place: Place?,
    _ places: RememberedPlaces, _ keeps: (Value, DeclaredPath) -> Bool
  ) throws(EngineError) {
    if place == nil, try isForced(path, to: declared.value, places) { return }
    let before = ledger.before[path]
    let used = try self.place(of: path, before, old, place, places)
    let key = recorded(path, in: used)
    let isMade = try makeArray(for: path, declared, in: used, places, keeps)
    let stored = try read(key, places)
    if let setter = stored.stored?.metadata.setter {
      throw EngineError(
        .forced, domain: path.domain, key: path.key,
        "\(setter) has set it, so nothing was changed")
    }
    let present = stored.value?.part(path)
    // The value that somebody has set since is what comes back one day.
    let isOurs = before != nil && !isMade && isGiven(path, stored.value, old)
    if isOurs, let before {
      ledger.before[path] = before
      ledger.before[path]?.place = used
    } else {
      ledger.before[path] = try found(path, in: used, stored, before, places, keeps)
    }
    if present != declared.value || isMade {
      if !isMade { noteContainers(of: path, in: used, stored.value, keeps) }
      let shown = declared == .absent ? present : isMade ? nil : present
      add(
        path, used, .set, from: shown, to: declared.value, text: nil,
        times: ledger.before[path]?.times ?? 1)
    }
    if place == nil, declared == .absent, path.isWhole {
      try removeOthers(of: path, besides: used, places, keeps)
    }
  }

  /// Removes a key that is declared absent from the user's other lists, in which programs would
  /// find it then.
  private mutating func removeOthers(
    of path: DeclaredPath, besides used: Place, _ places: RememberedPlaces,
    _ keeps: (Value, DeclaredPath) -> Bool
  ) throws(EngineError) {
    for other in Place.own where other != used {
      let planned = try read(recorded(path, in: other), places)
      guard let value = planned.value else { continue }
      ledger.before[path]?.others.removeAll { $0.place == other }
      ledger.before[path]?.others.append(Self.before(path, in: other, planned, keeps))
      add(path, other, .set, from: value, to: nil, text: nil)
    }
  }

  /// Gives the user's other lists back what a key had there that was declared absent, unless
  /// somebody has set it there since.
  private mutating func restoreOthers(
    of path: DeclaredPath, _ before: Ledger.Before, _ places: RememberedPlaces
  ) throws(EngineError) {
    for other in before.others {
      guard other.isKept, try read(recorded(path, in: other.place), places).value == nil else {
        continue
      }
      add(path, other.place, .restored, from: nil, to: other.value, text: other.text)
    }
  }

  /// What a path has in a place before it is declared, as far as it may be kept.
  private static func before(
    _ path: DeclaredPath, in place: Place, _ planned: Planned,
    _ keeps: (Value, DeclaredPath) -> Bool
  ) -> Ledger.Before {
    var found = Ledger.Before(place: place, value: planned.value?.part(path))
    if path.isWhole { found.text = planned.text }
    if let value = found.value, path.element != nil {
      let elements = planned.value?.part(path.members)?.elements ?? []
      found.times = min(elements.count { $0 == value }, Ledger.Before.mostTimes)
    }
    if let value = found.value, !keeps(value, path) {
      (found.value, found.text, found.isKept) = (nil, nil, false)
    }
    return found
  }

  /// What a path has before it is declared, or what somebody has set since.
  private func found(
    _ path: DeclaredPath, in place: Place, _ planned: Planned, _ before: Ledger.Before?,
    _ places: RememberedPlaces, _ keeps: (Value, DeclaredPath) -> Bool
  ) throws(EngineError) -> Ledger.Before {
    var found = Self.before(path, in: place, planned, keeps)
    found.others = before?.others ?? []
    let location = Location(place, path.domain)
    let isThere = try places.exists(location)
    found.hasMadeDomain = before?.hasMadeDomain ?? (!isThere || madeBefore.contains(location))
    return found
  }

  /// The place of a path: the one that it was declared in; but a key that was moved, to the cloud
  /// or from there, is where it is now.
  private func place(
    of path: DeclaredPath, _ before: Ledger.Before?, _ old: Ledger, _ place: Place?,
    _ places: RememberedPlaces
  ) throws(EngineError) -> Place {
    if let place { return place }
    guard let before else {
      if ledger.isOfHost(path) { return .host }
      return try ChangeRules(places).writePlace(of: path.key, in: path.domain)
    }
    if try places.find(path.key, at: Location(before.place, path.domain)) != nil {
      return before.place
    }
    for own in Place.own {
      let stored = try places.find(path.key, at: Location(own, path.domain))
      if let stored, isGiven(path, stored.value, old) { return own }
    }
    return before.place
  }

  /// Takes back what was given to keys that another list of the user's has too by now, and that
  /// comes before the one in which they were declared: programs read that one, so they are declared
  /// there.
  /// - Returns: the paths.
  private mutating func releaseShadowed(
    _ paths: Set<DeclaredPath>, _ old: Ledger, _ places: RememberedPlaces
  ) throws(EngineError) -> Set<DeclaredPath> {
    var moved: Set<DeclaredPath> = []
    // An array goes as a whole, with the elements of other declarations.
    let arrays = Set(paths.lazy.filter { $0.element != nil }.map(\.array))
    let all =
      arrays.isEmpty
      ? paths
      : paths.union(
        ledger.paths.filter { path in
          path.element != nil && arrays.contains(path.array)
        })
    for path in old.inOrder(all) where path.element != nil || ledger.effective(path)?.value != nil {
      guard let before = ledger.before[path],
        // Else the key was moved, to the cloud or from there, with what was given to it.
        try self.place(of: path, before, old, nil, places) == before.place,
        // Its error is the one that `declare` throws.
        let used = ledger.isOfHost(path)
          ? .host : try? ChangeRules(places).writePlace(of: path.key, in: path.domain),
        used != before.place
      else { continue }
      if !ledger.isOfHost(path) {
        guard try places.find(path.key, at: Location(used, path.domain)) != nil else { continue }
      }
      moved.insert(path)
      try release(path, old, places, isMoved: true)
    }
    return moved
  }

  /// Whether a key has what the ledger has given to the path.
  private func isGiven(_ path: DeclaredPath, _ whole: Value?, _ old: Ledger) -> Bool {
    guard let declared = old.effective(path) else { return false }
    if !path.isWhole, let whole, !whole.canHave(path) { return false }
    return whole?.part(path) == declared.value
  }

  /// Whether a forced value is the declared one. Throws where it is a different one.
  private func isForced(
    _ path: DeclaredPath, to value: Value?, _ places: RememberedPlaces
  ) throws(EngineError) -> Bool {
    let forced = try places.findFirst(path.key, in: SearchList.forced(path.domain))
    guard let forced else { return false }
    guard forced.stored.value.part(path) == value else {
      throw EngineError(
        .forced, domain: path.domain, key: path.key,
        "the administrator has set it to something else, so nothing was changed")
    }
    return true
  }

  /// - Parameter isMoved: whether it is declared in another place afterwards.
  private mutating func release(
    _ path: DeclaredPath, _ old: Ledger, _ places: RememberedPlaces, isMoved: Bool = false
  ) throws(EngineError) {
    guard let before = ledger.before.removeValue(forKey: path) else { return }
    try restoreOthers(of: path, before, places)
    let known = before.place.isOwn ? nil : before.place
    let place = try self.place(of: path, before, old, known, places)
    let key = recorded(path, in: place)
    let whole = try read(key, places).value
    let present = whole?.part(path)
    if path.element != nil {
      arrays[path.array] = place
      if whole?.part(path.members) == nil { return }
    }
    let isOurs = isGiven(path, whole, old)
    // A dictionary that somebody has removed is not made again for one of its members.
    let isGone = !path.members.isEmpty && whole == nil && old.effective(path) == .absent
    if isOurs, before.isKept, !isGone {
      let outcome = isMoved ? Outcome.moved : .restored
      givenBack[path] = outcome
      guard present != before.value else { return }
      add(
        path, place, outcome, from: present, to: before.value, text: before.text,
        times: before.times)
      if before.hasMadeDomain { made.insert(key.location) }
    } else if !isMoved, present != nil || whole != nil && !isOurs {
      steps.append(
        Step(
          path: path, place: place, outcome: isOurs ? .notKept : .changedSince,
          present: present ?? whole, goal: present ?? whole))
    }
  }

  // MARK: - Dictionaries of parts

  /// Keeps what a part takes the place of: a value that is not a dictionary, or an empty one.
  private mutating func noteContainers(
    of path: DeclaredPath, in place: Place, _ whole: Value?, _ keeps: (Value, DeclaredPath) -> Bool
  ) {
    for count in path.members.indices {
      let container = path.prefix(count)
      guard let value = whole?.part(container.members), keeps(value, container) else { continue }
      if case .dictionary(let parts) = value, !parts.isEmpty { continue }
      ledger.before[container] = Ledger.Before(place: place, value: value)
    }
  }

  /// Puts what stood in the place of a dictionary back, where no part of it is declared any more
  /// and nobody has added one.
  private mutating func restoreContainers(
    _ old: Set<DeclaredPath>, _ declared: Set<DeclaredPath>
  ) {
    for (container, before) in ledger.before.sorted(by: { $0.key < $1.key })
    where before.base == nil && !old.contains(container) {
      guard !declared.contains(where: { $0.isPart(of: container) }) else { continue }
      ledger.before[container] = nil
      let part = givenBack.filter { $0.key.isPart(of: container) }.min { $0.key < $1.key }
      let key = recorded(container, in: before.place)
      guard let outcome = part?.value, let planned = keys[key],
        [nil, [:]].contains(planned.value?.part(container.members))
      else { continue }
      keys[key]?.value.replace(container.members, with: before.value)
      steps.append(
        Step(
          path: container, place: before.place, outcome: outcome, present: nil,
          goal: before.value))
    }
  }

  // MARK: - Arrays of elements

  /// Gives a place that lacks the array of an element a copy of what programs read, unless the
  /// element is not to be there, and is not. A value that is no array is replaced, and kept.
  /// - Returns: whether it has made an array.
  private mutating func makeArray(
    for path: DeclaredPath, _ declared: Declaration.Declared, in place: Place,
    _ places: RememberedPlaces, _ keeps: (Value, DeclaredPath) -> Bool
  ) throws(EngineError) -> Bool {
    guard let element = path.element else { return false }
    arrays[path.array] = place
    let key = recorded(path, in: place)
    let planned = try read(key, places)
    let present = planned.value?.part(path.members)
    if present?.elements != nil { return false }
    let read = try present == nil ? places.inherited(path, besides: place, inherited) : nil
    let base = read?.part(path.members)?.elements ?? []
    guard declared != .absent || base.contains(element.value) else { return false }
    noteContainers(of: path, in: place, planned.value, keeps)
    var before = try found(path.array, in: place, planned, nil, places, keeps)
    before.base = base
    ledger.before[path.array] = before
    keys[key]?.value.replace(path.members, with: .array(base))
    keys[key]?.text = nil
    return true
  }

  /// Takes the arrays away that a declaration has made, where they are as they were begun with, and
  /// no element is declared to be in them.
  /// - Parameters:
  ///   - declared: the paths that are declared where they are.
  ///   - isMoved: whether others are declared in another place.
  private mutating func restoreArrays(
    _ declared: Set<DeclaredPath>, _ places: RememberedPlaces, isMoved: Bool = false,
    keepsEmpty: Bool = false
  ) throws(EngineError) {
    let parts =
      arrays.isEmpty
      ? [:]
      : Dictionary(
        grouping: declared.filter { $0.element != nil }, by: \.array)
    for (array, place) in arrays.sorted(by: { $0.key < $1.key }) {
      guard let before = ledger.before[array], let base = before.base else { continue }
      let elements = parts[array] ?? []
      if elements.isEmpty { ledger.before[array] = nil }
      guard before.isKept, !elements.contains(where: { ledger.effective($0)?.value != nil })
      else { continue }
      let key = recorded(array, in: place)
      guard let present = try read(key, places).value?.part(array.members),
        present.elements?.isSame(as: base) == true
      else { continue }
      ledger.before[array] = nil
      keys[key]?.value.replace(array.members, with: before.value, keepsEmpty: keepsEmpty)
      keys[key]?.text = array.members.isEmpty ? before.text : nil
      if before.hasMadeDomain { made.insert(key.location) }
      let isSaid = steps.contains { $0.isChange && $0.path.array == array && $0.path != array }
      if isSaid, before.value == nil { continue }
      steps.append(
        Step(
          path: array, place: place, outcome: isMoved ? .moved : .restored, present: present,
          goal: before.value))
    }
  }

  // MARK: - Keys

  /// Where the key of a path is in a place.
  private func recorded(_ path: DeclaredPath, in place: Place) -> RecordedKey {
    RecordedKey(path.key, at: Location(place, path.domain))
  }

  private mutating func read(
    _ key: RecordedKey, _ places: RememberedPlaces
  ) throws(EngineError) -> Planned {
    if let known = keys[key] { return known }
    let stored = try places.find(key.key, at: key.location)
    let found = Planned(stored: stored, value: stored?.value, text: stored?.text)
    keys[key] = found
    return found
  }

  private mutating func add(
    _ path: DeclaredPath, _ place: Place, _ outcome: Outcome, from present: Value?,
    to goal: Value?, text: [UInt8]?, times: Int = 1
  ) {
    let key = recorded(path, in: place)
    steps.append(
      Step(path: path, place: place, outcome: outcome, present: present, goal: goal))
    // A dictionary whose last part is declared absent stays, empty (RFC 7396). So one that is gone
    // later was removed by somebody.
    keys[key]?.value.replace(path, with: goal, times: times, keepsEmpty: outcome == .set)
    keys[key]?.text = path.isWhole ? text : nil
  }

  /// Makes the transaction. What was there before comes back whatever a schema says of it.
  private mutating func finish(
    _ stored: LedgerPart, at location: Location, isJudged: Bool
  ) {
    var expected: [Intent] = []
    var declared: [Intent] = isJudged ? [.judged] : []
    let set = Set(steps.filter { $0.outcome == .set }.map { recorded($0.path, in: $0.place) })
    for (key, planned) in keys.sorted(by: { $0.key.text < $1.key.text }) {
      expected.append(.expect(key.key, key.location, planned.stored?.value))
      guard planned.value != planned.stored?.value else { continue }
      let edit = Self.edit(key.key, key.location, planned.value, planned.text)
      if set.contains(key) { declared.append(edit) } else { intents.append(edit) }
    }
    emptied = Array(made)
    let changes = stored.changes(to: ledger, at: location)
    expected += changes.expected
    intents += changes.edits
    // `carryOut` looks whether other declarations are in it.
    if changes.isEmptied { emptied.append(location) }
    intents += declared
    if intents.contains(where: { $0 != .judged }) {
      intents = expected + intents
    } else {
      intents = []
    }
  }

  private static func edit(
    _ key: Key, _ location: Location, _ value: Value?, _ text: [UInt8]?
  ) -> Intent {
    let edit: Edit =
      value.map { .set(key, $0, text.map { .exact($0) } ?? .canonical) } ?? .remove(key)
    return .edit(location, edit)
  }
}
