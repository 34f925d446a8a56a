import PreferenceModel
import PreferenceSearch
import PropertyList

/// `explain`: shows every place of the search list that holds a key.
enum Explain {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let key = Key(try arguments.removeNext())
    try arguments.end()
    let layout = StoreLayout(Surroundings(store: target.directory))
    let text = try target.reading { () throws(EngineError) in
      let store = try DomainView(target).store
      return try Explanation(store.engine, layout, store.places).text(
        of: key, in: target.domain, isAppleText: arguments.options.isAppleText)
    }
    guard let text else { throw target.lacks(key.string) }
    Output.write(text)
  }
}
