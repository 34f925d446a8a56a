import PreferenceHistory
import PreferenceModel
import PropertyList
import SystemCalls

/// `history`: shows what was changed, when, and by whom.
enum History {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    var selection = HistoryArguments()
    if arguments.first == "forget" { return try forget(&arguments) }
    let isJSON = try selection.readAll(&arguments)
    try Refusal.wrapping("Could not read the history") { () throws(EngineError) in
      let history = try selection.history(of: StoreView())
      for entry in history.entries {
        if isJSON {
          if let values = entry.values(selection.filter) { Output.write(json: values) }
        } else {
          Output.write(entry.text(selection.filter))
        }
      }
      if !isJSON, let line = history.leftOutLine(selection.filter) { Output.write(line: line) }
    }
  }

  private static func forget(_ arguments: inout Arguments) throws(Refusal) {
    _ = try arguments.removeNext()
    let target = try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.removeNext())
    try arguments.end()
    try Refusal.wrapping("Could not remove the values") { () throws(EngineError) in
      let report = try StoreView().places.report(.forget(target.domain, key))
      guard case .integer(let count) = report else { return }
      Output.write("\(count) records had values, which are removed\n")
    }
  }
}
