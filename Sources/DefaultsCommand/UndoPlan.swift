import PreferenceHistory
import PreferenceModel
import PropertyList

/// What takes selected changes back: the net effect of them on each key.
struct UndoPlan {
  /// What selected changes have made of a key.
  struct Effect {
    let location: Location
    let key: Key
    /// What was there before the first of them.
    let before: RecordedValue
    /// What the last of them has left.
    var after: RecordedValue
    /// The number of the last other change since the first of them; nil: there is none.
    var other: UInt64?
    /// The number of an other change that is between two of them; nil: none is.
    var between: UInt64?
  }

  /// What is done with a key.
  struct Step {
    let intents: [Intent]
    let line: String
  }

  /// The effects, in the order in which the keys were first changed.
  private(set) var effects: [Effect] = []

  private struct Place: Hashable {
    let location: Location
    let key: Key
  }

  /// - Parameter records: the whole history, the oldest change first.
  init(_ records: [HistoryRecord], _ selection: HistorySelection) {
    var known: [Place: Int] = [:]
    for record in records {
      let isMeant = selection.contains(record)
      for item in record.items {
        let place = Place(location: item.location, key: item.key)
        if isMeant, selection.contains(item) {
          if let index = known[place] {
            effects[index].after = item.after
            effects[index].between = effects[index].other
          } else {
            known[place] = effects.count
            effects.append(
              Effect(
                location: item.location, key: item.key, before: item.before, after: item.after))
          }
        } else if let index = known[place] {
          effects[index].other = record.number
        }
      }
    }
  }

  /// Returns what must be done, and why what cannot be: a line for each key that was changed by others
  /// since, or of which the value before is not kept. Throws where a list cannot be read, and for a
  /// key that the administrator has set.
  /// - Parameter over: whether later changes are taken back, too.
  func steps(
    _ places: some StoredPlaces, over: Bool
  ) throws(EngineError) -> (steps: [Step], refused: [String]) {
    var steps: [Step] = []
    var refused: [String] = []
    for effect in effects {
      let present = try places.find(effect.key, at: effect.location)?.value
      if effect.before.isKnown, present == effect.before.value { continue }
      if let why = effect.conflict(present, over: over) {
        refused.append("\(effect.location.domain) \(effect.key): \(why)")
      } else {
        steps.append(try effect.step(from: present, places))
      }
    }
    return (steps, refused)
  }
}

extension UndoPlan.Effect {
  /// Why the key cannot be taken back; nil: it can.
  fileprivate func conflict(_ present: Value?, over: Bool) -> String? {
    guard before.isKnown else { return "the value before is not kept" }
    if over { return nil }
    guard after.isKnown else { return "its values are not kept" }
    guard present == after.value else {
      let by = other.map { ": changed again by \($0)" } ?? ""
      return "is \(Self.text(present)), not \(after.text)\(by)"
    }
    return between.map { "was changed in between by \($0)" }
  }

  /// Sets the value before, if the present one is still there then.
  fileprivate func step(
    from present: Value?, _ places: some StoredPlaces
  ) throws(EngineError) -> UndoPlan.Step {
    let domain = location.domain
    if location.place.isOwn { _ = try ChangeRules(places).writePlace(of: key, in: domain) }
    var change = Intent.remove(key, domain)
    if case .list(_, let text) = before, let value = before.value {
      change = .set(key, domain, value, text.map { .exact($0) } ?? .canonical)
    }
    let line = "\(domain) \(key): \(Self.text(present)) -> \(before.text)"
    return UndoPlan.Step(
      intents: [.expect(key, location, present), .at(location.place, change)], line: line)
  }

  private static func text(_ value: Value?) -> String {
    value.map { ValueDescription.line(of: $0, false) } ?? "(none)"
  }
}
