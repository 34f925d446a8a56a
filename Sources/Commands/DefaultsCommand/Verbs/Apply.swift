import PreferenceDeclarations
import PreferenceModel
import PropertyList

/// `apply`: sets the keys of several domains that one document declares. Other keys stay as they
/// are.
enum Apply {
  /// The exit status if something was changed, or would be.
  static let changed: Int32 = 2

  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    if let declare = try DeclareArguments(&arguments) { return try Declared.declare(declare) }
    let path = try arguments.removeNext()
    try arguments.end()
    let options = arguments.options
    let (settings, format) = try declarations(path)
    for (domain, values) in settings {
      try RuleConsent.require(
        values, of: domain, options.allowsRules || options.isDryRun, "apply \(path)")
    }
    return try Refusal.wrapping("Could not apply \(path); nothing was changed") {
      () throws(EngineError) in
      let store = try StoreView(because: options.because)
      let differences = try Self.differences(settings, format, store, options)
      if options.isDryRun {
        try store.check(differences.map(\.intent), isJudged: !options.isForced)
      } else {
        try store.apply(differences.map(\.intent), isJudged: !options.isForced)
      }
      for difference in differences { Output.write(line: difference.line) }
      return differences.isEmpty ? 0 : changed
    }
  }

  /// Returns the keys and values that the document declares for each domain, sorted by domain.
  private static func declarations(
    _ path: String
  ) throws(Refusal) -> (all: [(domain: DomainName, settings: ValueDictionary)], format: Format) {
    var all: [(domain: DomainName, settings: ValueDictionary)] = []
    var known: Set<DomainName> = []
    let (document, format) = try Import.list(path)
    for (name, value) in document.sorted(by: { $0.key < $1.key }) {
      guard case .dictionary(let settings) = value else {
        throw Refusal(
          message: "Could not apply \(path); nothing was changed",
          detail:
            "\(name): expected a dictionary of keys and values, found \(value.kind.noun)")
      }
      if let key = settings.first(where: Self.isOfDeclaration)?.key {
        throw Refusal(
          message: "Could not apply \(path); nothing was changed",
          detail: "\(name) \(key): only a declaration has instructions with $: apply --as NAME")
      }
      let domain = DomainName(named: name.string)
      guard known.insert(domain).inserted else {
        throw Refusal(
          message: "Could not apply \(path); nothing was changed",
          detail: "\(name): the document names the domain twice")
      }
      all.append((domain, settings))
    }
    return (all, format)
  }

  private static func isOfDeclaration(_ item: ValueDictionary.Element) -> Bool {
    Instruction.isOne(item.value) || Declaration.isWord(item.key, item.value)
  }

  /// Returns an intent for each key that is not as declared, with the line that reports the change.
  private static func differences(
    _ all: [(domain: DomainName, settings: ValueDictionary)], _ format: Format, _ store: StoreView,
    _ options: Options
  ) throws(EngineError) -> [(intent: Intent, line: String)] {
    var differences: [(intent: Intent, line: String)] = []
    let place: Place? = options.isCurrentHost ? .host : nil
    let present = try DomainContents(
      of: all.map(\.domain), in: place.map { [$0] } ?? Place.own, store.places)
    for (domain, settings) in all {
      let target = Target(domain: domain, place: place)
      let view = DomainView(target, store)
      let settings = view.typed(settings, of: format)
      for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
        let old = present.find(key, in: domain)
        if old == value { continue }
        let line = line(target, key, old, value, options)
        differences.append((view.setting(key, value), line))
      }
    }
    return differences
  }

  /// Returns the line that reports a change.
  private static func line(
    _ target: Target, _ key: Key, _ old: Value?, _ new: Value, _ options: Options
  ) -> String {
    let lines = ValueDescription.lines(from: old, to: new, options.isAppleText)
    return "\(target.domain) \(key): \(lines.old) -> \(lines.new)"
  }
}

extension Apply {
  static let manual = VerbManual(
    group: .declarations, summary: "sets what a document says, once or as a declaration",
    more: [
      .init(
        "apply [--dry-run] FILE", "sets all that {DOMAIN: {KEY: VALUE}} declares, or nothing"),
      .init(
        "apply --as NAME [HOW...] FILE...",
        "NAME declares exactly this; what it gave before goes back"),
    ],
    text: """
      It prints each change, and ends with status 2 if there was one, with 0 if
      everything was as the document says. FILE is - for standard input.
      """,
    options: DeclareArguments.forms + [VerbManual.appleText],
    example: """
      $ echo '{"com.example.editor": {"TabWidth": 8}}' > site.json
      $ prefs apply --as site --dry-run site.json
      com.example.editor TabWidth: 4 -> 8
      """)
}
