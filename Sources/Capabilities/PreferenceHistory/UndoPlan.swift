import PreferenceModel
import PropertyList

/// What an undo of selected changes does with each key.
///
/// What counts is the net effect of the changes on each key. A key that is now as they left it gets
/// the value that it had before them, and the text of it. One that somebody has changed since is a
/// conflict, and so is a change that has become one with later ones. The plan is carried out as one
/// transaction, which fails where a key has changed since the plan was made. An undo is a change
/// like any other: it can be undone.
package struct UndoPlan: Sendable {
  /// What is done with a key.
  package struct Step: Sendable {
    package let key: RecordedKey
    /// The key's value now; nil if it has none.
    package let present: Value?
    /// What it becomes.
    package let goal: RecordedValue
    package let intents: [Intent]
  }

  /// A key that cannot be taken back, and why.
  package struct Conflict: Sendable {
    package let key: RecordedKey
    package let reason: String
  }

  package private(set) var steps: [Step] = []
  package private(set) var conflicts: [Conflict] = []

  /// The transaction that carries the steps out.
  package var intents: [Intent] { steps.flatMap(\.intents) }

  /// Carries the steps out. A domain that the undone changes have made, by its first key, is gone
  /// then, as it was before them; not one that was made without keys.
  package func apply(
    to places: some PersistentPlaces, by author: Author
  ) throws(EngineError) {
    if steps.isEmpty { return }
    _ = try places.apply(intents, by: author)
    let emptied = Set(steps.filter { $0.goal == .none }.map(\.key.location))
    for location in emptied where location.domain != .global {
      // The owner refuses it where the domain was made without keys, or has another key.
      do throws(EngineError) {
        guard try places.keys(at: location).isEmpty else { continue }
        _ = try places.apply([.at(location.place, .removeDomain(location.domain))], by: author)
      } catch {}
    }
  }

  /// Plans to take the changes back. A key that the administrator has set is a conflict. Throws where
  /// a list cannot be read.
  /// - Parameter over: whether later changes are taken back, too.
  package init(
    _ changes: [NetChange], _ places: some PersistentPlaces, over: Bool
  ) throws(EngineError) {
    for change in changes where !change.key.isNote {
      let stored = try places.find(change.key.key, at: change.key.location)
      if change.before.isKnown, change.before.isSame(as: stored) { continue }
      let setter = stored?.metadata.setter.map { "\($0) has set it" }
      if let reason = setter ?? change.conflict(stored?.value, over: over) {
        conflicts.append(Conflict(key: change.key, reason: reason))
      } else {
        try add(change, from: stored?.value, places)
      }
    }
  }

  private mutating func add(
    _ change: NetChange, from present: Value?, _ places: some PersistentPlaces
  ) throws(EngineError) {
    do throws(EngineError) {
      steps.append(try change.step(from: present, places))
    } catch {
      guard error.reason == .forced else { throw error }
      conflicts.append(Conflict(key: change.key, reason: error.sentence))
    }
  }
}

extension RecordedKey {
  /// Whether the key notes what profiles have set once. An undo leaves it: what is taken back is not
  /// done again.
  var isNote: Bool { location.domain == .settings && key == "AppliedProfiles" }
}

extension NetChange {
  /// Why the key cannot be taken back; nil if it can.
  fileprivate func conflict(_ present: Value?, over: Bool) -> String? {
    if let merged {
      return "the changes \(merged.lowerBound) to \(merged.upperBound) have become one; "
        + "undo \(merged.upperBound) takes all of them back"
    }
    if isOfProfile { return "a profile has set it; install or remove that" }
    guard before.isKnown else { return "the value before is not kept" }
    if over { return nil }
    guard after.isKnown else { return "its values are not kept" }
    guard present == after.value else {
      let by = other.map { ": changed again by \($0)" } ?? ""
      let lines = ValueDescription.lines(from: present, to: after.value)
      return "is \(lines.old), not \(lines.new)\(by)"
    }
    return between.map { "was changed in between by \($0)" }
  }

  /// Sets the value before, if the present one is still there then.
  fileprivate func step(
    from present: Value?, _ places: some PersistentPlaces
  ) throws(EngineError) -> UndoPlan.Step {
    let (name, location) = (key.key, key.location)
    if location.place.isOwn {
      _ = try ChangeRules(places).writePlace(of: name, in: location.domain)
    }
    var change = Intent.remove(name, location.domain)
    if case .list(_, let text) = before, let value = before.value {
      change = .set(name, location.domain, value, text.map { .exact($0) } ?? .canonical)
      // What a profile gives shows when the list has nothing, and goes with the profile.
      if location.place.hasAdditions,
        try places.snapshots(of: [location]).first?.additions[name]?.value == value
      {
        change = .remove(name, location.domain)
      }
    }
    return UndoPlan.Step(
      key: key, present: present, goal: before,
      intents: [.expect(name, location, present), .at(location.place, change)])
  }
}

extension RecordedValue {
  /// Whether a key has this value, and the text that was written for it.
  fileprivate func isSame(as stored: StoredValue?) -> Bool {
    guard case .list(_, let text) = self else { return stored == nil }
    return stored?.value == value && stored?.text == text
  }
}
