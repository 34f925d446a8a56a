import PreferenceModel
import PreferenceSchemas
import PreferenceSearch
import PropertyList
import SystemCalls

/// `describe`: says what the schemas of domains say: of a key, of a domain, or of keys about a word.
enum Describe {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    if arguments.first == "-k" {
      _ = try arguments.removeNext()
      let word = try arguments.removeNext()
      try arguments.end()
      return try search(for: word)
    }
    var target = try Target(&arguments)
    let key = arguments.isEmpty ? nil : Key(try arguments.removeNext())
    try arguments.end()
    let store = try Refusal.wrapping("Could not describe \(target.name)") {
      () throws(EngineError) in try StoreView(target.directory)
    }
    let schema = try schema(of: target, store)
    let engine = store.engine
    let domain = described(target.domain, engine)
    if domain != target.domain {
      (target.domain, target.name) = (domain, domain.string.printable())
    }
    let text = try Refusal.wrapping("Could not describe \(target.name)") {
      () throws(EngineError) -> String? in
      if let key { return try engine.description(of: key, in: target.domain) }
      return try Self.text(of: target, schema, engine)
    }
    guard let text else {
      let near = key.flatMap { schema.nearName(to: $0) }.map { "; did you mean \($0)?" } ?? ""
      throw Refusal("The schema of \(target.name) has no key \(key ?? "")\(near)")
    }
    Output.write(text)
  }

  /// The schema of the domain. One whose file has just come, which the owner notices a moment later,
  /// is waited for, a second at most.
  private static func schema(of target: Target, _ store: StoreView) throws(Refusal) -> Schema {
    for _ in 0..<50 {
      if let schema = store.engine.schema(of: target.domain) { return schema }
      // This throws if the owner of the store, which reads schemas, does not answer.
      let noticed = try Refusal.wrapping("Could not describe \(target.name)") {
        () throws(EngineError) in try store.places.domains(in: .schema)
      }
      guard !noticed.contains(target.domain) else {
        throw Refusal(
          "The schema of the domain \(target.name) cannot be read; prefs lint FILE says why")
      }
      guard DomainView(target, store).hasSchemaFile else { break }
      Instant.sleep(milliseconds: 20)
    }
    throw Refusal("There is no schema of the domain \(target.name)")
  }

  /// The domain that the schema found for a domain describes: a schema of GSettings is found by its
  /// id too, which may be another name than that of its path.
  private static func described(_ domain: DomainName, _ engine: SearchEngine) -> DomainName {
    let manifest = try? engine.places.values(at: Location(.schema, domain))
    guard case .string(let path)? = manifest?["prefs_path"] else { return domain }
    return GSettingsPath.domain(of: path).map { DomainName($0) } ?? domain
  }

  private static func text(
    of target: Target, _ schema: Schema, _ engine: SearchEngine
  ) throws(EngineError) -> String {
    var text = schema.title.isEmpty ? target.name : "\(target.name): \(schema.title)"
    text += schema.isAuthoritative ? "\n" : " (informs only)\n"
    text += schema.about
    for known in schema.keys {
      text += known.text(present: try engine.present(known, in: target.domain))
    }
    return text
  }

  /// A line for each key whose name, title or summary has the word, as apropos(1) has them.
  private static func search(for word: String) throws(Refusal) {
    var isFound = false
    try Refusal.wrapping("Could not read the schemas") { () throws(EngineError) in
      let engine = try StoreView().engine
      for domain in try engine.places.domains(in: .schema).sorted(by: { $0.string < $1.string }) {
        for key in engine.schema(of: domain)?.keys(about: word) ?? [] {
          isFound = true
          Output.write(line: "\(domain) \(key.name): \(key.caption)")
        }
      }
    }
    if !isFound { throw Refusal("No schema says anything about \(word)") }
  }
}

/// `changed`: shows what is set and is not the default.
enum Changed {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = arguments.isEmpty ? nil : try Target(&arguments)
    try arguments.end()
    try Refusal.wrapping("Could not read the values") { () throws(EngineError) in
      let store = try StoreView(target?.directory)
      let engine = store.engine
      var domains = target.map { [$0.domain] } ?? []
      if target == nil { domains = try engine.domains().sorted { $0.string < $1.string } }
      for domain in domains { try show(domain, engine, isOnly: target != nil) }
    }
  }

  private static func show(
    _ domain: DomainName, _ engine: SearchEngine, isOnly: Bool
  ) throws(EngineError) {
    let schema = engine.schema(of: domain)
    // Without a schema nothing is known of defaults; it is shown only if somebody asks for it.
    guard schema != nil || isOnly else { return }
    for key in try engine.keys(of: domain).sorted() {
      let known = schema?[key]
      guard let found = try engine.resolve(key, in: domain), found.location.place.isOwn,
        known?.isState != true, known?.isDefault(found.value) != true
      else { continue }
      let value =
        known?.hasSecrets == true ? "(secret)" : ValueDescription.line(of: found.value, false)
      let usual = known?.fallback.map { " (default \(ValueDescription.line(of: $0, false)))" } ?? ""
      Output.write(line: "\(domain) \(key): \(value)\(usual)")
    }
  }
}

extension Describe {
  static let manual = VerbManual(
    group: .schemas, summary: "says what a key is for, and what it may be",
    more: [
      .init("describe DOMAIN [KEY]", "says what a domain's schema says of its keys"),
      .init("describe -k WORD", "names the keys whose schemas say something about the word"),
    ],
    example: """
      $ prefs describe -k columns
      $ prefs describe com.example.editor TabWidth
      """)
}

extension Changed {
  static let manual = VerbManual(
    group: .look, summary: "shows what is set and is not the default",
    more: [.init("changed [DOMAIN]", "shows what is set and is not the default")],
    text: """
      Without a domain it shows those that have a schema: of others, nothing is known
      about defaults.
      """,
    example: """
      $ prefs changed
      com.example.editor TabWidth: 8 (default 4)
      """)
}
