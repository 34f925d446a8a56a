import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `undo`: takes changes of the history back, all or none.
///
/// What counts of the selected changes is their net effect on each key. A key that is now as they
/// left it gets the value that it had before them, and the text of it. One that somebody has
/// changed since is a conflict, and then nothing is changed. An undo is a change like any other: it
/// can be undone.
enum Undo {
  /// What is done with keys that were changed later.
  private enum Conflicts { case refuse, over, skip }

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    var selection = HistorySelection()
    var conflicts = Conflicts.refuse
    var isDryRun = false
    while let word = arguments.first {
      if try selection.read(&arguments) { continue }
      switch word {
      case "--over": conflicts = .over
      case "--skip": conflicts = .skip
      case "--dry-run": isDryRun = true
      case _ where UInt64(word) != nil && selection.number == nil: selection.number = UInt64(word)
      case _ where !word.hasPrefix("--") && selection.domain == nil:
        try selection.readTarget(&arguments)
        continue
      default: throw .usage
      }
      _ = try arguments.removeNext()
    }
    guard selection.isLimited || selection.number != nil else { throw .usage }
    return try undo(selection, conflicts, isDryRun)
  }

  private static func undo(
    _ selection: HistorySelection, _ conflicts: Conflicts, _ isDryRun: Bool
  ) throws(Refusal) -> Int32 {
    do throws(EngineError) {
      let store = try StoreView(via: .undo)
      let changes = NetChange.all(try HistoryView(store).records, selection)
      if changes.isEmpty {
        Output.write(line: "defaults: there is no such change; `history` shows them", to: .errors)
        return 1
      }
      let (steps, refused) = try steps(changes, store.places, over: conflicts == .over)
      let isRefused = !refused.isEmpty && conflicts != .skip
      for why in refused {
        let end = isRefused ? "nothing was changed" : "it stays as it is"
        Output.write(line: "defaults: \(why); \(end)", to: .errors)
      }
      if isRefused { return 1 }
      let intents = steps.flatMap(\.intents)
      if isDryRun { try store.check(intents) } else { try store.apply(intents) }
      for step in steps { Output.write(line: step.line) }
      return 0
    } catch {
      throw Refusal("Could not undo; nothing was changed", error)
    }
  }

  /// What is done with a key.
  fileprivate struct Step {
    let intents: [Intent]
    let line: String
  }

  /// Returns what must be done, and why what cannot be: a line for each key that was changed by
  /// others since, or of which the value before is not kept. Throws where a list cannot be read,
  /// and for a key that the administrator has set.
  /// - Parameter over: whether later changes are taken back, too.
  private static func steps(
    _ changes: [NetChange], _ places: some StoredPlaces, over: Bool
  ) throws(EngineError) -> (steps: [Step], refused: [String]) {
    var steps: [Step] = []
    var refused: [String] = []
    for change in changes {
      let stored = try places.find(change.key, at: change.location)
      if change.before.isKnown, change.before.isSame(as: stored) { continue }
      let present = stored?.value
      if let why = change.conflict(present, over: over) {
        refused.append("\(change.location.domain) \(change.key): \(why)")
      } else {
        steps.append(try change.step(from: present, places))
      }
    }
    return (steps, refused)
  }
}

extension NetChange {
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
  ) throws(EngineError) -> Undo.Step {
    let domain = location.domain
    if location.place.isOwn { _ = try ChangeRules(places).writePlace(of: key, in: domain) }
    var change = Intent.remove(key, domain)
    if case .list(_, let text) = before, let value = before.value {
      change = .set(key, domain, value, text.map { .exact($0) } ?? .canonical)
    }
    let line = "\(domain) \(key): \(Self.text(present)) -> \(before.text)"
    return Undo.Step(
      intents: [.expect(key, location, present), .at(location.place, change)], line: line)
  }

  private static func text(_ value: Value?) -> String {
    value.map { ValueDescription.line(of: $0, false) } ?? "(none)"
  }
}

extension RecordedValue {
  /// Whether a key has this value, and the text that was written for it.
  fileprivate func isSame(as stored: StoredValue?) -> Bool {
    guard case .list(_, let text) = self else { return stored == nil }
    return stored?.value == value && stored?.text == text
  }
}
