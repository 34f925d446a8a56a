import PreferenceModel
import PropertyList
import StoreAccess

/// What is known of the rules of a store: what `prefs effects` and `.prefs/effects` show.
public enum EffectReport {
  /// Returns a dictionary for each rule, by name: `name`, `place`, `state` (`up to date`,
  /// `waiting`, `failed` or `ignored`) and, as far as known, `problem`, `time`, `milliseconds`,
  /// `end`, `file`, `keys` (the first ones) and `count`. Waits for disks.
  /// - Parameter current: the values of a rule's keys now: if they are not those of the last success,
  ///   the rule waits; nil if only the rule itself is compared.
  public static func values(
    _ places: some StoredPlaces, _ layout: StoreLayout,
    current: ((EffectRule) throws(EngineError) -> [EffectKey: Value])? = nil
  ) throws(EngineError) -> [ValueDictionary] {
    let state = try EffectStateFile(layout).read()
    return try EffectRules.read(places, layout).entries.map { entry throws(EngineError) in
      let known = state?.rules[entry.name]
      var values = known?.last ?? [:]
      values["name"] = .string(entry.name)
      values["place"] = .string(entry.place.rawValue)
      var word = "ignored"
      if let rule = entry.rule {
        let now = try current?(rule)
        let digests = state.map { EffectValues(entry.name, entry.value, now ?? [:], key: $0.key) }
        let isDone = now == nil ? digests?.rule == known?.done?.rule : digests == known?.done
        word =
          values["problem"] != nil
          ? "failed" : isDone && known?.done != nil ? "up to date" : "waiting"
      } else {
        values["problem"] = entry.problem.map { .string($0) }
      }
      values["state"] = .string(word)
      return values
    }
  }

  /// Returns a line for each of the dictionaries.
  public static func lines(_ reports: [ValueDictionary]) -> [String] {
    let names = reports.map { ($0["name"]?.string ?? "").printable() }
    let widest = names.map(\.count).max() ?? 0
    return zip(names, reports).map { name, report in
      let padded = name + String(repeating: " ", count: widest - name.count)
      let parts = [padded, report["state"]?.string ?? "", detail(of: report).printable()]
      return parts.filter { !$0.isEmpty }.joined(separator: "   ")
    }
  }

  private static func detail(of report: ValueDictionary) -> String {
    func text(_ key: Key) -> String? { report[key]?.string }
    let problem = text("problem")
    if text("state") == "ignored" { return problem ?? "" }
    var parts = [problem, text("file").map { "wrote \($0)" }].compactMap { $0 }
    if let end = text("end"), let time = text("time") {
      let keys = report["keys"]?.strings ?? []
      let more = max(0, report["count"]?.signed ?? 0) - Int64(keys.count)
      parts.append(
        "ran \(time), \(report["milliseconds"]?.signed ?? 0) ms, \(end)"
          + (keys.isEmpty ? "" : ", for \(keys.joined(separator: ", "))")
          + (more > 0 ? " and \(more) more" : ""))
    }
    return parts.joined(separator: "; ")
  }
}
