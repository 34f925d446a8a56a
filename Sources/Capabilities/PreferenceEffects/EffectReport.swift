import PreferenceModel
import PropertyList
import StoreAccess
import SystemCalls

/// What is known of the rules of a store: what `prefs effects` and `.prefs/effects` show.
public enum EffectReport {
  /// Returns a dictionary for each rule, by name: `name`, `place`, `state` (`up to date`,
  /// `waiting`, `failed` or `ignored`) and, as far as known, `problem`, `time`, `milliseconds`,
  /// `end`, `file`, `keys` (the first ones) and `count`. Waits for disks.
  public static func values(
    _ places: some StoredPlaces, _ layout: StoreLayout
  ) throws(EngineError) -> [ValueDictionary] {
    let entries = try EffectRules.read(places, layout)
    let state = try EngineError.wrapping { () throws(SystemError) in
      try EffectStateFile(layout).read()
    }
    return entries.map { values(of: $0, state) }
  }

  private static func values(
    of entry: EffectRules.Entry, _ state: EffectState?
  ) -> ValueDictionary {
    var values: ValueDictionary = [
      "name": .string(entry.name), "place": .string(entry.place.rawValue),
    ]
    let known = state?.rules[entry.name]
    let run = known?.last
    values["problem"] = (entry.problem ?? run?.problem).map { .string($0) }
    let isDone = state.flatMap { state in
      known?.done.map { $0.rule == EffectValues(entry.name, entry.value, [:], key: state.key).rule }
    }
    let word =
      entry.rule == nil
      ? "ignored" : run?.problem != nil ? "failed" : isDone == true ? "up to date" : "waiting"
    values["state"] = .string(word)
    guard let run else { return values }
    values["time"] = .string(run.time.text)
    values["file"] = run.file.map { .string($0) }
    values["keys"] = .array(run.keys.map { .string($0) })
    values["count"] = .integer(WideInteger(Int64(run.count)))
    guard let end = run.end else { return values }
    values["end"] = .string(end)
    values["milliseconds"] = .integer(WideInteger(run.milliseconds))
    return values
  }

  /// Returns a line for each of the dictionaries.
  public static func lines(_ reports: [ValueDictionary]) -> [String] {
    let names = reports.map { ($0["name"]?.string ?? "").printable() }
    let widest = names.map(\.count).max() ?? 0
    return zip(names, reports).map { name, report in
      let padded = name + String(repeating: " ", count: widest - name.count)
      let state = report["state"]?.string ?? ""
      let detail = detail(of: report)
      return "\(padded)   \(state)" + (detail.isEmpty ? "" : "   " + detail.printable())
    }
  }

  private static func detail(of report: ValueDictionary) -> String {
    let state = report["state"]?.string
    if state == "ignored" { return report["problem"]?.string ?? "" }
    var parts: [String] = []
    if let problem = report["problem"]?.string { parts.append(problem) }
    if let file = report["file"]?.string { parts.append("wrote \(file)") }
    if let end = report["end"]?.string, let time = report["time"]?.string {
      let keys = report["keys"]?.strings ?? []
      var text = "ran \(time), \(report["milliseconds"]?.signed ?? 0) ms, \(end)"
      let more = max(0, report["count"]?.signed ?? 0) - Int64(keys.count)
      if !keys.isEmpty { text += ", for \(keys.joined(separator: ", "))" }
      if more > 0 { text += " and \(more) more" }
      parts.append(text)
    }
    return parts.joined(separator: "; ")
  }
}
