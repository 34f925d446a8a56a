import PreferenceModel
import PropertyList
import StoreAccess

/// `domains`, `printHostIdentifier`: prints the names of the domains, and the identifier of the
/// host.
enum Domains {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    try arguments.end()
    let names = try all(arguments.options).map(\.target.name).dropFirst()
    Output.write(line: names.joined(separator: ", "))
  }

  static func printHostIdentifier(_ arguments: inout Arguments) throws(Refusal) {
    try arguments.end()
    Output.write(Surroundings().hostIdentifier + "\n")
  }

  /// Returns the user's domains: the global domain, then the others sorted by name.
  static func all(_ options: Options) throws(Refusal) -> [DomainView] {
    let place: Place? = options.isCurrentHost ? .host : nil
    return try Refusal.wrapping("Could not read the domains; exiting") { () throws(EngineError) in
      let store = try StoreView()
      var names: Set<DomainName> = []
      for place in place.map({ [$0] }) ?? Place.own {
        names.formUnion(try store.places.domains(in: place))
      }
      return ([.global] + names.subtracting([.global]).sorted()).map { domain in
        DomainView(Target(domain: domain, place: place), store)
      }
    }
  }
}

/// `find`: shows the keys whose name, text or domain contains a word.
enum Find {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let word = try arguments.removeNext()
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

  /// Whether the key, or a string or a key inside of the value, contains the word.
  private static func matches(_ key: Key, _ value: Value, _ word: String) -> Bool {
    if holds(key.string, word) { return true }
    switch value {
    case .string(let text): return holds(text, word)
    case .array(let elements): return elements.contains { matches("", $0, word) }
    case .dictionary(let pairs): return pairs.contains { matches($0.key, $0.value, word) }
    default: return false
    }
  }

  /// Whether the text contains the word, without regard to case.
  private static func holds(_ text: String, _ word: String) -> Bool {
    !word.isEmpty && text.lowercased().contains(word.lowercased())
  }
}

extension Domains {
  static let manual = VerbManual(
    group: .look, summary: "names the domains",
    apple: [.init("domains", "names the domains, without the global one")],
    options: [VerbManual.appleText],
    example: """
      $ prefs domains
      com.example.editor, com.example.term
      """)

  static let hostManual = VerbManual(
    group: .machines, summary: "shows the identifier of this host",
    apple: [
      .init("printHostIdentifier", "shows the identifier of this host in ByHost file names")
    ],
    example: """
      $ prefs printHostIdentifier
      """)
}

extension Find {
  static let manual = VerbManual(
    group: .look, summary: "shows the keys that have a word in their name, text or domain",
    apple: [.init("find WORD", "shows keys whose name, text or domain contains the word")],
    text: """
      Upper and lower case are the same. It searches the user's own values; describe
      -k searches what schemas say.
      """,
    options: [VerbManual.appleText],
    example: """
      $ prefs find tab
      """)
}
