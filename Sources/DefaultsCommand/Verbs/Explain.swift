import PreferenceModel
import PropertyList
import SystemCalls

/// `explain`: shows every place of the search list that holds a key.
enum Explain {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let key = Key(try arguments.removeNext())
    try arguments.end()
    let holders = try target.reading { () throws(EngineError) in
      try DomainView(target).store.engine.holders(of: key, in: target.domain)
    }
    if holders.isEmpty {
      throw target.lacks(key.string)
    }
    let layout = StoreLayout(Surroundings(store: target.directory))
    for (index, holder) in holders.enumerated() {
      let value = ValueDescription.line(of: holder.value, arguments.options.isAppleText)
      let source = holder.location.source(seenFrom: target.domain)
      let forced = holder.isForced ? " (forced)" : ""
      let mark = index == 0 ? "*" : " "
      Output.write("\(mark) \(source)\(forced): \(value)\n    \(file(holder.location, layout))\n")
    }
  }

  /// Returns the path of the list that holds the location.
  private static func file(_ location: Location, _ layout: StoreLayout) -> String {
    guard SearchList.persistentPlaces.contains(location.place) else { return "(this process)" }
    return layout.path(location)
  }
}
