import PreferenceModel
import PreferenceSchemaForms
import PreferenceSchemas
import PropertyList

/// `schema`: makes something of a schema, or a schema of something else.
enum SchemaVerb {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let word = try arguments.removeNext()
    switch word {
    case "swift": Output.write(try schema(&arguments) { $0.swift(of: $1) })
    case "markdown": Output.write(try schema(&arguments) { $0.markdown(of: $1) })
    case "json":
      Output.write(
        try schema(&arguments) { schema, domain in
          String(
            decoding: ValueText.canonical(schema.jsonSchema(of: domain), style: .json),
            as: UTF8.self)
        })
    case "import": try SchemaImportVerb.run(&arguments)
    default: throw Arguments.unexpected(word)
    }
  }

  /// What the body makes of the schema of the next word: a domain, or the path of a schema's file.
  private static func schema(
    _ arguments: inout Arguments, _ body: (Schema, DomainName) -> String
  ) throws(Refusal) -> String {
    let word = arguments.first ?? ""
    if word.contains("/") || word.hasSuffix(".plist") {
      _ = try arguments.removeNext()
      try arguments.end()
      return try file(word, body)
    }
    let target = try Target(&arguments)
    try arguments.end()
    return try Refusal.wrapping("Could not read the schema") { () throws(EngineError) in
      let store = try StoreView(target.directory)
      guard let schema = store.engine.schema(of: target.domain) else {
        // This throws if the owner of the store, which reads schemas, does not answer.
        _ = try store.places.domains(in: .schema)
        throw EngineError(.noSuchDomain, domain: target.domain, "it has no schema")
      }
      return body(schema, target.domain)
    }
  }

  private static func file(
    _ path: String, _ body: (Schema, DomainName) -> String
  ) throws(Refusal) -> String {
    let values = try Import.dictionary(path, waits: false)
    return try Refusal.wrapping("Could not read the schema \(path)") { () throws(SchemaError) in
      let name = values["pfm_domain"]?.string ?? String(path.split(separator: "/").last ?? "")
      return body(try Schema(manifest: values), DomainName(named: name))
    }
  }
}

/// `complete`: what the completions of shells offer, a word in each line.
enum Complete {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let kind = try arguments.removeNext()
    switch kind {
    case "verbs":
      let name = arguments.isEmpty ? "prefs" : try arguments.removeNext()
      try arguments.end()
      for verb in Verb.shown(by: CommandName(started: name)) where verb != .complete {
        Output.write(line: verb.rawValue)
      }
    case "domains":
      try arguments.end()
      let known = try Refusal.wrapping("Could not read the domains") { () throws(EngineError) in
        let engine = try StoreView().engine
        return try engine.domains().union(engine.places.domains(in: .schema))
      }
      for domain in known.map(\.string).sorted() { Output.write(line: domain) }
    case "keys": try complete(try Target(&arguments), nil, &arguments)
    case "options":
      let verb = Verb(try arguments.removeNext())
      // The words behind the verb, of which none is an option.
      let isFirst = arguments.isEmpty
      for option in Set(verb?.candidates(isFirst: isFirst) ?? []).sorted() {
        Output.write(line: option)
      }
    case "values":
      let target = try Target(&arguments)
      try complete(target, Key(try arguments.removeNext()), &arguments)
    default: throw Arguments.unexpected(kind)
    }
  }

  /// Offers the keys of a domain, or the values of a key.
  private static func complete(
    _ target: Target, _ key: Key?, _ arguments: inout Arguments
  ) throws(Refusal) {
    try arguments.end()
    let words = try Refusal.wrapping("Could not read the domain") { () throws(EngineError) in
      let engine = try StoreView(target.directory).engine
      let schema = engine.schema(of: target.domain)
      if let key { return schema?[key]?.candidates ?? [] }
      let known = Set(schema?.keys.map(\.name) ?? [])
      return try engine.keys(of: target.domain).union(known).sorted().map(\.string)
    }
    for word in words { Output.write(line: word) }
  }
}

extension SchemaKey {
  /// The words that a value of the key may be, if they are few.
  fileprivate var candidates: [String] {
    if kind == .boolean { return ["true", "false"] }
    return choices.compactMap {
      let text = String(decoding: ValueText.canonical($0), as: UTF8.self)
      let word = text.hasSuffix("\n") ? String(text.dropLast()) : text
      return word.contains("\n") ? nil : word
    }
  }
}

extension SchemaVerb {
  static let manual = VerbManual(
    group: .schemas, summary: "makes code or a page of a schema, or imports one",
    more: [
      .init(
        "schema swift|markdown|json DOMAIN", "prints typed keys, a page, or a JSON Schema"),
      .init("schema import FILE... [--into DIR]", "makes schemas of GSettings XML"),
    ],
    text: """
      DOMAIN may be the path of a schema's file. More than one imported schema needs
      --into, which writes a file for each.
      """,
    options: [.init("--into DIR", "writes imported schemas to that directory")],
    example: """
      $ prefs schema swift com.example.editor > Keys.swift
      $ prefs schema import org.example.app.gschema.xml
      """)
}

extension Complete {
  static let manual = VerbManual(
    group: .help, summary: "prints candidates, for the completion of shells",
    more: [
      .init("complete verbs [NAME]", "the verbs that the help of prefs, or of NAME, has"),
      .init("complete options VERB [WORD...]", "the options of a verb"),
      .init("complete domains", "the domains, also those that only a schema has"),
      .init("complete keys DOMAIN", "the keys of a domain"),
      .init("complete values DOMAIN KEY", "the values that a key may have, if they are few"),
    ],
    example: """
      $ prefs complete verbs defaults
      """)
}
