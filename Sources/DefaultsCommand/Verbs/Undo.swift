import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `undo`: takes changes of the history back, all or none.
///
/// What counts of the selected changes is their net effect on each key. A key that is now as they left
/// it gets the value that it had before them, and the text of it. One that somebody has changed since
/// is a conflict, and then nothing is changed. An undo is a change like any other: it can be undone.
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
      let plan = UndoPlan(try HistoryView(store).records, selection)
      if plan.effects.isEmpty {
        Output.write(line: "defaults: there is no such change; `history` shows them", to: .errors)
        return 1
      }
      let (steps, refused) = try plan.steps(store.places, over: conflicts == .over)
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
}
