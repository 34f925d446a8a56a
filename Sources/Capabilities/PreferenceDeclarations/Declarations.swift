import PreferenceHistory
import PreferenceModel
import PropertyList
import Synchronization
import SystemCalls

/// The ledger that was read last, which is as large as all that is declared, and is needed several
/// times for one request of a mount.
///
/// Threads: any. One lock, under which nothing blocks.
package final class LedgerMemory: Sendable {
  private let kept = Mutex<(modified: Timestamp?, ledger: Ledger)?>(nil)

  package init() {}

  /// The ledger with that modification time, which each change makes later; nil if another one, or
  /// none, is kept.
  fileprivate func ledger(of modified: Timestamp?) -> Ledger? {
    kept.withLock { kept in kept.flatMap { $0.modified == modified ? $0.ledger : nil } }
  }

  fileprivate func keep(_ ledger: Ledger, of modified: Timestamp?) {
    kept.withLock { $0 = (modified, ledger) }
  }
}

/// The declarations of a store, in one place.
///
/// Promises: a change is one transaction, which is planned again where somebody else has changed
/// something in between; a domain that a declaration has made, and that has no keys afterwards, is
/// then removed by another one. A plan alone changes nothing, and costs what is asked for, however
/// much else is declared.
///
/// Threads: any. Calls wait as those of the places do.
package struct Declarations: Sendable {
  private let places: any PersistentPlaces
  /// The place that is declared; nil means the user's, as a change of each key chooses it.
  package let place: Place?

  private let memory: LedgerMemory?
  private let inherited: Inherited?

  /// What programs read for a key of a domain where a place lacks it.
  package typealias Inherited =
    @Sendable (Key, DomainName, Place) throws(EngineError) -> Value?

  /// - Parameters:
  ///   - memory: keeps the ledger from one use to the next.
  ///   - inherited: what elements of an array that a place lacks join; nil means what the lists
  ///     have that follow the place in the search list.
  package init(
    _ places: any PersistentPlaces, in place: Place? = nil, memory: LedgerMemory? = nil,
    inherited: Inherited? = nil
  ) {
    (self.places, self.place, self.memory) = (places, place, memory)
    self.inherited = inherited
  }

  /// Where the ledger is.
  package var location: Location { Location(place ?? .user, Ledger.domain) }

  /// Returns the ledger. Throws EINVAL where it is damaged. Cost: O(declared paths), which are read
  /// anew unless the memory has them.
  package func ledger() throws(EngineError) -> Ledger {
    guard let memory else { return try Ledger(places.values(at: location)) }
    // Asked first: a change meanwhile makes what is kept count for an earlier time than its own.
    let modified = try places.modified(location)
    if let known = memory.ledger(of: modified) { return known }
    let ledger = try Ledger(places.values(at: location))
    memory.keep(ledger, of: modified)
    return ledger
  }

  /// The deadlines of the place's declarations. Cost: a look-up.
  package func deadlines() throws(EngineError) -> [String: Deadline] {
    let value = try places.find(Ledger.deadlinesKey, at: location)?.value
    return (value?.dictionary ?? [:]).reduce(into: [:]) { $0[$1.key.string] = Deadline($1.value) }
  }

  /// What is asked for.
  package enum Request: Sendable {
    /// The declaration declares exactly this, and takes precedence of these others. The text is
    /// that of the document, if it was written as a file. A declaration that adopts what somebody
    /// has made of its values sets none, and keeps its deadline.
    case declare(
      String, Declaration, over: Set<String>, text: Ledger.Text? = nil, isAdopting: Bool = false)
    /// The declaration ends. Throws `.noSuchKey` if there is none of that name.
    case undeclare(String)
    /// The declaration, which a request before this one makes, counts for that many nanoseconds,
    /// unless it is confirmed; then it is again what it was, and nobody has changed since.
    case limit(String, nanoseconds: Int64, isLease: Bool, from: ClockReading)
    /// The declaration has no deadline any more. Throws `.noSuchKey` if it has none.
    case confirm(String)
    /// The deadline of the declaration is met, if it has one that is over.
    case expire(String, at: ClockReading)
  }

  /// Plans what is asked for, one after the other. Throws EPERM for a conflict with another
  /// declaration, and names it.
  /// - Parameter isJudged: whether schemas may refuse what is declared. What was there before comes
  ///   back in any case.
  package func plan(
    _ requests: [Request], isJudged: Bool = false
  ) throws(EngineError) -> DeclarationPlan {
    let stored = try part(of: requests)
    let old = try Ledger(stored.values)
    var new = old
    new.unsweep()
    var (asked, yielding): (Set<String>, Set<String>) = ([], [])
    // A name that is declared too is not removed, in whichever order a rename says both.
    let declared = requests.compactMap {
      if case .declare(let name, _, _, _, _) = $0 { name } else { nil }
    }
    for request in requests {
      switch request {
      case .declare(let name, _, _, _, let isAdopting):
        asked.insert(name)
        if isAdopting { yielding.insert(name) }
      case .undeclare(let name):
        if declared.contains(name) { continue }
        asked.insert(name)
      case .limit(let name, let length, let isLease, let start):
        try new.limit(name, length, isLease, start, old)
      case .confirm(let name): try new.confirm(name)
      case .expire(let name, let now):
        guard try new.expire(name, at: now) else { continue }
        asked.insert(name)
        yielding.insert(name)
      }
      try refuseVariables(of: request)
      try new.note(request)
    }
    for name in declared { try new.refuseConflicts(of: name) }
    new.over = new.over.filter { !$0.value.isEmpty }
    let settings = try settings()
    new.sweep(old.sweptKeys)
    new.sweep(try looseKeys(new, of: asked, settings, places))
    return try DeclarationPlan(
      from: old, to: new, for: asked, stored: stored, in: place, places, isJudged: isJudged,
      yielding: yielding, inherited: inherited
    ) { value, path in
      settings.keeps(path.wrapping(value), of: path.key, in: path.domain)
    }
  }

  /// Throws where a variable would be one value for all users, or for all machines, of a place.
  private func refuseVariables(of request: Request) throws(EngineError) {
    guard let place, case .declare(_, let declaration, _, _, _) = request,
      let names = declaration.variables?.values.keys
    else { return }
    let differ = names.filter { place.isMachineWide ? !$0.isOfHost : $0.isOfHost }
    guard let name = differ.map(\.rawValue).min(), place.isMachineWide || place == .user else {
      return
    }
    throw EngineError(
      .system(.invalidArgument), domain: declaration.hostKeys.first?.domain,
      "${\(name)} is different for each \(place.isMachineWide ? "user" : "machine"), and the place "
        + "\(place.rawValue) has one value for all; leave the variable or --place out")
  }

  /// What may be kept of values.
  private func settings() throws(EngineError) -> HistorySettings {
    HistorySettings(
      try places.findFirst(HistorySettings.key, in: HistorySettings.locations)?.stored.value)
  }

  /// The keys that are in the place, and not in a document, of the domains that these declarations
  /// declare exactly, or of all that they name (`inAll`). What could not come back is left alone,
  /// and so are the keys of the cloud, those that others have set, and those that programs keep for
  /// themselves. Cost: O(keys of these domains).
  private func looseKeys(
    _ ledger: Ledger, of names: some Sequence<String>, inAll: Bool = false,
    _ settings: @autoclosure () throws(EngineError) -> HistorySettings,
    _ places: some StoredPlaces
  ) throws(EngineError) -> Set<DeclaredPath> {
    let domains = names.reduce(into: Set<DomainName>()) {
      $0.formUnion(
        (inAll ? ledger.declarations[$1]?.domains : ledger.declarations[$1]?.exact) ?? [])
    }
    if domains.isEmpty { return [] }
    let (named, settings) = (ledger.namedKeys, try settings())
    var keys: Set<DeclaredPath> = []
    for location in domains.flatMap({ domain in
      (place.map { [$0] } ?? [.host, .user]).map { Location($0, domain) }
    }) {
      for key in try places.keys(at: location) {
        let path = DeclaredPath(location.domain, key)
        guard !named.contains(path), !HistoryFilter.isState(RecordedKey(key, at: location)),
          try isLoose(key, at: location, settings, places)
        else { continue }
        keys.insert(path)
      }
    }
    return keys
  }

  /// Whether a key can be taken away, and come back.
  private func isLoose(
    _ key: Key, at location: Location, _ settings: HistorySettings, _ places: some StoredPlaces
  ) throws(EngineError) -> Bool {
    guard let stored = try places.find(key, at: location), stored.metadata.setter == nil,
      settings.keeps(stored.value, of: key, in: location.domain)
    else { return false }
    if place != nil { return true }
    let others = SearchList.forced(location.domain) + [Location(.cloud, location.domain)]
    return try places.findFirst(key, in: others) == nil
  }

  /// What of the ledger concerns the requests.
  private func part(of requests: [Request]) throws(EngineError) -> LedgerPart {
    var (named, domains): (Set<String>, Set<DomainName>) = ([], [])
    for request in requests {
      switch request {
      case .declare(let name, let declaration, let others, _, _):
        named.formUnion(others.union([name]))
        domains.formUnion(declaration.document.keys.lazy.map { DomainName($0.string) })
      case .undeclare(let name), .limit(let name, _, _, _), .confirm(let name),
        .expire(let name, _):
        named.insert(name)
      }
    }
    return try LedgerPart(
      of: named.filter(Ledger.canName), domains, at: location, in: places)
  }

  /// How often a plan is made again.
  private static let mostAttempts = 100

  /// Carries out what is asked for.
  /// - Returns: the plan that was carried out, and the changes.
  package func carryOut(
    _ requests: [Request], isJudged: Bool = false, by author: Author, applying apply: Apply? = nil
  ) throws(EngineError) -> (plan: DeclarationPlan, changeset: Changeset) {
    for _ in 1..<Self.mostAttempts {
      let plan = try plan(requests, isJudged: isJudged)
      do throws(EngineError) {
        return (plan, try carryOut(plan, by: author, apply))
      } catch  where error.reason == .changedMeanwhile {
        continue
      }
    }
    let plan = try plan(requests, isJudged: isJudged)
    return (plan, try carryOut(plan, by: author, apply))
  }

  /// Makes a transaction; for a caller that says of itself who makes it.
  package typealias Apply = ([Intent], Author) throws(EngineError) -> Changeset

  private func carryOut(
    _ plan: DeclarationPlan, by author: Author, _ apply: Apply?
  ) throws(EngineError) -> Changeset {
    if plan.intents.isEmpty { return Changeset() }
    let changeset: Changeset
    if let apply {
      changeset = try apply(plan.intents, author)
    } else {
      changeset = try places.apply(plan.intents, by: author)
    }
    for location in Set(plan.emptied) where location.domain != .global {
      // Somebody may have set a key in between; then it stays. By another author, so that the mount
      // which has made the change hears of this one.
      do throws(EngineError) {
        guard try places.keys(at: location).isEmpty else { continue }
        _ = try places.apply([.at(location.place, .removeDomain(location.domain))], by: .unique())
      } catch {}
    }
    return changeset
  }

  /// Removes what the keys of a domain, or one key, had before they were declared. When they are
  /// declared no more, they stay as they are.
  /// - Returns: how many values there were.
  package func forget(
    of domain: DomainName, _ key: Key?, by author: Author
  ) throws(EngineError) -> Int {
    for _ in 0..<Self.mostAttempts {
      let stored = try LedgerPart(of: [], [domain], at: location, in: places)
      var ledger = try Ledger(stored.values)
      let count = ledger.forget { path in
        path.domain == domain && (key == nil || path.key == key)
      }
      guard count > 0 else { return 0 }
      let (expected, edits, _) = stored.changes(to: ledger, at: location)
      do throws(EngineError) {
        _ = try places.apply(expected + edits, by: author)
        return count
      } catch  where error.reason == .changedMeanwhile {
        continue
      }
    }
    throw .changedMeanwhile(Ledger.key(of: domain), location.domain)
  }

  // MARK: - Drift

  /// A declared path that is not as declared, or whose list cannot be read.
  package struct Drift: Sendable {
    package let path: DeclaredPath
    package let place: Place
    package let names: [String]
    package let declared, present: Value?
    /// Why the list cannot be read; nil if it can be read.
    package let failure: String?

    /// A line that says so.
    package var line: String {
      let lines = ValueDescription.lines(from: declared, to: present)
      return "\(path): declared \(lines.old) (\(names.joined(separator: ", "))), "
        + (failure.map { "cannot be read: \($0)" } ?? "is \(lines.new)")
    }
  }

  /// The paths that are not as they were declared: somebody has changed them since, or a profile or
  /// another list of the user's gives something else. Those of a list that cannot be read are among
  /// them.
  package func drift() throws(EngineError) -> [Drift] {
    var ledger = try ledger()
    let places = RememberedPlaces(places)
    let names = ledger.declarations.keys
    ledger.sweep(try looseKeys(ledger, of: names, try settings(), places))
    var all: [Drift] = []
    for path in ledger.paths.sorted() {
      guard let declared = ledger.effective(path) else { continue }
      var present: (value: Value, place: Place)?
      var failure: String?
      do throws(EngineError) {
        present = try self.present(path, declared, places)
      } catch  where error.reason == .unreadable {
        failure = error.sentence
      }
      let value = present?.value.part(path)
      if failure == nil, value == declared.value { continue }
      all.append(
        Drift(
          path: path, place: present?.place ?? ledger.before[path]?.place ?? place ?? .user,
          names: ledger.names(declaring: path), declared: declared.value, present: value,
          failure: failure))
    }
    return all
  }

  /// What the documents of a declaration do not say as it is: its drift, and what may be kept of
  /// values. Cost: that of `drift`.
  /// - Parameter isAll: whether keys of its domains are among that which no document names.
  package func adoptable(
    by name: String, isAll: Bool
  ) throws(EngineError) -> (drift: [Drift], settings: HistorySettings) {
    let own = try ledger().declarations[name]
    // What another declaration takes precedence in is drift from that one's document.
    var drift = try drift().filter {
      $0.names.contains(name) && own?.paths[$0.path]?.value == $0.declared
    }
    let settings = try settings()
    guard isAll else { return (drift, settings) }
    let (known, places) = (Set(drift.map(\.path)), RememberedPlaces(places))
    let loose = try looseKeys(try ledger(), of: [name], inAll: true, settings, places)
    for path in loose.subtracting(known).sorted() {
      guard let found = try present(path, .absent, places) else { continue }
      drift.append(
        Drift(
          path: path, place: found.place, names: [name], declared: nil, present: found.value,
          failure: nil))
    }
    return (drift, settings)
  }

  /// The locations that `drift` looks at.
  package func comparedLocations() throws(EngineError) -> Set<Location> {
    try ledger().domains.reduce(into: []) { $0.formUnion(compared($1)) }
  }

  /// Where a declared value of a domain can be: in the declared place; where that is the user's, in
  /// what forces it, or else in the first of the user's places, as programs read it.
  private func compared(_ domain: DomainName) -> [Location] {
    let own = (place.map { [$0] } ?? Place.own).map { Location($0, domain) }
    return (place == nil ? SearchList.forced(domain) : []) + own
  }

  /// What the key of a path has in the first of those that have it.
  private func present(
    _ path: DeclaredPath, _ declared: Declaration.Declared, _ places: RememberedPlaces
  ) throws(EngineError) -> (value: Value, place: Place)? {
    for location in compared(path.domain) {
      guard let found = try places.find(path.key, at: location) else { continue }
      return (found.value, location.place)
    }
    // An element that is not to be there may come from elsewhere.
    let place = place ?? .user
    guard path.element != nil, declared == .absent,
      let value = try places.inherited(path, besides: place, inherited)
    else { return nil }
    return (value, place)
  }
}

extension Ledger {
  fileprivate mutating func note(_ request: Declarations.Request) throws(EngineError) {
    switch request {
    case .declare(let name, let declaration, let others, let text, let isAdopting):
      guard Self.canName(name) else {
        throw EngineError(
          .system(.invalidArgument),
          "\"\(name)\" cannot name a declaration: no blanks, no slash, no dot at the beginning")
      }
      // A command that declares the same leaves the bytes of the file as they are.
      if text != nil || declarations[name]?.document != declaration.document { texts[name] = text }
      declarations[name] = declaration
      // Who declares it again without a deadline has confirmed it.
      if !isAdopting { deadlines[name] = nil }
      for other in others {
        guard other != name, declarations[other] != nil else { throw Self.missing(other) }
        over[name, default: []].insert(other)
        over[other]?.remove(name)
      }
    case .undeclare(let name):
      guard declarations.removeValue(forKey: name) != nil else { throw Self.missing(name) }
      (over[name], texts[name], deadlines[name]) = (nil, nil, nil)
      for other in over.keys { over[other]?.remove(name) }
    case .limit, .confirm, .expire: break
    }
  }

  // MARK: - Deadlines

  /// - Parameter old: the ledger before the request; what an unconfirmed declaration replaced is
  ///   what its successor replaces.
  fileprivate mutating func limit(
    _ name: String, _ length: Int64, _ isLease: Bool, _ start: ClockReading, _ old: Ledger
  ) throws(EngineError) {
    guard declarations[name] != nil else { throw Self.missing(name) }
    var former = old.declarations[name].map { known in
      Deadline.Former(
        document: known.document, isMerged: known.isMerged, variables: known.variables,
        over: old.over[name] ?? [])
    }
    if let pending = old.deadlines[name] { former = pending.former }
    deadlines[name] = Deadline(
      start: start, length: max(length, 0), isLease: isLease, former: former)
  }

  fileprivate mutating func confirm(_ name: String) throws(EngineError) {
    guard deadlines.removeValue(forKey: name) != nil else {
      throw EngineError(
        .noSuchKey, domain: Self.domain,
        "the declaration \(name) has no deadline: it was confirmed, has ended, or never had one")
    }
  }

  /// - Returns: whether there was a deadline that is over.
  fileprivate mutating func expire(
    _ name: String, at now: ClockReading
  ) throws(EngineError) -> Bool {
    guard let deadline = deadlines[name], deadline.remaining(at: now) == 0 else { return false }
    (deadlines[name], texts[name]) = (nil, nil)
    for other in over.keys { over[other]?.remove(name) }
    guard let former = deadline.former else {
      (declarations[name], over[name]) = (nil, nil)
      return true
    }
    declarations[name] = try Declaration(
      former.document, isMerged: former.isMerged, isStored: true, variables: former.variables)
    over[name] = former.over.filter { declarations[$0] != nil }
    return true
  }

  private static func missing(_ name: String) -> EngineError {
    EngineError(.noSuchKey, domain: domain, "there is no declaration \(name)")
  }

  /// Throws where a declaration and another one say different things.
  fileprivate func refuseConflicts(of name: String) throws(EngineError) {
    guard let conflict = conflicts(of: name).first else { return }
    let values = conflict.names.map { name in
      let declared = declarations[name]?.paths[conflict.path]?.value
      let text = declared.map { ValueDescription.line(of: $0, false) } ?? "absent, or in part"
      return "\(name) (\(text))"
    }
    let isPart = conflict.names.contains { declarations[$0]?.paths[conflict.path] == nil }
    let help =
      isPart
      ? "declare it as a whole, by members, or by elements, in both"
      : "--over \(conflict.names.last ?? "") decides"
    throw EngineError(
      .system(.notPermitted), domain: conflict.path.domain, key: conflict.path.key,
      "it is declared differently by \(values.joined(separator: " and ")), so nothing was changed; "
        + help)
  }
}
