import PreferenceModel
import PreferenceProtocol
import PropertyList

/// `domains`, `printHostIdentifier`.
enum Domains {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    try arguments.end()
    let names = try all(arguments.options).map(\.target.name).dropFirst()
    Output.write(names.joined(separator: ", ") + "\n")
  }

  static func printHostIdentifier(_ arguments: inout Arguments) throws(Refusal) {
    try arguments.end()
    Output.write(Surroundings().hostIdentifier + "\n")
  }

  /// The user's domains: the global one, and the others by name.
  static func all(_ options: Options) throws(Refusal) -> [DomainView] {
    let place: Place? = options.isCurrentHost ? .host : nil
    do throws(EngineError) {
      let store = try StoreView()
      var names = try store.places.domains(in: .host)
      if place == nil { names.formUnion(try store.places.domains(in: .user)) }
      return ([.global] + names.subtracting([.global]).sorted()).map { domain in
        DomainView(Target(domain: domain, place: place), store)
      }
    } catch {
      throw Refusal("Could not read the domains; exiting", error)
    }
  }
}

/// `find`.
enum Find {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let word = try arguments.take()
    try arguments.end()
    var isFound = false
    for view in try Domains.all(arguments.options) {
      let target = view.target
      guard let contents = view.readableContents() else { continue }
      let isNamed = holds(target.name, word)
      let found = contents.filter { isNamed || matches($0.key, $0.value, word) }
      if found.isEmpty { continue }
      isFound = true
      let text = ValueDescription.text(
        of: .dictionary(ValueDictionary(found)), isAppleText: arguments.options.isAppleText)
      Output.write("Found \(found.count) keys in domain '\(target.name)': \(text)\n")
    }
    if !isFound { Output.log("No domain, key, nor value containing '\(word)'") }
  }

  /// Whether the key, a string in the value, or a key in it has the word.
  private static func matches(_ key: Key, _ value: Value, _ word: String) -> Bool {
    if holds(key.string, word) { return true }
    switch value {
    case .string(let text): return holds(text, word)
    case .array(let elements): return elements.contains { matches("", $0, word) }
    case .dictionary(let pairs): return pairs.contains { matches($0.key, $0.value, word) }
    default: return false
    }
  }

  private static func holds(_ text: String, _ word: String) -> Bool {
    !word.isEmpty && text.lowercased().contains(word.lowercased())
  }
}
