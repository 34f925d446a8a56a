import PreferenceModel
import PropertyList

/// `apply`: settings of several domains, declared in one document. What is not named in it stays.
enum Apply {
  /// Something was, or would be, another.
  private static let changed: Int32 = 2

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let path = try arguments.take()
    try arguments.end()
    let options = arguments.options
    let settings = try declarations(path)
    do throws(EngineError) {
      let store = try StoreView()
      let intents = try intents(settings, store, options)
      if !options.isDryRun { try store.apply(intents) }
      return intents.isEmpty ? 0 : changed
    } catch {
      throw Refusal("Could not apply \(path); nothing was changed", error)
    }
  }

  /// What the document declares: of each domain, by name, the keys and values.
  private static func declarations(
    _ path: String
  ) throws(Refusal) -> [(domain: DomainName, settings: [Key: Value])] {
    var all: [(domain: DomainName, settings: [Key: Value])] = []
    for (name, value) in try Import.dictionary(path).sorted(by: { $0.key < $1.key }) {
      guard case .dictionary(let settings) = value else {
        throw Refusal(
          message: "Could not apply \(path); nothing was changed",
          detail:
            "\(name): expected a dictionary of keys and values, found a \(value.kind.rawValue)")
      }
      all.append((Target.domain(named: name.string), settings))
    }
    return all
  }

  /// What is not as it is declared, each said in a line.
  private static func intents(
    _ all: [(domain: DomainName, settings: [Key: Value])], _ store: StoreView, _ options: Options
  ) throws(EngineError) -> [Intent] {
    var intents: [Intent] = []
    for (domain, settings) in all {
      let target = Target(domain: domain, place: options.isCurrentHost ? .host : nil)
      let view = DomainView(target, store)
      for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
        let old = try view.find(key)?.stored.value
        if old == value { continue }
        intents.append(view.setting(key, value))
        say(target, key, old, value, options)
      }
    }
    return intents
  }

  private static func say(
    _ target: Target, _ key: Key, _ old: Value?, _ new: Value, _ options: Options
  ) {
    let before = old.map { ValueDescription.line(of: $0, options.isAppleText) } ?? "(none)"
    let after = ValueDescription.line(of: new, options.isAppleText)
    Output.write("\(target.domain) \(key): \(before) -> \(after)\n")
  }
}
