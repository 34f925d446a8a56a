import PreferenceDeclarations
import PreferenceModel
import PropertyList

/// `write`: sets a key, a value inside of a key, or all keys of a domain.
enum Write {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let isJudged = !arguments.options.isForced
    if let lease = arguments.options.lease {
      return try write(to: target, for: lease, &arguments)
    }
    if arguments.count == 1 {
      return try replace(target, with: try arguments.removeNext(), isJudged)
    }
    let path = ValuePath(try arguments.removeNext(), isPath: arguments.options.isPath)
    let hasNoTypes = arguments.count == 1 && ValueArgument.hasNoTypes(arguments.first ?? "")
    var form = try ValueArgument.parse(&arguments)
    try target.makeDirectory()
    let view = try target.writing { () throws(EngineError) in try DomainView(target) }
    if hasNoTypes, case .value(let value) = form, path.entries.isEmpty {
      form = .value(view.typed(value, for: path.key))
    }
    if case .value(let value) = form, path.entries.isEmpty {
      try target.writing { () throws(EngineError) in
        try view.store.apply([view.setting(path.key, value)], target, isJudged: isJudged)
      }
      return view.hint(path.key)
    }
    try view.update(path.key, isJudged: isJudged) { value throws(Refusal) in
      let present = value.flatMap { path.find(in: $0) }
      return try path.changed(value, to: try added(form, to: present, path.text))
    }
  }

  /// Sets a key for a while: as a declaration of its own, which is a lease.
  private static func write(
    to target: Target, for nanoseconds: Int64, _ arguments: inout Arguments
  ) throws(Refusal) {
    let (key, options) = (Key(try arguments.removeNext()), arguments.options)
    guard arguments.count > 0, !options.isPath, target.directory == nil,
      case .value(let value) = try ValueArgument.parse(&arguments)
    else { throw .mistake("--lease is for a whole value of a key in the user's own lists") }
    try target.writing { () throws(EngineError) in
      let store = try StoreView(via: .declaration, because: target.because)
      let settings: ValueDictionary = [key: ["$value": value]]
      let name = "lease:\(target.domain):\(key)"
      let declaration = try Declaration([target.domain.key: .dictionary(settings)])
      _ = try store.declarations(in: target.place).carryOut(
        [
          .declare(name, declaration, over: []),
          .limit(name, nanoseconds: nanoseconds, isLease: true, from: .now),
        ], isJudged: !options.isForced, by: store.author)
    }
  }

  /// Returns the present value with the elements or pairs that the command line adds, or the new
  /// value that replaces it.
  private static func added(
    _ form: ValueArgument.Form, to present: Value?, _ key: String
  ) throws(Refusal) -> Value {
    switch (form, present) {
    case (.value(let value), _): return value
    case (.arrayAdd(let elements), nil): return .array(elements)
    case (.arrayAdd(let elements), .array(let old)): return .array(old + elements)
    case (.arrayAdd, _):
      throw Refusal(
        "Value for key \(key) is not an array; cannot append.  Leaving defaults unchanged.")
    case (.dictionaryAdd(let pairs), nil): return .dictionary(pairs)
    case (.dictionaryAdd(let pairs), .dictionary(let old)):
      return .dictionary(old.merging(pairs))
    case (.dictionaryAdd, _):
      throw Refusal(
        "Value for key \(key) is not a dictionary; cannot append.  Leaving defaults unchanged.")
    }
  }

  /// Makes the domain have the keys of the dictionary and no others.
  private static func replace(
    _ target: Target, with word: String, _ isJudged: Bool
  ) throws(Refusal) {
    guard case .dictionary(let written) = try ValueArgument.untyped(word) else {
      throw Refusal("\nRep argument is not a dictionary\nDefaults have not been changed.\n")
    }
    let hasNoTypes = ValueArgument.hasNoTypes(word)
    try target.makeDirectory()
    try target.writing { () throws(EngineError) in
      let view = try DomainView(target)
      let values = hasNoTypes ? view.typed(written, of: .openStep) : written
      if let place = target.place {
        try view.store.apply(
          [.replace(Location(place, target.domain), values)], target, isJudged: isJudged)
        return
      }
      var intents = values.map { view.setting($0.key, $0.value) }
      for location in target.locations {
        for key in try view.store.places.keys(at: location) where values[key] == nil {
          intents.append(.edit(location, .remove(key)))
        }
      }
      try view.store.apply(intents, target, isJudged: isJudged)
      if values.isEmpty { try Delete.removeEmptyDomain(view) }
    }
  }
}

/// `rename`: gives a key another name, in all locations of the domain. Each keeps its own value.
enum Rename {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let (old, new) = (Key(try arguments.removeNext()), Key(try arguments.removeNext()))
    try arguments.end()
    let isJudged = !arguments.options.isForced
    do throws(EngineError) {
      let view = try DomainView(target)
      for _ in 0..<DomainView.mostAttempts {
        if try rename(old, to: new, view, isJudged) { return }
      }
    } catch  where error.isMissing {
      throw Refusal(
        "Key \(old) does not exist in domain \(target.name); leaving defaults unchanged")
    } catch {
      throw Refusal("Failed to write domain \(target.name)", error)
    }
    throw Refusal("Failed to write domain \(target.name)")
  }

  /// Renames the key if it does not change in between.
  /// - Returns: whether the key was renamed; false if another program has changed it in between.
  private static func rename(
    _ old: Key, to new: Key, _ view: DomainView, _ isJudged: Bool
  ) throws(EngineError) -> Bool {
    var (intents, replaced): ([Intent], [Intent]) = ([], [])
    var first: Value?
    for location in view.target.locations {
      guard let stored = try view.store.places.find(old, at: location) else {
        if try view.store.places.find(new, at: location) != nil {
          replaced.append(.edit(location, .remove(new)))
        }
        continue
      }
      first = first ?? stored.value
      let text: WrittenText = stored.text.map { .exact($0) } ?? .canonical
      intents += [
        .expect(old, location, stored.value), .edit(location, .remove(old)),
        .edit(location, .set(new, stored.value, text)),
      ]
    }
    guard let first else { throw EngineError(.noSuchKey, key: old, "there is no such key") }
    if old == new { return true }
    // An edit of a location asks nobody whether a name is forced.
    var asked = [view.setting(new, first)]
    if view.target.place == nil { asked.append(.removeOwn(old, view.target.domain)) }
    try view.store.check(asked)
    do throws(EngineError) {
      try view.store.apply(intents + replaced, view.target, isJudged: isJudged)
      return true
    } catch  where error.reason == .changedMeanwhile {
      return false
    }
  }
}

extension Write {
  static let manual = VerbManual(
    group: .change, summary: "sets a key, or all keys of a domain",
    apple: [
      .init("write DOMAIN KEY VALUE", "sets a key"),
      .init("write DOMAIN DICTIONARY", "sets these keys of a domain and removes all others"),
    ],
    text: """
      VALUE is a word, or an option for the type and a text, such as -int 8, -bool
      true, -array a b or -dict-add key value. A word alone is a string, unless a
      schema says what the key is, or one of "()[]{}<> makes it a property list.
      When it returns, every mount and every program reads the new value.
      """,
    options: [
      VerbManual.path, VerbManual.synchronous, VerbManual.force, VerbManual.because,
      .init("--lease TIME", "what was there comes back after that time (seconds, or 5m, 2h, 1d)"),
    ],
    example: """
      $ prefs write com.example.editor TabWidth -int 8
      $ prefs write com.example.editor Fonts -array Mono "Sans Serif"
      $ prefs write --path com.example.editor Window:Width -int 800
      """)
}

extension Rename {
  static let manual = VerbManual(
    group: .change, summary: "gives a key another name",
    apple: [.init("rename DOMAIN OLD NEW", "gives a key another name")],
    text: """
      Each list that has the key keeps its value. A key of the new name is replaced.
      """,
    options: [VerbManual.synchronous, VerbManual.force],
    example: """
      $ prefs rename com.example.editor TabWidth IndentWidth
      """)
}
