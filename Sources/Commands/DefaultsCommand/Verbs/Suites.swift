import PreferenceModel
import PreferenceSearch
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
    let (store, names) = try Refusal.wrapping("Could not read the suites of \(target.name)") {
      () throws(EngineError) in
      let store = try StoreView()
      return (store, try store.engine.keptSuites(of: target.domain))
    }
    guard let change else { return names.forEach { Output.write(line: "\($0)") } }
    // Nothing to remove is no error.
    guard change.isAddition || names.contains(change.name) else { return }
    let view = DomainView(Target(domain: KeptSuites.domain, place: nil), store)
    try view.update(KeptSuites.key(of: target.domain)) { value in
      // The user's list begins with what another place keeps.
      var kept = (KeptSuites.names(in: value, of: target.domain) ?? names).map(\.string)
      kept.removeAll { $0 == change.name.string }
      if change.isAddition { kept.append(change.name.string) }
      let new = KeptSuites.names(kept, target.domain)
      return new.isEmpty ? nil : .array(new.map { .string($0.string) })
    }
  }

  private static func change(
    _ arguments: inout Arguments
  ) throws(Refusal) -> (name: DomainName, isAddition: Bool) {
    let word = try arguments.removeNext()
    guard ["add", "remove"].contains(word) else {
      throw .mistake("\(word) is neither add nor remove")
    }
    let name = DomainName(named: try arguments.removeNext())
    guard name.canNameList, name != .global else {
      throw Refusal(message: "\(name) cannot be a suite", detail: "a suite is a domain")
    }
    return (name, word == "add")
  }
}

extension Suites {
  static let manual = VerbManual(
    group: .change, summary: "has a domain read what another one has",
    more: [
      .init("suites DOMAIN", "shows the suites that are kept for it, the last searched first"),
      .init("suites DOMAIN add|remove NAME", "adds a suite, or removes it"),
    ],
    text: """
      A key that the domain does not have is looked for in its suites, before the
      global domain.
      """,
    example: """
      $ prefs suites com.example.editor add com.example.suite
      $ prefs suites com.example.editor
      com.example.suite
      """)
}
