import PreferenceDeclarations
import PreferenceModel
import PreferenceSchemas
import PreferenceSearch
import PropertyList
import SystemCalls

/// `lint`: complains about values that do not fit the schemas of their domains: those of the store,
/// or those that a profile, a declaration, a document for `apply` or a list would set; and about what
/// is wrong in schemas.
struct Lint {
  private let engine: SearchEngine
  private let store: StoreView
  private var status: Int32 = 0

  /// - Returns: the exit status: 1 if something does not fit.
  static func run(_ arguments: inout Arguments) throws(Refusal) -> Int32 {
    let paths = Array(arguments.rest)
    return try Refusal.wrapping("Could not read the preferences") { () throws(EngineError) in
      let store = try StoreView()
      var lint = Lint(engine: store.engine, store: store)
      if paths.isEmpty { try lint.checkStore() }
      for path in paths { try lint.check(file: path) }
      return lint.status
    }
  }

  private init(engine: SearchEngine, store: StoreView) {
    (self.engine, self.store) = (engine, store)
  }

  // MARK: - The store

  private mutating func checkStore() throws(EngineError) {
    for domain in try engine.places.domains(in: .schema).sorted(by: { $0.string < $1.string }) {
      guard let schema = engine.schema(of: domain) else {
        complain("schema \(domain)", "it cannot be read and does not count; `lint FILE` says why")
        continue
      }
      for problem in schema.complaints { complain("schema \(domain)", problem) }
      let locations = SearchList.persistentPlaces.map { Location($0, domain) }
      for (location, snapshot) in zip(locations, try engine.places.snapshots(of: locations)) {
        let place = location.place == .ownManaged ? "managed" : location.place.rawValue
        check(snapshot.values, schema, "\(place) \(domain)")
      }
    }
  }

  private mutating func check(_ key: Key, _ value: Value, _ schema: Schema, _ subject: String) {
    guard let known = schema[key] else {
      let near = schema.nearName(to: key)
      guard near != nil || schema.isAuthoritative else { return }
      return complain("\(subject) \(key)", "no such key\(near.map { "; \($0)?" } ?? "")")
    }
    if let objection = known.objection(to: value) { complain("\(subject) \(key)", objection) }
    if let version = known.deprecated {
      complain("\(subject) \(key)", "deprecated\(version.isEmpty ? "" : " since \(version)")")
    }
  }

  private mutating func complain(_ subject: String, _ reason: String) {
    Output.write(line: "\(subject): \(reason)")
    status = 1
  }

  // MARK: - Files

  private mutating func check(file path: String) throws(EngineError) {
    let bytes: [UInt8]
    do throws(Refusal) {
      bytes = try ListFile.looked(at: path)
    } catch {
      return complain(path, error.detail ?? error.message)
    }
    if path.hasSuffix(".mobileconfig") { return try check(profile: bytes, path) }
    do {
      var limits = Limits.list
      limits.null = Declaration.absent
      guard case .dictionary(let values) = try Document.read(bytes, limits: limits).value else {
        return complain(path, "it is not a dictionary")
      }
      if values["pfm_subkeys"] != nil {
        for problem in try Schema(manifest: values).complaints { complain(path, problem) }
        return
      }
      check(document: values, path)
    } catch {
      complain(path, "\(error)")
    }
  }

  /// A document has a dictionary for each domain; a list is one of the domain of its name.
  private mutating func check(document values: ValueDictionary, _ path: String) {
    let name = String(path.split(separator: "/").last ?? "")
    let domain = DomainName(named: name)
    if name.hasSuffix(".plist"), engine.schema(of: domain) != nil {
      return check(values, domain, path)
    }
    for case (let domain, .dictionary(let settings)) in values.sorted(by: { $0.key < $1.key }) {
      // What an instruction makes of a value, is not known here.
      let whole = settings.filter {
        Instruction.words(of: $0.value) == nil && !Declaration.isWord($0.key, $0.value)
      }
      check(ValueDictionary(whole), DomainName(named: domain.string), path)
    }
  }

  private mutating func check(profile bytes: [UInt8], _ path: String) throws(EngineError) {
    guard case .dictionary(let report) = try store.places.report(.check(bytes)) else { return }
    if case .string(let reason)? = report["refused"] { complain(path, reason) }
    for row in ["forced", "once"] {
      guard case .dictionary(let domains)? = report[Key(row)] else { continue }
      for case (let domain, .dictionary(let settings)) in domains.sorted(by: { $0.key < $1.key }) {
        check(settings, DomainName(domain.string), path)
      }
    }
  }

  private mutating func check(_ values: ValueDictionary, _ domain: DomainName, _ path: String) {
    guard let schema = engine.schema(of: domain) else { return }
    check(values, schema, "\(path) \(domain)")
  }

  private mutating func check(_ values: ValueDictionary, _ schema: Schema, _ subject: String) {
    for (key, value) in values.sorted(by: { $0.key < $1.key }) where value != Declaration.absent {
      check(key, value, schema, subject)
    }
  }
}

extension Lint {
  static let manual = VerbManual(
    group: .schemas, summary: "complains about values that do not fit their schemas",
    more: [
      .init(
        "lint [FILE...]",
        "complains about values that do not fit the schemas of their domains")
    ],
    text: """
      FILE is a list, a profile, a document for apply, or a schema; without one all
      values of the store are looked at. It ends with status 1 if it complains.
      """,
    example: """
      $ prefs lint
      user com.example.editor TabWidth: 99 is more than 16
      """)
}
