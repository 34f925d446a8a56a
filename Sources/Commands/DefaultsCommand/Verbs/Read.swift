import PreferenceHistory
import PreferenceModel
import PropertyList

/// `read`, `read-type`: shows values, or the type of a value.
enum Read {
  static func run(_ arguments: inout Arguments) throws(Refusal) {
    if arguments.options.isEffective { return try Effective.run(&arguments) }
    if arguments.options.user != nil, arguments.options.moment == nil {
      throw .mistake("--for goes with --effective or --at")
    }
    if arguments.isEmpty, arguments.options.moment != nil {
      throw .mistake("--at needs a domain behind the time")
    }
    if arguments.isEmpty { return show(try everything(arguments.options), arguments.options) }
    let target = try Target(&arguments)
    if arguments.options.user != nil, target.directory != nil { throw Explain.pathForUser }
    guard let word = arguments.first else {
      let moment = arguments.options.moment
      let contents = try target.reading { () throws(EngineError) in
        guard let moment else { return try DomainView(target).contents() }
        let places = try past(target, moment, arguments.options)
        var contents = try places.contents(of: target.locations)
        for key in try lostKeys(places, target.locations) {
          contents[key] = nil
          Output.note("\(key): its value of then is not kept")
        }
        return contents
      }
      if contents.isEmpty { throw target.doesNotExist }
      return show(.dictionary(contents), arguments.options)
    }
    _ = try arguments.removeNext()
    try arguments.end()
    show(try value(word, target, arguments.options), arguments.options)
  }

  static func runType(_ arguments: inout Arguments) throws(Refusal) {
    let target = try Target(&arguments)
    let word = try arguments.removeNext()
    try arguments.end()
    let value = try value(word, target, arguments.options)
    let name = value.kind == .real ? "float" : value.kind.rawValue
    Output.write("Type is \(name)\n")
  }

  /// Returns the value that a key, or a path with `--path`, names.
  private static func value(
    _ word: String, _ target: Target, _ options: Options
  ) throws(Refusal) -> Value {
    let path = ValuePath(word, isPath: options.isPath)
    let found = try target.reading(orSaying: target.lacks(word)) { () throws(EngineError) in
      guard let moment = options.moment else { return try DomainView(target).find(path.key) }
      return try past(target, moment, options).findFirst(path.key, in: target.locations)
    }
    guard let found, let value = path.find(in: found.stored.value) else { throw target.lacks(word) }
    return value
  }

  /// Returns the places as they were at a moment. Throws ENODATA for one that the history does not
  /// have.
  private static func past(
    _ target: Target, _ moment: HistoryMoment, _ options: Options
  ) throws(EngineError) -> PastPlaces {
    let places = try StoreView(target.directory, ofUser: options.user).places
    let reader = HistoryReader(places)
    let number = try reader.read().requireNumber(at: moment)
    return try PastPlaces(after: number, places, reader)
  }

  /// Returns the keys whose values of then are not known.
  private static func lostKeys(
    _ places: PastPlaces, _ locations: [Location]
  ) throws(EngineError) -> [Key] {
    var keys: Set<Key> = []
    for location in locations.reversed() {
      keys.subtract(try places.keys(at: location))
      keys.formUnion(try places.lostKeys(at: location))
    }
    return keys.sorted()
  }

  /// Returns a dictionary of all domains that have keys and can be read.
  private static func everything(_ options: Options) throws(Refusal) -> Value {
    var all: ValueDictionary = [:]
    for view in try Domains.all(options) {
      guard let contents = view.readableContents(), !contents.isEmpty else { continue }
      all[Key(view.target.name)] = .dictionary(contents)
    }
    return .dictionary(all)
  }

  /// Prints a value in the form that the options select.
  private static func show(_ value: Value, _ options: Options) {
    switch options.form {
    case .description:
      let text = ValueDescription.text(of: value, isAppleText: options.isAppleText)
      Output.write(text + "\n")
    case .plist: Output.write(Document.anyXML(value))
    case .json: Output.write(Document.json(value))
    }
  }
}

extension Read {
  static let manual = VerbManual(
    group: .look, summary: "shows values: of all domains, of one, or of a key",
    apple: [.init("read [DOMAIN [KEY]]", "shows all domains, one, or a key's value")],
    more: [
      .init(
        "read --effective [--json] [--for USER] [DOMAIN]",
        "shows what counts, from where, whether it is forced"),
      .init("read --json|--plist ...", "shows values as JSON, or as XML (dates in seconds)"),
      .init("read --at TIME DOMAIN [KEY]", "shows values as they were then"),
    ],
    text: """
      It reads the user's own lists: the cloud, the list of this host, the user's
      list. What programs read may come from another place: --effective shows that.
      """,
    options: [VerbManual.path, VerbManual.appleText, VerbManual.user, VerbManual.time],
    example: """
      $ prefs read com.example.editor TabWidth
      $ prefs read --effective com.example.editor
      $ prefs read --at yesterday com.example.editor
      """)

  static let typeManual = VerbManual(
    group: .look, summary: "shows the type of a key's value",
    apple: [.init("read-type DOMAIN KEY", "shows the type of a key's value")],
    options: [VerbManual.path],
    example: """
      $ prefs write com.example.editor TabWidth -int 8
      $ prefs read-type com.example.editor TabWidth
      Type is integer
      """)
}
