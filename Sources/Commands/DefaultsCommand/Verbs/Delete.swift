import PreferenceModel
import PropertyList

/// `delete`, `remove`, `delete-all`: removes a key, a value inside of a key, or a domain.
enum Delete {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let word = arguments.isEmpty ? nil : try arguments.removeNext()
    try arguments.end()
    let view = try refusing(target) { () throws(EngineError) in try DomainView(target) }
    guard let word else {
      let isThere = try refusing(target) { () throws(EngineError) in try removeDomain(view) }
      if !isThere { throw notFound(target) }
      return
    }
    let path = ValuePath(word, isPath: arguments.options.isPath)
    let found = try refusing(target) { () throws(EngineError) in try view.find(path.key) }
    guard let found, path.find(in: found.stored.value) != nil else { throw notFound(target) }
    if path.entries.isEmpty {
      try refusing(target) { () throws(EngineError) in
        try view.store.apply([view.removing(path.key, from: found.location)], target)
        try removeEmptyDomain(view)
      }
    } else {
      try view.update(path.key) { value throws(Refusal) in try path.changed(value, to: nil) }
    }
  }

  /// Removes the domain from its locations.
  /// - Returns: whether there was one.
  private static func removeDomain(_ view: DomainView) throws(EngineError) -> Bool {
    var intents: [Intent] = []
    for location in view.target.locations where try view.store.places.exists(location) {
      intents.append(.edit(location, .removeDomain))
    }
    return try !view.store.apply(intents, view.target).isEmpty
  }

  /// Removes the domain if it has no keys left, as macOS does; not one that was made without keys.
  static func removeEmptyDomain(_ view: DomainView) throws(EngineError) {
    guard view.target.domain != .global, try view.contents().isEmpty else { return }
    do throws(EngineError) {
      try view.store.apply([.removeDomain(view.target.domain)], view.target)
    } catch  where [.domainNotEmpty, .noSuchDomain, .heldElsewhere].contains(error.reason) {
      // Another program has set a key in between, the machine's lists have the domain too, or
      // `mkdir` has made it.
    }
  }

  private static func notFound(_ target: Target, _ error: EngineError? = nil) -> Refusal {
    Refusal("\nDomain (\(target.name)) not found.\nDefaults have not been changed.\n", error)
  }

  /// Performs a part of the removal. Apple's command has a single message for every error.
  @discardableResult
  private static func refusing<Result>(
    _ target: Target, _ body: () throws(EngineError) -> Result
  ) throws(Refusal) -> Result {
    do throws(EngineError) {
      return try body()
    } catch {
      throw notFound(target, error.isMissing ? nil : error)
    }
  }
}

extension Delete {
  static let manual = VerbManual(
    group: .change, summary: "removes a key, or a domain",
    apple: [
      .init("delete DOMAIN [KEY]", "removes a key, or the domain; also: remove, delete-all")
    ],
    text: """
      It removes what the user's own lists have. Programs then read what another
      place has, such as the machine's lists or a schema.
      """,
    options: [VerbManual.path, VerbManual.synchronous, VerbManual.because],
    example: """
      $ prefs delete com.example.editor TabWidth
      $ prefs delete --path com.example.editor Fonts:0
      """)
}
