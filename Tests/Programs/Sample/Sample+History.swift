import Preferences

import class Preferences.UserDefaults

extension Sample {
  /// Prints the changes of a key.
  static func history(_ key: String) {
    do {
      for change in try PreferenceHistory().changes(.init(key: key)) {
        let values = [change.before, change.after].map {
          $0.flatMap { String.value(from: $0) } ?? "-"
        }
        say("\(change.number) \(change.way) \(values[0]) \(values[1]) \(change.isComplete)")
      }
    } catch {
      say("\(error)")
    }
  }

  /// Takes all changes of a key back.
  static func undo(_ key: String, _ conflicts: String) {
    let ways: [String: PreferenceHistory.Conflicts] = ["over": .over, "skip": .skip]
    do {
      let keys = try PreferenceHistory().undo(
        .init(key: key, program: "prefs-sample"), conflicts: ways[conflicts] ?? .refuse)
      say("\(keys) \(UserDefaults.standard.string(forKey: key) ?? "(none)")")
    } catch .conflicts(let keys) {
      say("\(keys)")
    } catch {
      say("\(error)")
    }
  }
}
