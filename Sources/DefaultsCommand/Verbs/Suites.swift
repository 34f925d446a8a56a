import PreferenceModel
import PropertyList

/// `suites`: shows and changes the suites that are kept for a domain.
enum Suites {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    guard target.domain != .global, !target.isPath else {
      throw Refusal(
        message: "\(target.name) has no suites", detail: "name a domain, as in com.example.app")
    }
    let change = arguments.isEmpty ? nil : try change(&arguments)
    try arguments.end()
    do throws(EngineError) {
      let store = try StoreView()
      var names = try store.engine.keptSuites(of: target.domain)
      guard let change else {
        for name in names { Output.write("\(name)\n") }
        return
      }
      names.removeAll { $0 == change.name }
      if change.isAddition { names.append(change.name) }
      try store.apply(store.engine.intents(keeping: names, for: target.domain))
    } catch {
      throw Refusal("Could not change the suites of \(target.name)", error)
    }
  }

  private static func change(
    _ arguments: inout Arguments
  ) throws(Refusal) -> (name: DomainName, isAddition: Bool) {
    let word = try arguments.removeNext()
    guard ["add", "remove"].contains(word) else { throw .usage }
    let name = Target.domain(named: try arguments.removeNext())
    guard name.canNameList, name != .global else {
      throw Refusal(message: "\(name) cannot be a suite", detail: "a suite is a domain")
    }
    return (name, word == "add")
  }
}
